import { describe, expect, it } from "vitest";
import type {
  DomainStatus,
  EntryStatus,
  Missing,
  NetworkState,
  OwnWatch,
  PageOutcome,
  RobotsStatus,
  Standing,
  Status,
} from "../api/model";
import {
  attention,
  checked,
  domain,
  entry,
  entryWay,
  lie,
  missing,
  network,
  noPage,
  outcome,
  pause,
  robots,
  sentence,
  watch,
} from "./words";

const NOW = 1_000_000;
const MINUTE = 60_000;

describe("words", () => {
  it.each<[Partial<Status> | undefined, string]>([
    [undefined, "without the peer"],
    [{ state: "paused", queued: 9 }, "paused"],
    [{ missing: { kind: "internet" }, queued: 9 }, "no Internet connection; it begins by itself"],
    [{ missing: { kind: "peers", ways: 2 }, queued: 9 }, "on their way"],
    [{ network: { kind: "joining" } }, "looked for"],
    [{ network: { kind: "member", peers: 3 } }, "Wait for the other peers"],
    [{ network: { kind: "alone" } }, "Add an address"],
  ])("says why there is no page while the peer is %j: %s", (status, text) => {
    const rest = { state: "crawling", missing: null, queued: 0, network: { kind: "alone" } };
    expect(noPage(status && ({ ...rest, ...status } as Status))).toContain(text);
  });

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
  it.each<[Partial<OwnWatch>, string]>([
    [{ standing: "asking" }, "its owner has not answered yet"],
    [{ standing: "full" }, "too many peers watch this site; tried again"],
    [{ standing: "unknown" }, "not crawled yet"],
    [{}, "not visited yet"],
    [{ visited: NOW - 5 * MINUTE }, "visited 5 min ago"],
    [{ target: "example.org" }, "watched"],
  ])("says of a watch that is %j: %s", (of, text) => {
    const known = { target: "https://example.org/", since: 0, until: 0, told: 0, visited: 0 };
    expect(watch({ ...known, standing: "kept", ...of }, NOW)).toBe(text);
  });
  it("says what was found of another peer's work", () => {
    const standing: Standing = {
      peer: "ab",
      checked: 412,
      right: 1,
      distrusted_until: null,
      lies: [],
    };
    expect(checked(standing)).toBe("checked 412 times, right once");
    expect(lie(standing)).toBe("");
    const at = Date.UTC(2026, 4, 12, 12);
    const liar = { ...standing, lies: [{ kind: "dropped_links" as const, count: 37, at }] };
    expect(lie(liar)).toBe("dropped 37 links on 12 May");
    const keeper = { ...standing, lies: [{ kind: "lost_pages" as const, count: 1, at }] };
    expect(lie(keeper)).toBe("could not show 1 page on 12 May");
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
  it.each<[Missing, string]>([
    [{ kind: "internet" }, "There is no Internet connection"],
    [{ kind: "name_server" }, "The name servers do not answer"],
    [{ kind: "touch" }, "Cut off from the other peers; they may crawl in its place"],
    [{ kind: "peers", ways: 1 }, "Nobody was found yet, 1 way tried"],
    [{ kind: "peers", ways: 3 }, "Nobody was found yet, 3 ways tried"],
  ])("says what is missing with %j: %s", (lack, text) => {
    expect(missing(lack)).toBe(text);
  });
  it.each<[EntryStatus, string]>([
    [{ way: "remembered", state: "nothing", asked: 0, answered: 0 }, "none known"],
    [{ way: "configured", state: "silent", asked: 2, answered: 0 }, "none of 2 answers"],
    [{ way: "local_network", state: "silent", asked: 0, answered: 0 }, "nobody answers"],
    [{ way: "rendezvous", state: "nothing", asked: 0, answered: 0 }, "nobody is there"],
    [{ way: "rendezvous", state: "found", asked: 5, answered: 1 }, "1 of 5 answered"],
  ])("says of a way that is %j: %s", (status, text) => {
    expect(entry(status)).toBe(text);
    expect(entryWay(status.way)).not.toBe("");
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
