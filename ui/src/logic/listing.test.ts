import { describe, expect, it } from "vitest";
import type { DomainRow } from "../api/model";
import { click, matching, owner, sorted, standing, window, type Whose } from "./listing";

function row(domain: string, over: Partial<DomainRow> = {}): DomainRow {
  return {
    domain,
    role: "owner",
    helped: null,
    fetched: 0,
    queued: 0,
    failed: 0,
    bytes: 0,
    visited: 0,
    next: 0,
    delay_ms: 0,
    state: { kind: "crawling" },
    robots: { kind: "known", delay_ms: null },
    ...over,
  };
}

describe("listing", () => {
  const rows = [
    row("b.example", { fetched: 5 }),
    row("a.example", { fetched: 5, state: { kind: "rests", until: 9 } }),
    row("c.example", { fetched: 9, state: { kind: "stopped", why: "forbidden" } }),
  ];

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
  it("tells own domains from copies and from those fetched for others", () => {
    const help = { owner: "3fa29c1e77aa", pages: 2, failed: 0, bytes: 9, visited: 1 };
    const all = [
      row("a.example"),
      row("b.example", { role: "holder" }),
      row("c.example", { role: "holder", helped: help }),
      row("d.example", { role: "helper", helped: help, state: { kind: "helped" } }),
    ];
    const names = (whose: Whose) =>
      matching(all, "", "all", whose)
        .map((r) => r.domain[0])
        .join("");
    expect(names("everyone's")).toBe("abcd");
    expect(names("own")).toBe("a");
    expect(names("copies")).toBe("bc");
    expect(names("helped")).toBe("cd");
    expect(all.map(owner)).toEqual(["yours", "a copy", "for 3fa29c1e", "for 3fa29c1e"]);
    expect(standing(all[3])).toBe("helped");
  });
  it("draws only what can be seen", () => {
    expect(window(10_000, 400, 40, 4000)).toEqual({ first: 92, end: 118 });
    expect(window(3, 400, 40, 0)).toEqual({ first: 0, end: 3 });
    expect(window(3, 400, 40, 9000)).toEqual({ first: 3, end: 3 });
  });
});
