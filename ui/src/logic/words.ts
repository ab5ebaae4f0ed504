/** The peer's enumerations as English. Every sentence about them is made here, so that a translation begins here. */
import type {
  Attention,
  ChangeKind,
  DomainStatus,
  EntryStatus,
  EntryWay,
  LieKind,
  Missing,
  NetworkState,
  OwnWatch,
  PageOutcome,
  RobotsStatus,
  Role,
  Standing,
  Status,
  StopReason,
  WatchedChange,
} from "../api/model";
import { ago, counted, day, span, whole } from "./format";

const STOPPED: Record<StopReason, string> = {
  forbidden: "it forbids us",
  challenged: "it wants to see a human",
  unreachable: "no answer for a week",
};

const CHANGED: Record<ChangeKind, string> = {
  changed: "changed",
  reads_now: "changed; this is how it begins now",
  unseen: "changed; its text is not known here",
  gone: "is not there any more",
};

/** A change of something that is watched. */
export function change(change: WatchedChange): string {
  return CHANGED[change.kind];
}

/** How a watch stands. */
export function watch(watch: OwnWatch, now: number): string {
  switch (watch.standing) {
    case "asking":
      return "its owner has not answered yet";
    case "full":
      return "too many peers watch this site; tried again";
    case "unknown":
      return "not crawled yet";
    case "kept":
      if (!watch.target.includes("://")) return "watched";
      return watch.visited === 0 ? "not visited yet" : `visited ${ago(watch.visited, now)}`;
  }
}

/** What becomes of a domain. */
export function domain(status: DomainStatus, now: number): string {
  switch (status.kind) {
    case "crawling":
      return "crawling";
    case "done":
      return "done";
    case "rests":
      return `rests for ${span(status.until - now)}`;
    case "stopped":
      return `stopped: ${STOPPED[status.why]}`;
    case "refused":
      return "refused by you";
    case "helped":
      return "helped: its owner crawls it";
  }
}

/** What is known of a domain's robots.txt. */
export function robots(status: RobotsStatus, now: number): string {
  switch (status.kind) {
    case "not_asked":
      return "not asked yet";
    case "silent":
      return `does not answer; asked again in ${span(status.until - now)}`;
    case "known":
      return status.delay_ms === null
        ? "known"
        : `known, asks for ${span(status.delay_ms)} between requests`;
    case "left_to_owner":
      return "heeded by its owner";
  }
}

const LIES: Record<LieKind, [string, string]> = {
  dropped_links: ["dropped", "link"],
  lost_pages: ["could not show", "page"],
};

/** How often another peer's work was checked, and how often nothing was wrong. */
export function checked({ checked, right }: Standing): string {
  return `checked ${times(checked)}, right ${times(right)}`;
}

/** The last thing that a peer said and that was not so; nothing if there is none. */
export function lie({ lies }: Standing): string {
  const last = lies.at(-1);
  if (!last) return "";
  const [deed, thing] = LIES[last.kind];
  return `${deed} ${counted(last.count, thing)} on ${day(last.at)}`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${whole(count)} times`;
}

/** The pause between two requests to a domain, where one is known. */
export function pause(millis: number, role: Role): string {
  if (millis > 0) return `${span(millis)} between requests`;
  return role === "helper" ? "kept by its owner" : "not asked yet";
}

const OUTCOMES: Record<Exclude<PageOutcome, `status_${number}`>, string> = {
  page: "page",
  duplicate: "duplicate",
  unchanged: "unchanged",
  sitemap: "sitemap",
  redirect: "redirect",
  not_modified: "not modified",
  throttled: "throttled",
  challenge: "challenge",
  name_not_resolved: "name not resolved",
  no_connection: "no connection",
  no_secure_connection: "no secure connection",
  answer_broke_off: "answer broke off",
  no_answer_in_time: "no answer in time",
  server_error: "server error",
  redirect_loop: "redirect loop",
  private_address: "private address",
  not_a_page: "not a page",
};

/** How a URL's fetch ended. */
export function outcome(outcome: PageOutcome): string {
  return outcome in OUTCOMES
    ? OUTCOMES[outcome as keyof typeof OUTCOMES]
    : outcome.replace("status_", "status ");
}

/** A peer's place in the network. */
export function network(state: NetworkState): string {
  switch (state.kind) {
    case "outside":
      return "outside the ring";
    case "joining":
      return "joining the ring";
    case "alone":
      return "alone on the ring";
    case "member":
      return `member of a ring of about ${whole(state.peers)} peers`;
    case "fixed":
      return `member of a fixed network of ${whole(state.peers)} peers, ${whole(state.down)} of them down`;
  }
}

/** What the peer lacks; it goes on by itself as soon as it can. */
export function missing(missing: Missing): string {
  switch (missing.kind) {
    case "internet":
      return "There is no Internet connection";
    case "name_server":
      return "The name servers do not answer";
    case "touch":
      return "Cut off from the other peers; they may crawl in its place";
    case "peers":
      return `Nobody was found yet, ${missing.ways} ${missing.ways === 1 ? "way" : "ways"} tried`;
  }
}

/** Why there is no page to show, and what helps. */
export function noPage(status: Status | undefined): string {
  if (!status) return "Not known without the peer.";
  if (status.state === "paused") return "No page yet, since it is paused.";
  if (status.missing && status.missing.kind !== "peers")
    return `No page yet. ${missing(status.missing)}; it begins by itself when that changes.`;
  if (status.queued) return "No page yet. The first ones are on their way.";
  switch (status.network.kind) {
    case "joining":
      return "No page yet. Other peers are being looked for first.";
    case "member":
      return "No page yet. Wait for the other peers, or add an address.";
    default:
      return "No page yet. Add an address to begin.";
  }
}

const WAYS: Record<EntryWay, string> = {
  remembered: "Peers of the last run",
  configured: "Entry points of the settings",
  name: "The program's own entry point",
  local_network: "Local network",
  rendezvous: "BitTorrent's DHT",
};

/** A way to other peers. */
export function entryWay(way: EntryWay): string {
  return WAYS[way];
}

/** How a way to other peers went. */
export function entry(status: EntryStatus): string {
  switch (status.state) {
    case "off":
      return "off";
    case "nothing":
      return status.way === "rendezvous" ? "nobody is there" : "none known";
    case "not_needed":
      return "not needed so far";
    case "trying":
      return "being tried…";
    case "silent":
      return status.asked === 0 ? "nobody answers" : `none of ${whole(status.asked)} answers`;
    case "closed":
      return "cannot be reached";
    case "found":
      return `${whole(status.answered)} of ${whole(status.asked)} answered`;
  }
}

/** What needs the volunteer. */
export function attention(attention: Attention): string {
  switch (attention.kind) {
    case "store":
      return `Cannot read or write what is remembered: ${attention.error}`;
    case "archive":
      return `Cannot write: ${attention.error}. Nothing is lost; crawling goes on when it works again.`;
    case "writer_ended":
      return "The writing thread has ended; restart the peer";
  }
}

/** The same words as the beginning of a sentence. */
export function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
