import { describe, expect, it } from "vitest";
import { cellOf, comb, fade, HALF_LIFE, strips } from "./comb";

describe("comb", () => {
  it("covers the screen with a bounded number of cells", () => {
    for (const [width, height] of [
      [380, 800],
      [1920, 1080],
      [7680, 4320],
    ]) {
      const { cells } = comb(width, height);
      expect(cells.length).toBeGreaterThan(50);
      expect(cells.length).toBeLessThan(1100);
      expect(Math.max(...cells.map((cell) => cell.x))).toBeGreaterThanOrEqual(width);
      expect(Math.max(...cells.map((cell) => cell.y))).toBeGreaterThanOrEqual(height);
    }
  });
  it("gives a site always the same cell, and sites different ones", () => {
    expect(cellOf("a.example", 500)).toBe(cellOf("a.example", 500));
    const used = new Set(Array.from({ length: 500 }, (_, i) => cellOf(`site-${i}.example`, 500)));
    expect(used.size).toBeGreaterThan(250);
    expect(cellOf("a.example", 0)).toBe(0);
  });
  it("fades to the dark", () => {
    const cells = [{ x: 0, y: 0, light: 1 }];
    fade(cells, HALF_LIFE);
    expect(cells[0].light).toBeCloseTo(0.5);
    for (let i = 0; i < 20; i += 1) fade(cells, HALF_LIFE);
    expect(cells[0].light).toBe(0);
  });
  it("has every cell in one strip, and those of a strip close together", () => {
    const { cells } = comb(1280, 900);
    const all = strips(cells, 900, 8);
    expect(all.flat()).toHaveLength(cells.length);
    for (const strip of all)
      expect(
        Math.max(...strip.map(({ y }) => y)) - Math.min(...strip.map(({ y }) => y)),
      ).toBeLessThan(900 / 4);
  });
});
