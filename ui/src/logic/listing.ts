/** Searching and sorting of thousands of rows. */
import type { DomainRow, DomainStatus } from "../api/model";
import { short } from "./format";

export type Column = "domain" | "fetched" | "queued" | "failed" | "bytes" | "delay_ms" | "visited";
export type Direction = "ascending" | "descending";
export type Standing = "all" | "crawling" | "resting" | "stopped" | "done" | "refused" | "helped";
/** Whose domains to show: all, those of this peer, copies it holds for others, those it fetched from for others. */
export type Whose = "everyone's" | "own" | "copies" | "helped";

export interface Order {
  column: Column;
  direction: Direction;
}

/** Clicking a column sorts by it; clicking again turns it round. Numbers begin with the largest. */
export function click(order: Order, column: Column): Order {
  if (order.column === column) {
    return { column, direction: order.direction === "ascending" ? "descending" : "ascending" };
  }
  return { column, direction: column === "domain" ? "ascending" : "descending" };
}

export function sorted(rows: readonly DomainRow[], { column, direction }: Order): DomainRow[] {
  const sign = direction === "ascending" ? 1 : -1;
  const byName = (a: DomainRow, b: DomainRow) =>
    a.domain < b.domain ? -1 : a.domain > b.domain ? 1 : 0;
  if (column === "domain") return rows.toSorted((a, b) => sign * byName(a, b));
  return rows.toSorted((a, b) => sign * (a[column] - b[column]) || byName(a, b));
}

/** What the filter calls each state of a domain. */
const STANDINGS: Record<DomainStatus["kind"], Exclude<Standing, "all">> = {
  crawling: "crawling",
  done: "done",
  rests: "resting",
  stopped: "stopped",
  refused: "refused",
  helped: "helped",
};

export function standing(row: DomainRow): Exclude<Standing, "all"> {
  return STANDINGS[row.state.kind];
}

function is(row: DomainRow, whose: Whose): boolean {
  switch (whose) {
    case "own":
      return row.role === "owner";
    case "copies":
      return row.role === "holder";
    case "helped":
      return row.helped !== null;
    default:
      return true;
  }
}

export function matching(
  rows: readonly DomainRow[],
  search: string,
  wanted: Standing,
  whose: Whose = "everyone's",
): DomainRow[] {
  const text = search.trim().toLowerCase();
  return rows.filter(
    (row) =>
      (text === "" || row.domain.includes(text)) &&
      (wanted === "all" || standing(row) === wanted) &&
      is(row, whose),
  );
}

/** Whose a domain is, in a word or two. */
export function owner(row: DomainRow): string {
  if (row.role === "owner") return "yours";
  return row.helped ? `for ${short(row.helped.owner)}` : "a copy";
}

/** The rows that are drawn while the list is scrolled to `top`, and a few beyond. */
export function window(
  count: number,
  height: number,
  rowHeight: number,
  top: number,
  margin = 8,
): { first: number; end: number } {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight) - margin));
  const end = Math.min(count, Math.ceil((top + height) / rowHeight) + margin);
  return { first, end: Math.max(first, end) };
}
