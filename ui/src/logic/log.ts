/** The activity log: notes and pages in one list, newest first. */
import type { Note, PageEvent, PageOutcome, Topic } from "../api/model";
import { bare, bytes } from "./format";
import * as words from "./words";

export const ABOUT = [
  "state",
  "you",
  "watched",
  "network",
  "trouble",
  "pages",
  "failures",
] as const;
export type About = (typeof ABOUT)[number];

export interface Line {
  key: string;
  at: number;
  about: About;
  text: string;
}

const OF_TOPIC: Record<Topic, About> = {
  state: "state",
  owner: "you",
  network: "network",
  watch: "watched",
  trouble: "trouble",
};
const FINE: ReadonlySet<PageOutcome> = new Set<PageOutcome>([
  "page",
  "duplicate",
  "unchanged",
  "redirect",
  "sitemap",
]);

/** Whether a fetch ended as it should. */
export function isFine(outcome: PageOutcome): boolean {
  return FINE.has(outcome);
}

function ofPage(page: PageEvent): Line {
  const about = isFine(page.outcome) ? "pages" : "failures";
  const what =
    page.outcome === "page"
      ? `${bytes(page.bytes)}, ${page.links} links`
      : words.outcome(page.outcome);
  return { key: `p${page.at}${page.url}`, at: page.at, about, text: `${bare(page.url)}: ${what}` };
}

/** Both come newest first. Of two of one moment and text, one is enough. */
export function merge(
  notes: readonly Note[],
  pages: readonly PageEvent[],
  hidden: ReadonlySet<About>,
  search: string,
): Line[] {
  const text = search.trim().toLowerCase();
  const ofNotes = notes.map((note, i): Line => ({
    key: `n${notes.length - i}`,
    at: note.at,
    about: OF_TOPIC[note.topic],
    text: note.text,
  }));
  const seen = new Set<string>();
  const isNew = (line: Line) => !seen.has(line.key) && seen.add(line.key);
  return [...ofNotes, ...pages.map(ofPage)]
    .filter(
      (line) =>
        !hidden.has(line.about) &&
        (text === "" || line.text.toLowerCase().includes(text)) &&
        isNew(line),
    )
    .toSorted((a, b) => b.at - a.at);
}
