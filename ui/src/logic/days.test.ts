import { describe, expect, it } from "vitest";
import { days, sum, upToDate } from "./days";

const NOON = new Date(2026, 2, 31, 12).getTime();
const HOUR = 3_600_000;

describe("days", () => {
  it("puts hours into the days of this time zone, today last", () => {
    const all = days(
      [
        { at: NOON - 24 * HOUR, pages: 3, bytes: 30 },
        { at: NOON, pages: 5, bytes: 50 },
        { at: NOON - HOUR, pages: 1, bytes: 1 },
      ],
      NOON,
    );
    expect(all).toHaveLength(30);
    expect(all.at(-1)).toMatchObject({ pages: 6, bytes: 51 });
    expect(all.at(-2)).toMatchObject({ pages: 3, bytes: 30 });
    expect(sum(all)).toEqual({ pages: 9, bytes: 81 });
  });
  it("leaves out what is older", () => {
    expect(sum(days([{ at: NOON - 40 * 24 * HOUR, pages: 9, bytes: 9 }], NOON)).pages).toBe(0);
  });
  it("adds what came since the count to today alone", () => {
    const all = days(
      [
        { at: NOON - 24 * HOUR, pages: 3, bytes: 30 },
        { at: NOON, pages: 5, bytes: 50 },
      ],
      NOON,
    );
    const now = upToDate(all, { pages: 100, bytes: 1000 }, { pages: 107, bytes: 1070 });
    expect(now.at(-1)).toMatchObject({ pages: 12, bytes: 120 });
    expect(now.at(-2)).toMatchObject({ pages: 3, bytes: 30 });
    expect(
      upToDate(all, { pages: 100, bytes: 1000 }, { pages: 1, bytes: 10 }).at(-1),
    ).toMatchObject({ pages: 5, bytes: 50 });
    expect(upToDate(all, undefined, { pages: 1, bytes: 1 })).toEqual(all);
  });
  it("has every day once, also when clocks change", () => {
    const starts = days([], NOON, 60).map((day) => new Date(day.at).toDateString());
    expect(new Set(starts).size).toBe(60);
  });
});
