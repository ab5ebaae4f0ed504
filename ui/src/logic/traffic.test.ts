import { describe, expect, it } from "vitest";
import { carried, flow, rates, thickness, total } from "./traffic";

describe("traffic", () => {
  it("adds up the kinds and makes a rate of two totals", () => {
    const kinds = {
      1: { asked: 2, answered: 3, bytes_in: 100, bytes_out: 10 },
      7: { asked: 1, answered: 0, bytes_in: 50, bytes_out: 5 },
    };
    const now = total({ kinds } as never);
    expect(now).toEqual({ requests: 6, received: 150, sent: 15 });
    expect(flow({ requests: 0, received: 50, sent: 5 }, now, 2000)).toEqual({
      requests: 3,
      received: 50,
      sent: 5,
    });
  });
  it("is never negative and never infinite", () => {
    const [much, none] = [
      { requests: 9, received: 9, sent: 9 },
      { requests: 0, received: 0, sent: 0 },
    ];
    expect(flow(much, none, 1000)).toEqual(none);
    expect(flow(none, much, 0)).toEqual(none);
  });
  it("knows with whom, once it has looked twice", () => {
    const view = (id: string, bytes_in: number) => ({ id, bytes_in, bytes_out: 100 }) as never;
    const [before, after] = [
      carried([view("a", 0), view("b", 900)]),
      carried([view("a", 4000), view("b", 50), view("c", 7)]),
    ];
    expect(rates(before, after, 2000)).toEqual(
      new Map([
        ["a", 2000],
        ["b", 0],
      ]),
    );
    expect(rates(before, after, 0)).toEqual(new Map());
  });
  it("draws more for more, but never a beam", () => {
    expect(thickness(0)).toBe(0.9);
    expect(thickness(1e3)).toBeLessThan(thickness(1e5));
    expect(thickness(1e15)).toBe(6);
  });
});
