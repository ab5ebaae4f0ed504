/** Preferences as forms see them: fields by their path, ranges, and the week. */
import type { Preferences, Preset, Range, Schedule } from "../api/model";

/** A field's value by its path, such as `full.cpu_percent`. */
export function read(preferences: Preferences, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, name) => (value as Record<string, unknown> | undefined)?.[name],
      preferences,
    );
}

/** A change of one field, as the peer takes it. */
export function change(path: string, value: unknown): Record<string, unknown> {
  const [first, ...rest] = path.split(".");
  return { [first]: rest.length === 0 ? value : change(rest.join("."), value) };
}

export function accepted(range: Range): string {
  return `${range.zero_is_no_limit ? "0 (no limit) or " : ""}${range.min} to ${range.max}`;
}

/** What is wrong with a number that somebody types; nothing if it can be used. */
export function problem(text: string, range: Range | undefined): string {
  const trimmed = text.trim();
  if (!/^\d+$/.test(trimmed)) return "A whole number, please.";
  const value = Number(trimmed);
  if (!range || (range.zero_is_no_limit && value === 0)) return "";
  return value >= range.min && value <= range.max ? "" : `Accepted are ${accepted(range)}.`;
}

/** Ways to begin with; a person can change each of their values. */
export const PRESETS: { value: Preset; name: string; help: string }[] = [
  { value: "gentle", name: "Gentle", help: "For old computers and thin lines." },
  { value: "balanced", name: "Balanced", help: "You will not notice it." },
  { value: "generous", name: "Generous", help: "Gives more, also gently while you work." },
];

export const DAYS = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;
export type Hours = "f" | "g" | "-";
export const HOURS: Record<Hours, string> = { f: "full", g: "gentle", "-": "off" };

export function hoursOf(schedule: Schedule, day: number, hour: number): Hours {
  return schedule[DAYS[day]][hour] as Hours;
}

/** The same week with one hour changed. */
export function paint(schedule: Schedule, day: number, hour: number, hours: Hours): Schedule {
  const name = DAYS[day];
  const letters = schedule[name];
  return { ...schedule, [name]: letters.slice(0, hour) + hours + letters.slice(hour + 1) };
}

export function always(hours: Hours): Schedule {
  return Object.fromEntries(DAYS.map((day) => [day, hours.repeat(24)])) as unknown as Schedule;
}

/** Programs as one writes them into a field: one a line, or with commas. */
export function programs(text: string): string[] {
  return [
    ...new Set(
      text
        .split(/[\n,]/)
        .map((name) => name.trim())
        .filter((name) => name !== ""),
    ),
  ];
}

/** What the crawl may use, as a sentence for somebody who has never seen a setting. */
export function uses({ full, memory_mib, disk_mib, run }: Preferences): string {
  const size = (mib: number) =>
    mib >= 1024 ? `${Math.round((mib / 1024) * 10) / 10} GiB` : `${mib} MiB`;
  const parts = [
    full.cpu_percent > 0 ? `${full.cpu_percent} % of one CPU core` : "all of the CPU",
    memory_mib > 0 ? `${size(memory_mib)} of memory` : "as much memory as it needs",
    full.down_kib > 0
      ? `${full.down_kib >= 1024 ? `${Math.round((full.down_kib / 1024) * 10) / 10} MiB` : `${full.down_kib} KiB`} a second of your connection`
      : "all of your connection",
    disk_mib > 0 ? `${size(disk_mib)} of disk` : "as much disk as its settings allow",
  ];
  const when = {
    when_idle: ", only while you are away",
    always: "",
    never: ", once you choose when",
  }[run];
  return `Up to ${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}${when}.`;
}
