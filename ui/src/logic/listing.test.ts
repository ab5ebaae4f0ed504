import { describe, expect, it } from "vitest";
import type { DomainRow } from "../api/model";
import { click, matching, sorted, standing, window } from "./listing";

function row(domain: string, over: Partial<DomainRow> = {}): DomainRow {
  return { domain, fetched: 0, queued: 0, failed: 0, bytes: 0, visited: 0, next: 0, delay_ms: 0, state: "crawling", robots: "known", ...over };
}

describe("listing", () => {
  const rows = [row("b.example", { fetched: 5 }), row("a.example", { fetched: 5, state: "rests for 3 min" }), row("c.example", { fetched: 9, state: "stopped: it forbids us" })];

  it("sorts by a number, and by name where that is equal", () => {
    const names = sorted(rows, { column: "fetched", direction: "descending" }).map((r) => r.domain);
    expect(names).toEqual(["c.example", "a.example", "b.example"]);
  });
  it("sorts by name in both directions and leaves its input alone", () => {
    expect(sorted(rows, { column: "domain", direction: "descending" })[0].domain).toBe("c.example");
    expect(rows[0].domain).toBe("b.example");
  });
  it("turns the order round on the second click", () => {
    const once = click({ column: "domain", direction: "ascending" }, "queued");
    expect(once).toEqual({ column: "queued", direction: "descending" });
    expect(click(once, "queued").direction).toBe("ascending");
  });
  it("finds by part of the name and by standing", () => {
    expect(matching(rows, " A.EX", "all").map((r) => r.domain)).toEqual(["a.example"]);
    expect(matching(rows, "", "stopped").map((r) => r.domain)).toEqual(["c.example"]);
    expect(rows.map(standing)).toEqual(["crawling", "resting", "stopped"]);
  });
  it("draws only what can be seen", () => {
    expect(window(10_000, 400, 40, 4000)).toEqual({ first: 92, end: 118 });
    expect(window(3, 400, 40, 0)).toEqual({ first: 0, end: 3 });
    expect(window(3, 400, 40, 9000)).toEqual({ first: 3, end: 3 });
  });
});
