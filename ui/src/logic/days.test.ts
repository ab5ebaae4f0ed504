import { describe, expect, it } from "vitest";
import { days, sum } from "./days";

const NOON = new Date(2026, 2, 31, 12).getTime();
const HOUR = 3_600_000;

describe("days", () => {
  it("puts hours into the days of this time zone, today last", () => {
    const all = days([{ at: NOON - 24 * HOUR, pages: 3, bytes: 30 }, { at: NOON, pages: 5, bytes: 50 }, { at: NOON - HOUR, pages: 1, bytes: 1 }], NOON);
    expect(all).toHaveLength(30);
    expect(all.at(-1)).toMatchObject({ pages: 6, bytes: 51 });
    expect(all.at(-2)).toMatchObject({ pages: 3, bytes: 30 });
    expect(sum(all)).toEqual({ pages: 9, bytes: 81 });
  });
  it("leaves out what is older", () => {
    expect(sum(days([{ at: NOON - 40 * 24 * HOUR, pages: 9, bytes: 9 }], NOON)).pages).toBe(0);
  });
  it("has every day once, also when clocks change", () => {
    const starts = days([], NOON, 60).map((day) => new Date(day.at).toDateString());
    expect(new Set(starts).size).toBe(60);
  });
});
