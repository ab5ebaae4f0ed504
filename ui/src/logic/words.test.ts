import { describe, expect, it } from "vitest";
import type { DomainStatus, NetworkState, PageOutcome, RobotsStatus } from "../api/model";
import { attention, domain, network, outcome, pause, robots, sentence } from "./words";

const NOW = 1_000_000;
const MINUTE = 60_000;

describe("words", () => {
  it.each<[DomainStatus, string]>([
    [{ kind: "crawling" }, "crawling"],
    [{ kind: "rests", until: NOW + 5 * MINUTE }, "rests for 5 min"],
    [{ kind: "rests", until: NOW - MINUTE }, "rests for 0 s"],
    [{ kind: "stopped", why: "challenged" }, "stopped: it wants to see a human"],
    [{ kind: "refused" }, "refused by you"],
    [{ kind: "helped" }, "helped: its owner crawls it"],
  ])("says of a domain that is %j: %s", (status, text) => {
    expect(domain(status, NOW)).toBe(text);
  });
  it.each<[RobotsStatus, string]>([
    [{ kind: "not_asked" }, "not asked yet"],
    [{ kind: "silent", until: NOW + 3 * MINUTE }, "does not answer; asked again in 3 min"],
    [{ kind: "known", delay_ms: null }, "known"],
    [{ kind: "known", delay_ms: 2500 }, "known, asks for 2.5 s between requests"],
    [{ kind: "left_to_owner" }, "heeded by its owner"],
  ])("says of a robots.txt that is %j: %s", (status, text) => {
    expect(robots(status, NOW)).toBe(text);
  });
  it.each<[PageOutcome, string]>([
    ["page", "page"],
    ["no_answer_in_time", "no answer in time"],
    ["status_404", "status 404"],
  ])("says of the outcome %s: %s", (code, text) => {
    expect(outcome(code)).toBe(text);
  });
  it.each<[NetworkState, string]>([
    [{ kind: "outside" }, "Outside the ring"],
    [{ kind: "joining" }, "Joining the ring"],
    [{ kind: "alone" }, "Alone on the ring"],
    [{ kind: "member", peers: 12_000 }, "Member of a ring of about 12,000 peers"],
    [{ kind: "fixed", peers: 8, down: 1 }, "Member of a fixed network of 8 peers, 1 of them down"],
  ])("begins a sentence about %j: %s", (state, text) => {
    expect(sentence(network(state))).toBe(text);
  });
  it("says what needs the volunteer, with the cause", () => {
    expect(attention({ kind: "archive", error: "No space left on device" })).toContain(
      "No space left on device",
    );
    expect(attention({ kind: "writer_ended" })).toContain("restart the peer");
  });
  it("tells a pause that is not known from one that is another peer's matter", () => {
    expect(pause(5000, "owner")).toBe("5 s between requests");
    expect(pause(0, "owner")).toBe("not asked yet");
    expect(pause(0, "helper")).toBe("kept by its owner");
  });
});
