import { describe, expect, it } from "vitest";
import { tally } from "./atlas";

describe("atlas", () => {
  const whereabouts = {
    own: "DE",
    peers: [
      ["a", "FR"],
      ["b", "FR"],
      ["c", null],
    ] as [string, string | null][],
  };

  it("counts peers by country and those nearby", () => {
    const { places, words } = tally(whereabouts, false);
    expect(places).toEqual([
      { code: "FR", count: 2, isOwn: false },
      { code: "DE", count: 0, isOwn: true },
    ]);
    expect(words).toBe("2 peers in 1 country, 1 in your own network.");
  });
  it("does not show the own place when that is hidden", () => {
    expect(tally(whereabouts, true).places.map(({ code }) => code)).toEqual(["FR"]);
    const shared = tally({ own: "FR", peers: whereabouts.peers }, true).places;
    expect(shared).toEqual([{ code: "FR", count: 2, isOwn: false }]);
  });
  it("says when there is nobody", () => {
    expect(tally({ own: null, peers: [] }, false)).toEqual({
      places: [],
      words: "No other peer is connected.",
    });
  });
});
