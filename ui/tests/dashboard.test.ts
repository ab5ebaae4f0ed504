import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Demo } from "./demo";

const PAGES = ["overview", "domains", "peers", "settings", "activity", "about", "welcome"];
const PICTURES = process.env.APOIDEA_PICTURES ?? "../target/artefacts/dashboard";

let demo: Demo;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  demo = await Demo.start();
  await demo.page.waitForFunction(() => document.querySelectorAll(".pages li").length > 3, undefined, { timeout: 60_000 });
});
afterAll(() => demo?.stop());

describe("the dashboard of a live peer", () => {
  for (const [width, height, colorScheme] of [[1600, 1000, "light"], [1600, 1000, "dark"], [380, 800, "light"], [380, 800, "dark"]] as const) {
    it(`shows every page at ${width} pixels, ${colorScheme}, without serious findings of axe`, async () => {
      await demo.page.setViewportSize({ width, height });
      await demo.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const name of PAGES) {
        await demo.open(name);
        await demo.page.waitForFunction(() => !document.body.textContent?.includes("Loading…"));
        const beyond = await demo.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(beyond, `${name} is wider than the screen`).toBe(0);
        expect(await demo.axe(), name).toEqual([]);
        await demo.page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}.png` });
      }
    });
  }

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
    const refused = await demo.page.evaluate(() => fetch("/api/refusals").then((answer) => answer.json()));
    expect(refused).toEqual([name]);
    await demo.page.getByRole("button", { name: "Allow again" }).press("Enter");
    await demo.page.getByRole("button", { name: "Refuse this domain…" }).waitFor();
  });

  it("draws of ten thousand domains only those in sight", async () => {
    const row = (i: number) => ({ domain: `d${String(i).padStart(5, "0")}.example`, fetched: (i * 7919) % 10_007, queued: 1, failed: 0, bytes: i, visited: 1, next: 0, delay_ms: 5000, state: "crawling", robots: "known" });
    const all = Array.from({ length: 10_000 }, (_, i) => row(i));
    await demo.page.route("**/api/domains?*", (route) => {
      const after = new URL(route.request().url()).searchParams.get("after") ?? "";
      const from = after === "" ? 0 : all.findIndex(({ domain }) => domain === after) + 1;
      return route.fulfill({ json: all.slice(from, from + 1000) });
    });
    await demo.open("activity");
    await demo.open("domains");
    await demo.page.getByText("10,000 domains").waitFor();
    expect(await demo.page.locator(".rows [role=row]").count()).toBeLessThan(60);
    await demo.page.locator(".rows").press("End");
    await demo.page.getByRole("button", { name: /^Received/ }).click();
    await demo.page.locator(".rows").press("Home");
    expect(await demo.page.locator(".rows [role=row] .name").first().textContent()).toBe("d09999.example");
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
    const preferences = await demo.page.evaluate(() => fetch("/api/preferences").then((answer) => answer.json()));
    expect(preferences.memory_mib).toBe(300);
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, full" }).click();
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, off" }).waitFor();
    await demo.page.reload();
    expect(await demo.page.getByLabel("Memory").inputValue()).toBe("300");
    await demo.page.getByRole("gridcell", { name: "Sunday 23:00, off" }).waitFor();
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
