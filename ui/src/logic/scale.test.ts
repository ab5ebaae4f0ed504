import { describe, expect, it } from "vitest";
import { lines } from "./scale";

describe("the lines behind a chart", () => {
  it("are at round values, three or four of them", () => {
    expect(lines(8)).toEqual([2, 4, 6, 8]);
    expect(lines(8.5)).toEqual([5, 10, 15]);
    expect(lines(38)).toEqual([10, 20, 30, 40]);
    expect(lines(70)).toEqual([20, 40, 60, 80]);
    expect(lines(1234)).toEqual([500, 1000, 1500]);
  });

  it("always have room for what is drawn", () => {
    for (let most = 0.1; most < 1e6; most *= 1.07) {
      const all = lines(most);
      expect(all.at(-1)).toBeGreaterThanOrEqual(most);
      expect(all.length).toBeGreaterThanOrEqual(3);
      expect(all.length).toBeLessThanOrEqual(4);
    }
  });

  it("are there before anything has happened", () => {
    expect(lines(0)).toEqual([0.5, 1, 1.5]);
  });
});
