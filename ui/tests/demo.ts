/** Eight peers that crawl the made-up web together, and a browser that looks at the first one's dashboard. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

const PROGRAM = process.env.APOIDEA ?? "../target/debug/apoidea";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = createRequire(import.meta.url).resolve("axe-core");
/** Console lines that are no fault of the page: a stream that ends because the page is left. */
const HARMLESS = /ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_NETWORK_CHANGED/;

const PEERS = 8;
/** Of the ring: some ten of the 200 hosts. */
const LEAST_SHARE = 0.04;
/** Milliseconds that eight peers need to find each other on a busy machine. */
const SETTLE = 60_000;

export class Demo {
  /** What the browser complained about. */
  readonly complaints: string[] = [];

  private constructor(
    private readonly peer: ChildProcess,
    private readonly browser: Browser,
    readonly page: Page,
    readonly address: string,
    private readonly folder: string,
  ) {
    page.on("console", (line) => {
      if (["error", "warning"].includes(line.type()) && !HARMLESS.test(line.text()))
        this.complaints.push(line.text());
    });
    page.on("pageerror", (error) => this.complaints.push(error.message));
  }

  /** Where a peer lands on the ring is chance; one that owns next to nothing has nothing to show. */
  static async start(tries = 6): Promise<Demo> {
    const demo = await Demo.begin();
    const share = async () => {
      const { successors, share } = (await demo.ask("/api/peers")) as {
        successors: string[];
        share: number;
      };
      return successors.length === PEERS - 1 ? share : undefined;
    };
    let own = await share();
    for (
      const until = Date.now() + SETTLE;
      own === undefined && Date.now() < until;
      own = await share()
    )
      await demo.page.waitForTimeout(200);
    if ((own ?? 0) >= LEAST_SHARE || tries === 1) return demo;
    await demo.stop();
    return Demo.start(tries - 1);
  }

  private static async begin(): Promise<Demo> {
    const folder = mkdtempSync(join(tmpdir(), "apoidea-dashboard-"));
    const words = [
      "demo",
      "--peers",
      `${PEERS}`,
      "--hosts",
      "200",
      "--pages",
      "100000",
      "--delay",
      "500",
    ];
    const peer = spawn(PROGRAM, words, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: folder },
    });
    const link = await new Promise<string>((found, failed) => {
      let words = "";
      peer.stdout.on("data", (more: Buffer) => {
        words += more.toString();
        const link = /http:\/\/127\.0\.0\.1:\d+\/open\?key=\w+/.exec(words)?.[0];
        if (link) found(link);
      });
      peer.on("exit", (code) => failed(new Error(`the demo ended with ${code}:\n${words}`)));
    });
    const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
    const page = await browser.newPage();
    const demo = new Demo(peer, browser, page, new URL(link).origin, folder);
    await page.goto(link);
    return demo;
  }

  /** Goes to a page of the dashboard and waits for its heading. */
  async open(name: string): Promise<void> {
    await this.page.goto(`${this.address}/#/${name}`);
    if (!["welcome", "screensaver"].includes(name))
      await this.page.waitForSelector(`h1:text-is("${name[0].toUpperCase()}${name.slice(1)}")`);
  }

  /** Serious findings of axe on the page as it is. */
  async axe(): Promise<string[]> {
    // The dashboard's policy forbids scripts that are not the peer's own; a debugger may run them.
    await this.page.evaluate(readFileSync(AXE, "utf8"));
    return this.page.evaluate(async () => {
      const axe = (
        globalThis as unknown as {
          axe: {
            run(): Promise<{
              violations: {
                id: string;
                impact: string;
                nodes: { html: string; any: { message: string }[] }[];
              }[];
            }>;
          };
        }
      ).axe;
      const { violations } = await axe.run();
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).join(" | ")}`,
        );
    });
  }

  /** What the peer says at this path of its API. */
  async ask(path: string): Promise<unknown> {
    return this.page.evaluate((path) => {
      const headers = { authorization: `Bearer ${localStorage.getItem("api-key")}` };
      return fetch(path, { headers }).then((answer) => answer.json());
    }, path);
  }

  /** Has every other peer refuse domains of its own, which its neighbours then fetch for it. */
  async haveOthersRefuse(domains: number): Promise<void> {
    const [swarm] = readdirSync(this.folder);
    for (let number = 1; number < PEERS; number++) {
      const said = (name: string) =>
        readFileSync(join(this.folder, swarm, `peer-${number}`, name), "utf8").trim();
      const headers = {
        authorization: `Bearer ${said("api-token")}`,
        "content-type": "application/json",
      };
      const ask = async (path: string, body?: unknown) =>
        (
          await fetch(`${said("api-address")}${path}`, {
            headers,
            ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
          })
        ).json();
      const rows = (await ask("/api/domains?limit=1000")) as {
        domain: string;
        role: string;
        queued: number;
      }[];
      const own = rows.filter(({ role, queued }) => role === "owner" && queued > 0);
      for (const { domain } of own.slice(0, domains)) await ask("/api/refusals", { domain });
    }
  }

  /** A preference by its path, such as `full.cpu_percent`. */
  async preference(path: string): Promise<unknown> {
    return path
      .split(".")
      .reduce(
        (at, name) => (at as Record<string, unknown>)[name],
        await this.ask("/api/preferences"),
      );
  }

  async stop(): Promise<void> {
    await this.browser.close();
    this.peer.kill("SIGINT");
    await new Promise((ended) => this.peer.once("exit", ended));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
