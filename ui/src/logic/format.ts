/** Numbers, sizes and times in words that fit into a table. */

const wholes = new Intl.NumberFormat("en");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function whole(n: number): string {
  return wholes.format(Math.round(n));
}

/** 1 page, 2,000 pages. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${whole(n)} ${n === 1 ? one : many}`;
}

/** 0.34, 3.4, 34: two digits that matter. */
export function rate(n: number): string {
  if (n <= 0) return "0";
  if (n < 0.995) return n.toFixed(2);
  return n < 9.95 ? n.toFixed(1) : whole(n);
}

export function bytes(n: number): string {
  let unit = 0;
  while (n >= 1023.5 && unit < UNITS.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit === 0 || n >= 99.5 ? Math.round(n) : n.toFixed(1)} ${UNITS[unit]}`;
}

export function percent(share: number): string {
  const hundredths = share * 100;
  return `${hundredths >= 10 || hundredths === 0 ? Math.round(hundredths) : hundredths.toFixed(hundredths >= 1 ? 1 : 2)} %`;
}

/** A length of time: 40 s, 12 min, 3 h, 9 days. */
export function span(millis: number): string {
  const seconds = Math.max(0, millis) / 1000;
  if (seconds < 10 && seconds % 1 >= 0.05) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  if (seconds < 99.5 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago a moment was, or "never" for the beginning of time. */
export function ago(at: number, now: number): string {
  if (at === 0) return "never";
  const millis = now - at;
  return millis < 2000 ? "just now" : `${span(millis)} ago`;
}

/** 14:03:09 in this browser's time zone. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

/** 3 Nov */
export function day(at: number): string {
  return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** A URL without its scheme, as people read it. */
export function bare(url: string): string {
  return url.replace(/^https?:\/\//, "").replace(/\/$/, "");
}

/** The first letters of a peer's id: enough to tell peers apart. */
export function short(id: string): string {
  return id.slice(0, 8);
}
