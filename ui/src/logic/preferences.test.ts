import { describe, expect, it } from "vitest";
import type { Preferences } from "../api/model";
import { always, change, hoursOf, paint, problem, programs, read, uses } from "./preferences";

const limit = { field: "full.cpu_percent", min: 1, max: 6400, zero_is_no_limit: true };
const number = { field: "idle_seconds", min: 1, max: 86_400, zero_is_no_limit: false };

describe("preferences", () => {
  it("finds and changes fields by their path", () => {
    expect(read({ full: { cpu_percent: 25 } } as Preferences, "full.cpu_percent")).toBe(25);
    expect(read({} as Preferences, "full.cpu_percent")).toBeUndefined();
    expect(change("full.cpu_percent", 30)).toEqual({ full: { cpu_percent: 30 } });
    expect(change("run", "never")).toEqual({ run: "never" });
  });
  it.each([
    ["25", ""],
    [" 0 ", ""],
    ["6401", "Accepted are 0 (no limit) or 1 to 6400."],
    ["", "A whole number, please."],
    ["-1", "A whole number, please."],
    ["2.5", "A whole number, please."],
    ["1e3", "A whole number, please."],
  ])("judges a limit of %j while it is typed", (text, expected) =>
    expect(problem(text, limit)).toBe(expected),
  );
  it("knows where nothing is not accepted", () => {
    expect(problem("0", number)).toBe("Accepted are 1 to 86400.");
    expect(problem("180", undefined)).toBe("");
  });
  it("paints one hour of the week and leaves the others", () => {
    const week = paint(always("f"), 6, 23, "-");
    expect(hoursOf(week, 6, 23)).toBe("-");
    expect(week.sunday).toBe(`${"f".repeat(23)}-`);
    expect(week.monday).toBe("f".repeat(24));
    expect(paint(week, 0, 0, "g").monday).toBe(`g${"f".repeat(23)}`);
  });
  it("reads programs one a line or with commas, each once", () => {
    expect(programs(" obs, steam\nobs\n\n")).toEqual(["obs", "steam"]);
  });
  it("says what the crawl may use, limits and the lack of them", () => {
    const full = { cpu_percent: 25, down_kib: 2048, up_kib: 256, fetches: 32 };
    const some = { full, memory_mib: 256, disk_mib: 2048, run: "when_idle" } as Preferences;
    expect(uses(some)).toBe(
      "Up to 25 % of one CPU core, 256 MiB of memory, 2 MiB a second of your connection and 2 GiB of disk, only while you are away.",
    );
    const none = {
      full: { ...full, cpu_percent: 0, down_kib: 0 },
      memory_mib: 0,
      disk_mib: 0,
      run: "always",
    } as Preferences;
    expect(uses(none)).toBe(
      "Up to all of the CPU, as much memory as it needs, all of your connection and as much disk as its settings allow.",
    );
  });
});
