import { describe, expect, it } from "vitest";
import { flow, total } from "./traffic";

describe("traffic", () => {
  it("adds up the kinds and makes a rate of two totals", () => {
    const kinds = { 1: { asked: 2, answered: 3, bytes_in: 100, bytes_out: 10 }, 7: { asked: 1, answered: 0, bytes_in: 50, bytes_out: 5 } };
    const now = total({ kinds } as never);
    expect(now).toEqual({ requests: 6, received: 150, sent: 15 });
    expect(flow({ requests: 0, received: 50, sent: 5 }, now, 2000)).toEqual({ requests: 3, received: 50, sent: 5 });
  });
  it("is never negative and never infinite", () => {
    const [much, none] = [{ requests: 9, received: 9, sent: 9 }, { requests: 0, received: 0, sent: 0 }];
    expect(flow(much, none, 1000)).toEqual(none);
    expect(flow(none, much, 0)).toEqual(none);
  });
});
