import { describe, expect, it } from "vitest";
import type { NetworkStatus } from "../api/model";
import { arc, drawn, MOST_OTHERS, place, point, turn } from "./ring";

const id = (first: string) => first.padEnd(64, "0");

describe("ring", () => {
  it("places ids by their value", () => {
    expect(place(id("0"))).toBe(0);
    expect(place(id("8"))).toBe(0.5);
    expect(place(id("c"))).toBe(0.75);
  });
  it("turns clockwise from this peer, past zero too", () => {
    expect(turn(id("c"), id("0"))).toBeCloseTo(0.25);
    expect(turn(id("0"), id("c"))).toBeCloseTo(0.75);
    expect(turn(id("4"), id("4"))).toBe(0);
  });
  it("has this peer at the top and a quarter turn to the right", () => {
    expect(point(0, 10)).toEqual({ x: 0, y: -10 });
    expect(point(0.25, 10).x).toBeCloseTo(10);
  });
  it("draws an arc that ends at the top", () => {
    expect(arc(0.25, 10)).toBe("M-10.00 0.00A10 10 0 0 1 0 -10");
    expect(arc(1, 10)).toContain(" 0 1 1 0 -10");
  });
  it("draws neighbours and fingers always, and of hundreds of others the busiest", () => {
    const ids = Array.from({ length: 300 }, (_, i) => id((i + 16).toString(16).padStart(4, "0")));
    const network = {
      me: id("0"),
      successors: ids.slice(0, 16),
      fingers: ids.slice(10, 30),
      leaves: ids.slice(0, 20),
      predecessor: ids[299],
      connected: ids.map((id) => ({ id })),
    } as NetworkStatus;
    const { peers, leftOut } = drawn(network, new Map([[ids[200], 5000]]));
    expect(peers.filter(({ role }) => role === "successor").map(({ id }) => id)).toEqual(
      ids.slice(0, 16),
    );
    expect(peers.filter(({ role }) => role === "finger").map(({ id }) => id)).toEqual(
      ids.slice(16, 30),
    );
    expect(peers[0]).toEqual({ id: ids[200], role: "other" });
    expect(peers).toHaveLength(30 + MOST_OTHERS);
    expect(leftOut).toBe(270 - MOST_OTHERS);
    expect(peers.at(-1)?.role).toBe("successor");
  });
});
