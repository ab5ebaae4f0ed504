import { describe, expect, it } from "vitest";
import type { Note, PageEvent, PageOutcome } from "../api/model";
import { merge } from "./log";

const page = (at: number, outcome: PageOutcome): PageEvent => ({
  at,
  url: `http://a.example/${at}`,
  outcome,
  bytes: 2048,
  links: 3,
  millis: 5,
});
const notes: Note[] = [
  { at: 30, topic: "owner", text: "You refused b.example" },
  { at: 5, topic: "state", text: "Crawling" },
];
const pages = [page(20, "page"), page(20, "page"), page(10, "status_404")];
const none = new Set<never>();

describe("log", () => {
  it("has the newest first, whatever it is about, and nothing twice", () => {
    expect(merge(notes, pages, none, "").map((line) => [line.at, line.about])).toEqual([
      [30, "you"],
      [20, "pages"],
      [10, "failures"],
      [5, "state"],
    ]);
  });
  it("shows only what is wanted", () => {
    expect(
      merge(notes, pages, new Set(["pages", "state"] as const), "").map((line) => line.at),
    ).toEqual([30, 10]);
    expect(merge(notes, pages, none, "REFUSED").map((line) => line.at)).toEqual([30]);
  });
  it("says what came of a page", () => {
    expect(merge([], pages, none, "").map((line) => line.text)).toEqual([
      "a.example/20: 2.0 KiB, 3 links",
      "a.example/10: status 404",
    ]);
  });
});
