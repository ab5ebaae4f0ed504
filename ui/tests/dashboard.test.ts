import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Demo } from "./demo";

const PAGES = [
  "overview",
  "domains",
  "watching",
  "peers",
  "settings",
  "activity",
  "about",
  "welcome",
];
const PICTURES = process.env.APOIDEA_PICTURES ?? "../target/artefacts/dashboard";

let demo: Demo;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  demo = await Demo.start();
  await demo.page.waitForFunction(
    () => document.querySelectorAll(".pages li").length > 3,
    undefined,
    { timeout: 60_000 },
  );
});
afterAll(() => demo?.stop());

describe("the dashboard of a live swarm", () => {
  for (const [width, height, colorScheme] of [
    [1600, 1000, "light"],
    [1600, 1000, "dark"],
    [380, 800, "light"],
    [380, 800, "dark"],
  ] as const) {
    it(`shows every page at ${width} pixels, ${colorScheme}, without serious findings of axe`, async () => {
      await demo.page.setViewportSize({ width, height });
      await demo.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const name of PAGES) {
        await demo.open(name);
        await demo.page.waitForFunction(() => !document.body.textContent?.includes("Loading…"));
        const beyond = await demo.page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(beyond, `${name} is wider than the screen`).toBe(0);
        expect(await demo.axe(), name).toEqual([]);
        await demo.page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}.png` });
      }
    });
  }

  it("keeps its tables within their frames at every width", async () => {
    for (const name of ["domains", "peers"]) {
      await demo.open(name);
      await demo.page.locator(".rows [role=row]").first().waitFor();
      for (const width of [380, 600, 700, 800, 900, 1000, 1100, 1200, 1400, 1600]) {
        await demo.page.setViewportSize({ width, height: 900 });
        const beyond = await demo.page.evaluate(() => {
          const rows = [...document.querySelectorAll("[role=row]")].map((row) => [
            row.getBoundingClientRect().right,
            ...[...row.children].map((cell) => cell.getBoundingClientRect().right),
          ]);
          return Math.max(...rows.map(([edge, ...cells]) => Math.max(...cells) - edge));
        });
        expect(beyond, `${name} at ${width}`).toBeLessThanOrEqual(0);
      }
    }
  });

  it("follows the crawl while it is looked at", async () => {
    await demo.open("overview");
    const newest = () => demo.page.locator(".pages li .url").first().getAttribute("title");
    const before = await newest();
    await expect.poll(newest, { timeout: 30_000 }).not.toBe(before);
  });

  it("pauses and resumes the peer", async () => {
    await demo.page.setViewportSize({ width: 1200, height: 900 });
    await demo.open("overview");
    await demo.page.getByRole("button", { name: "Pause" }).click();
    await demo.page.getByRole("button", { name: "Resume" }).waitFor();
    expect(await demo.page.locator(".reason").textContent()).toContain("Paused");
    await demo.page.getByRole("button", { name: "Resume" }).click();
    await demo.page.getByRole("button", { name: "Pause" }).waitFor();
  });

  it("finds, sorts and refuses domains with the keyboard alone", async () => {
    await demo.open("domains");
    const rows = demo.page.locator(".rows [role=row]");
    await rows.first().waitFor();
    await demo.page.getByRole("button", { name: /^Domain/ }).click();
    const name = (await rows.first().locator(".name").textContent()) ?? "";
    await demo.page.getByLabel("Search domains").fill(name);
    await demo.page.locator(".rows").focus();
    await demo.page.keyboard.press("Enter");
    await demo.page.getByRole("button", { name: "Refuse this domain…" }).press("Enter");
    await demo.page.getByRole("button", { name: "Refuse", exact: true }).press("Enter");
    await demo.page.getByRole("button", { name: "Allow again" }).waitFor();
    expect(await demo.ask("/api/refusals")).toEqual([name]);
    await demo.page.getByRole("button", { name: "Allow again" }).press("Enter");
    await demo.page.getByRole("button", { name: "Refuse this domain…" }).waitFor();
  });

  it("watches a page until it is told not to", async () => {
    await demo.page.setViewportSize({ width: 1200, height: 900 });
    await demo.open("watching");
    await demo.page.getByLabel("Page or site to watch").fill("nothing like that");
    await demo.page.getByRole("button", { name: "Watch", exact: true }).click();
    await demo.page.locator("p.bad").waitFor();
    const rows = (await demo.ask("/api/pages")) as { url: string }[];
    const url = rows.at(-1)?.url ?? "";
    await demo.page.getByLabel("Page or site to watch").fill(url);
    await demo.page.getByRole("button", { name: "Watch", exact: true }).click();
    const end = demo.page.getByRole("button", { name: /^End the watch/ });
    await end.waitFor();
    await demo.page.getByText(/visited .*ago/).waitFor({ timeout: 60_000 });
    expect(await demo.axe()).toEqual([]);
    await demo.page.screenshot({ path: `${PICTURES}/watched-1200.png` });
    await end.click();
    await demo.page.getByText("Nothing is watched yet.").waitFor();
  });

  it("tells whose a domain is, and what was fetched for others", async () => {
    type Row = { domain: string; role: string; helped: { owner: string; pages: number } | null };
    await demo.haveOthersRefuse(3);
    const rows = async () => (await demo.ask("/api/domains?limit=1000")) as Row[];
    await expect
      .poll(async () => (await rows()).map(({ role }) => role), { timeout: 60_000 })
      .toEqual(expect.arrayContaining(["owner", "holder", "helper"]));
    const helped = (await rows()).find(({ role }) => role === "helper");
    await demo.page.setViewportSize({ width: 1600, height: 1000 });
    await demo.open("activity");
    await demo.open("domains");
    await demo.page.getByLabel("Whose domains").selectOption({ label: "Fetched for others" });
    await demo.page.getByLabel("Search domains").fill(helped?.domain ?? "");
    const row = demo.page.locator(".rows [role=row]").first();
    await expect
      .poll(() => row.textContent())
      .toContain(`for ${helped?.helped?.owner.slice(0, 8)}`);
    await row.click();
    await demo.page.getByText(/[\d,]+ pages?, .*, for/).waitFor();
    await expect
      .poll(() => demo.page.getByText("asking the ring…").count(), { timeout: 20_000 })
      .toBe(0);
    expect(await demo.axe()).toEqual([]);
    await demo.page.screenshot({ path: `${PICTURES}/helped-1600.png` });
    await demo.page.setViewportSize({ width: 380, height: 800 });
    await demo.page.screenshot({ path: `${PICTURES}/helped-380.png` });
    // A peer alone holds no copies.
    await demo.page.route("**/api/domains?*", (route) =>
      route.fulfill({ json: [{ ...helped, role: "owner", helped: null }] }),
    );
    await demo.open("activity");
    await demo.open("domains");
    await demo.page.getByLabel("Whose domains").selectOption({ label: "Copies for others" });
    await demo.page.getByText("This peer holds no copies").waitFor();
    await demo.page.unroute("**/api/domains?*");
    await demo.page.setViewportSize({ width: 1200, height: 900 });
  });

  it("draws of ten thousand domains only those in sight", async () => {
    const row = (i: number) => ({
      domain: `d${String(i).padStart(5, "0")}.example`,
      role: "owner",
      helped: null,
      fetched: (i * 7919) % 10_007,
      queued: 1,
      failed: 0,
      bytes: i,
      visited: 1,
      next: 0,
      delay_ms: 5000,
      state: { kind: "crawling" },
      robots: { kind: "known", delay_ms: null },
    });
    const all = Array.from({ length: 10_000 }, (_, i) => row(i));
    await demo.page.route("**/api/domains?*", (route) => {
      const after = new URL(route.request().url()).searchParams.get("after") ?? "";
      const from = after === "" ? 0 : all.findIndex(({ domain }) => domain === after) + 1;
      return route.fulfill({ json: all.slice(from, from + 1000) });
    });
    await demo.open("activity");
    await demo.open("domains");
    await demo.page.getByText("10,000 domains").waitFor();
    await demo.page.evaluate(() => {
      const tasks = ((globalThis as unknown as { tasks: number[] }).tasks = [] as number[]);
      new PerformanceObserver((list) =>
        tasks.push(...list.getEntries().map(({ duration }) => duration)),
      ).observe({ type: "longtask" });
    });
    expect(await demo.page.locator(".rows [role=row]").count()).toBeLessThan(60);
    await demo.page.locator(".rows").press("End");
    await demo.page.getByRole("button", { name: /^Received/ }).click();
    await demo.page.locator(".rows").press("Home");
    expect(await demo.page.locator(".rows [role=row] .name").first().textContent()).toBe(
      "d09999.example",
    );
    for (let times = 0; times < 20; times++) await demo.page.mouse.wheel(0, 4000);
    const tasks = await demo.page.evaluate(
      () => (globalThis as unknown as { tasks: number[] }).tasks,
    );
    console.log(
      `tasks above 50 ms while scrolling and sorting 10,000 rows: ${tasks.join(", ") || "none"}`,
    );
    expect(Math.max(0, ...tasks)).toBeLessThan(100);
    await demo.page.unroute("**/api/domains?*");
  });

  it("judges a setting while it is typed, saves a right one, and reads it back", async () => {
    await demo.open("settings");
    const memory = demo.page.getByLabel("Memory");
    await memory.fill("5");
    await demo.page.getByText("Accepted are 0 (no limit) or").waitFor();
    await memory.fill("300");
    await memory.press("Tab");
    await demo.page.getByText(/Saved at/).waitFor();
    expect(await demo.ask("/api/preferences")).toMatchObject({ memory_mib: 300 });
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, full" }).click();
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, off" }).waitFor();
    // It is painted at once and saved a moment later.
    await expect.poll(() => demo.preference("schedule.sunday")).toBe(`${"f".repeat(23)}-`);
    await demo.page.reload();
    expect(await demo.page.getByLabel("Memory").inputValue()).toBe("300");
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, off" }).waitFor();
  });

  it("changes every number and every choice there is, and reads it back", async () => {
    await demo.open("settings");
    const numbers = await demo.page
      .locator("input.number")
      .evaluateAll((all) => all.map(({ id }) => id));
    expect(numbers.length).toBeGreaterThan(12);
    for (const id of numbers) {
      const field = demo.page.locator(`#${id}`);
      const before = Number(await field.inputValue());
      // Less is always accepted where there is something; no limit becomes a large one.
      const value = String(before === 0 ? (id.endsWith("percent") ? 50 : 1024) : before - 1);
      await field.fill(value);
      await field.press("Tab");
      await expect
        .poll(() => demo.preference(id.replace("-", ".")), { message: id, timeout: 10_000 })
        .toBe(Number(value));
    }
    const changed = await demo.ask("/api/preferences");
    await demo.page.reload();
    await demo.page.locator("#idle_seconds").waitFor();
    for (const id of numbers) {
      const shown = await demo.page.locator(`#${id}`).inputValue();
      const told = id
        .replace("-", ".")
        .split(".")
        .reduce((at, name) => (at as Record<string, unknown>)[name], changed);
      expect(shown, id).toBe(String(told));
    }
    for (const [name, field] of [
      ["run", "run"],
      ["while_in_use", "while_in_use"],
      ["on_battery", "on_battery"],
      ["on_metered", "on_metered"],
      ["on_full_screen", "on_full_screen"],
      ["priority", "priority"],
      ["desktop-notifications", "desktop.notifications"],
      ["desktop-start_at_login", "desktop.start_at_login"],
      ["desktop-updates", "desktop.updates"],
      ["preset", "preset"],
    ]) {
      const ways = demo.page.locator(`input[type=radio][name="${name}"]`);
      const values = await ways.evaluateAll((all) =>
        all.map((way) => (way as HTMLInputElement).value),
      );
      for (const value of [...values.filter((value) => value !== "custom"), values[0]]) {
        // By its place: "on" is what a browser takes an unnamed one for, so it need not be written in the page.
        const way = ways.nth(values.indexOf(value));
        if (await way.isChecked()) continue;
        await way.check({ force: true });
        await expect
          .poll(() => demo.preference(field), { message: `${field}: ${value}`, timeout: 10_000 })
          .toBe(value);
      }
    }
    await demo.page.locator("#programs").fill("obs, steam");
    await demo.page.locator("#programs").press("Tab");
    await expect
      .poll(() => demo.ask("/api/preferences"), { timeout: 10_000 })
      .toMatchObject({ programs: ["obs", "steam"] });
  });

  it("knows all eight peers", async () => {
    await demo.open("peers");
    await expect
      .poll(
        async () => ((await demo.ask("/api/peers")) as { successors: string[] }).successors.length,
        { timeout: 60_000 },
      )
      .toBe(7);
    await expect
      .poll(() => demo.page.locator("main").textContent(), { timeout: 30_000 })
      .toMatch(/8 peers|7 other peers/);
  });

  it("shows a ring of ten thousand peers", async () => {
    const [network, digit] = [
      (await demo.ask("/api/peers")) as Record<string, unknown>,
      (i: number) => ((i * 2654435761) % 2 ** 32).toString(16).padStart(8, "0"),
    ];
    const ids = Array.from({ length: 600 }, (_, i) => digit(i + 1).repeat(8));
    const connected = ids.map((id, i) => ({
      id,
      route: `192.0.2.${i % 250}:7718`,
      dialler: "me",
      version: "apoidea/0.1.0",
      capabilities: 0,
      rtt_ms: i / 3,
      connected_s: 60 * i,
      useful: true,
      bytes_in: 1000 * i,
      bytes_out: 10 * i,
    }));
    const round_trips_ms = Object.fromEntries(connected.map(({ id, rtt_ms }) => [id, rtt_ms]));
    await demo.page.route("**/api/peers", (route) =>
      route.fulfill({
        json: {
          ...network,
          standing: { kind: "member", peers: 10_000 },
          size_estimate: 10_000,
          share: 1 / 10_000,
          successors: ids.slice(0, 16),
          fingers: ids.slice(16, 40),
          leaves: ids.slice(0, 32),
          predecessor: ids[41],
          connected,
          round_trips_ms,
        },
      }),
    );
    await demo.open("activity");
    await demo.page.evaluate(() => {
      const tasks = ((globalThis as unknown as { tasks: number[] }).tasks = [] as number[]);
      new PerformanceObserver((list) =>
        tasks.push(...list.getEntries().map(({ duration }) => duration)),
      ).observe({ type: "longtask" });
    });
    await demo.open("peers");
    await demo.page.getByText("about 10,000", { exact: true }).waitFor();
    expect(await demo.page.locator(".rows [role=row]").count()).toBeLessThan(60);
    const tasks = await demo.page.evaluate(
      () => (globalThis as unknown as { tasks: number[] }).tasks,
    );
    console.log(`tasks above 50 ms on the page of a ring of 10,000: ${tasks.join(", ") || "none"}`);
    expect(await demo.axe()).toEqual([]);
    await demo.page.screenshot({ path: `${PICTURES}/peers-10000.png`, fullPage: true });
    await demo.page.unroute("**/api/peers");
  });

  it("leaves the screensaver at the first key", async () => {
    await demo.open("screensaver");
    await demo.page.locator("canvas").waitFor();
    await demo.page.screenshot({ path: `${PICTURES}/screensaver.png` });
    await demo.page.keyboard.press("a");
    await demo.page.waitForSelector('h1:text-is("Overview")');
  });

  it("never made the browser complain", () => {
    expect(demo.complaints).toEqual([]);
  });

  it("says that it lost the peer, and why a browser is not let in", async () => {
    const stranger = await demo.page.context().browser()?.newContext();
    const page = await stranger?.newPage();
    await page?.goto(demo.address);
    expect(await page?.locator("h1").textContent()).toBe("This dashboard is yours alone");
    await stranger?.close();
    await demo.open("overview");
    await demo.page.context().setOffline(true);
    await demo.page.route("**/api/**", (route) => route.abort());
    await demo.page.reload().catch(() => undefined);
    await demo.page.context().setOffline(false);
    await demo.page.goto(`${demo.address}/#/overview`);
    await demo.page.getByText("The peer does not answer.").first().waitFor();
    await demo.page.unroute("**/api/**");
  });
});
