/** The history by the hour, as days of this browser's time zone. */
import type { Hour } from "../api/model";

export interface Day {
  /** When the day began. */
  at: number;
  pages: number;
  bytes: number;
}

function midnight(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

/** The last `count` days, today last; days without work are there too. */
export function days(hours: readonly Hour[], now: number, count = 30): Day[] {
  const result: Day[] = [];
  for (let back = count - 1; back >= 0; back -= 1) {
    const date = new Date(midnight(now));
    // Days are not always 24 hours long.
    date.setDate(date.getDate() - back);
    result.push({ at: date.getTime(), pages: 0, bytes: 0 });
  }
  const byStart = new Map(result.map((day) => [day.at, day]));
  for (const hour of hours) {
    const day = byStart.get(midnight(hour.at));
    if (!day) continue;
    day.pages += hour.pages;
    day.bytes += hour.bytes;
  }
  return result;
}

/** What was fetched by the peer's own count. */
export interface Count {
  pages: number;
  bytes: number;
}

/** The same days with what came since they were counted added to today. */
export function upToDate(
  all: readonly Day[],
  counted: Count | undefined,
  now: Count | undefined,
): Day[] {
  const today = all.at(-1);
  if (!today || !counted || !now) return [...all];
  const more = (before: number, after: number) => Math.max(0, after - before);
  return [
    ...all.slice(0, -1),
    {
      at: today.at,
      pages: today.pages + more(counted.pages, now.pages),
      bytes: today.bytes + more(counted.bytes, now.bytes),
    },
  ];
}

export function sum(all: readonly Day[]): { pages: number; bytes: number } {
  return all.reduce((a, b) => ({ pages: a.pages + b.pages, bytes: a.bytes + b.bytes }), {
    pages: 0,
    bytes: 0,
  });
}
