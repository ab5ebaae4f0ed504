/** Peers by country, for the map and for those who do not see it. */
import type { Whereabouts } from "../api/model";
import { counted } from "./format";

export interface Place {
  code: string;
  /** Peers there, this one not counted. */
  count: number;
  isOwn: boolean;
}

export function tally(
  { own, peers }: Whereabouts,
  hideOwn: boolean,
): { places: Place[]; words: string } {
  const counts = new Map<string, number>();
  let near = 0;
  for (const [, code] of peers) {
    if (code === null) near += 1;
    else counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  if (own !== null && !hideOwn && !counts.has(own)) counts.set(own, 0);
  const places = [...counts].map(([code, count]) => ({
    code,
    count,
    isOwn: code === own && !hideOwn,
  }));
  const countries = places.filter(({ count }) => count > 0).length;
  const far = peers.length - near;
  const words = [
    far > 0 ? `${counted(far, "peer")} in ${counted(countries, "country", "countries")}` : "",
    near > 0 ? `${near} in your own network` : "",
  ].filter((part) => part !== "");
  return {
    places,
    words: words.length > 0 ? `${words.join(", ")}.` : "No other peer is connected.",
  };
}
