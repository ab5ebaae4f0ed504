import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { every } from "./every";

class Page extends EventTarget {
  hidden = false;

  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

describe("every", () => {
  let page: Page;
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("document", (page = new Page()));
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("refreshes at once and then by the clock, until it is ended", () => {
    const refresh = vi.fn();
    const end = every(1000, refresh);
    expect(refresh).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(2000);
    expect(refresh).toHaveBeenCalledTimes(3);
    end();
    page.show(true);
    vi.advanceTimersByTime(5000);
    expect(refresh).toHaveBeenCalledTimes(3);
  });

  it("rests out of sight and makes up for it when it is back", () => {
    const refresh = vi.fn();
    every(1000, refresh);
    page.show(false);
    vi.advanceTimersByTime(5000);
    expect(refresh).toHaveBeenCalledTimes(1);
    page.show(true);
    expect(refresh).toHaveBeenCalledTimes(2);
  });

  it("does not hurry because somebody looked away for a moment", () => {
    const refresh = vi.fn();
    every(1000, refresh);
    page.show(false);
    page.show(true);
    expect(refresh).toHaveBeenCalledTimes(1);
  });
});
