import { describe, expect, it } from "vitest";
import { ago, bare, bytes, counted, percent, rate, span, whole } from "./format";

describe("format", () => {
  it("writes whole numbers with separators", () => {
    expect(whole(1234567.4)).toBe("1,234,567");
  });
  it.each([
    [0, "0 pages"],
    [1, "1 page"],
    [2000, "2,000 pages"],
  ])("counts %d of something: %s", (n, text) => {
    expect(counted(n, "page")).toBe(text);
  });
  it.each([
    [0, "0"],
    [0.034, "0.03"],
    [3.44, "3.4"],
    [9.96, "10"],
    [1234.5, "1,235"],
  ])("writes the rate %d as %s", (n, text) => {
    expect(rate(n)).toBe(text);
  });
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [1024 * 1023.6, "1.0 MiB"],
    [150 * 1024 ** 2, "150 MiB"],
    [2.5 * 1024 ** 3, "2.5 GiB"],
    [9e30, "7993605777301127 PiB"],
  ])("writes %d bytes as %s", (n, text) => expect(bytes(n)).toBe(text));
  it.each([
    [0, "0 %"],
    [0.001, "0.10 %"],
    [0.034, "3.4 %"],
    [0.5, "50 %"],
    [1, "100 %"],
  ])("writes the share %d as %s", (n, text) => {
    expect(percent(n)).toBe(text);
  });
  it.each([
    [-5, "0 s"],
    [2500, "2.5 s"],
    [5000, "5 s"],
    [90_000, "90 s"],
    [600_000, "10 min"],
    [7_200_000, "2 h"],
    [864_000_000, "10 days"],
  ])("writes %d ms as %s", (n, text) => expect(span(n)).toBe(text));
  it("says how long ago a moment was", () => {
    expect(ago(0, 5000)).toBe("never");
    expect(ago(4000, 5000)).toBe("just now");
    expect(ago(5000, 35_000)).toBe("30 s ago");
  });
  it("shows URLs as people read them", () => {
    expect(bare("https://a.example/b/?c")).toBe("a.example/b/?c");
    expect(bare("http://a.example/")).toBe("a.example");
  });
});
