/** Asks the peer. Every answer is JSON; a refusal carries its reason as a sentence. */
import { key } from "./key";
import type {
  DomainRow,
  Hour,
  InviteAnswer,
  InviteContents,
  Joined,
  NetworkStatus,
  Note,
  OpenedInvite,
  PageEvent,
  Preferences,
  Range,
  SeedAnswer,
  StartSeeds,
  Status,
  WatchedChange,
  WatchList,
  Whereabouts,
} from "./model";

/** The peer said no, with a reason for people. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(reason);
  }
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    const headers: Record<string, string> = { Authorization: `Bearer ${key()}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "the peer does not answer");
  }
  const value: unknown = await answer.json().catch(() => undefined);
  if (answer.ok) return value as T;
  const reason = (value as { error?: unknown } | undefined)?.error;
  throw new Refused(
    answer.status,
    typeof reason === "string" ? reason : `the peer answered with ${answer.status}`,
  );
}

/** Domains that one question brings. */
const DOMAINS_AT_ONCE = 1000;

export const peer = {
  status: () => ask<Status>("GET", "/api/status"),
  pages: () => ask<PageEvent[]>("GET", "/api/pages"),
  history: () => ask<Hour[]>("GET", "/api/history"),
  journal: () => ask<Note[]>("GET", "/api/journal"),
  network: () => ask<NetworkStatus>("GET", "/api/peers"),
  whereabouts: () => ask<Whereabouts>("GET", "/api/places"),
  owners: (domain: string, count: number) =>
    ask<string[]>("GET", `/api/owners?domain=${encodeURIComponent(domain)}&count=${count}`),
  pause: () => ask<Status>("POST", "/api/pause"),
  resume: () => ask<Status>("POST", "/api/resume"),
  /** Asks the program that runs the peer to leave the ring and end. */
  quit: () => ask<Status>("POST", "/api/quit"),
  /** For "15m", "1h", "4h", "until tomorrow" or "until resumed". */
  snooze: (length: string) => ask<Status>("POST", "/api/snooze", { for: length }),
  preferences: () => ask<Preferences>("GET", "/api/preferences"),
  ranges: () => ask<Range[]>("GET", "/api/preferences/ranges"),
  /** Changes what is named and leaves the rest; a preset replaces everything. */
  prefer: (changes: Record<string, unknown>) =>
    ask<Preferences>("PUT", "/api/preferences", changes),
  seed: (urls: string[]) => ask<SeedAnswer>("POST", "/api/seeds", { urls }),
  /** The list where a crawl that knows nothing begins; one URL a line to change it. */
  startSeeds: () => ask<StartSeeds>("GET", "/api/seeds"),
  changeStartSeeds: (text: string) => ask<StartSeeds>("PUT", "/api/seeds", { text }),
  resetStartSeeds: () => ask<StartSeeds>("DELETE", "/api/seeds"),
  invite: () => ask<InviteAnswer>("GET", "/api/invite"),
  readInvite: (link: string) => ask<InviteContents>("POST", "/api/invite", { link }),
  /** Takes the invite that was opened outside, if one waits. */
  openedInvite: () => ask<OpenedInvite>("DELETE", "/api/invite"),
  join: (link: string, agreed: boolean) => ask<Joined>("POST", "/api/join", { link, agreed }),
  watches: () => ask<WatchList>("GET", "/api/watches"),
  /** A URL or the name of a site; for 90 days unless an end is named. */
  watch: (target: string, until: number | null) =>
    ask<WatchList>("POST", "/api/watches", { target, until }),
  endWatch: (target: string) => ask<WatchList>("DELETE", "/api/watches", { target }),
  /** What has changed, latest first. */
  changes: () => ask<WatchedChange[]>("GET", "/api/changes"),
  newFeed: () => ask<WatchList>("POST", "/api/feed"),
  refusals: () => ask<string[]>("GET", "/api/refusals"),
  refuse: (domain: string) => ask<string[]>("POST", "/api/refusals", { domain }),
  allow: (domain: string) => ask<string[]>("DELETE", "/api/refusals", { domain }),

  /** All domains, a thousand at a time, each portion handed on as it comes. */
  async domains(take: (rows: DomainRow[]) => void, most: number): Promise<void> {
    let [after, got] = ["", 0];
    while (got < most) {
      const rows = await ask<DomainRow[]>(
        "GET",
        `/api/domains?limit=${DOMAINS_AT_ONCE}&after=${encodeURIComponent(after)}`,
      );
      take(rows);
      got += rows.length;
      const last = rows.at(-1);
      if (rows.length < DOMAINS_AT_ONCE || !last) return;
      after = last.domain;
    }
  },
};
