/** Where peers stand on the drawn ring: clockwise by their id, this peer always at the top. */
import type { NetworkStatus } from "../api/model";

export interface Point {
  x: number;
  y: number;
}

const DIGITS = 12;

/** A peer's place on the ring, 0 to 1, from the first digits of its id. */
export function place(id: string): number {
  return Number.parseInt(id.slice(0, DIGITS), 16) / 16 ** DIGITS;
}

/** How far clockwise `id` is from `me`, 0 to 1. */
export function turn(me: string, id: string): number {
  return (((place(id) - place(me)) % 1) + 1) % 1;
}

/** The point a turn away from the top of a circle around 0,0. */
export function point(turned: number, radius: number): Point {
  const angle = 2 * Math.PI * turned;
  return { x: radius * Math.sin(angle), y: -radius * Math.cos(angle) };
}

/** The path of an arc that ends at the top and takes `share` of the circle. */
export function arc(share: number, radius: number): string {
  // A whole circle has no beginning that a path could name.
  const from = point(1 - Math.min(share, 0.9999), radius);
  const isLong = share > 0.5 ? 1 : 0;
  return `M${from.x.toFixed(2)} ${from.y.toFixed(2)}A${radius} ${radius} 0 ${isLong} 1 0 ${-radius}`;
}

/** A slightly bent line between two places on the circle, so that chords through the middle can be told apart. */
export function chord(from: Point, to: Point): string {
  const pull = 0.35;
  const middle = { x: ((from.x + to.x) / 2) * pull, y: ((from.y + to.y) / 2) * pull };
  return `M${from.x.toFixed(1)} ${from.y.toFixed(1)}Q${middle.x.toFixed(1)} ${middle.y.toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`;
}

export type Role = "other" | "finger" | "successor";

/** Of the peers that are neither successors nor fingers, so many are drawn: those with the most traffic. */
export const MOST_OTHERS = 24;

/** The peers to draw, the most important ones last and so on top, and how many are left out. */
export function drawn(
  network: NetworkStatus,
  busy: ReadonlyMap<string, number>,
): { peers: { id: string; role: Role }[]; leftOut: number } {
  const near = new Set([...network.successors, ...network.fingers, network.me]);
  const others = new Set([
    ...network.connected.map(({ id }) => id),
    ...network.leaves,
    ...(network.predecessor ? [network.predecessor] : []),
  ]);
  const rest = [...others].filter((id) => !near.has(id));
  const shown =
    rest.length <= MOST_OTHERS
      ? rest
      : rest.toSorted((a, b) => (busy.get(b) ?? 0) - (busy.get(a) ?? 0)).slice(0, MOST_OTHERS);
  const fingers = network.fingers.filter((id) => !network.successors.includes(id));
  const as = (role: Role) => (id: string) => ({ id, role });
  const peers = [
    ...shown.map(as("other")),
    ...fingers.map(as("finger")),
    ...network.successors.map(as("successor")),
  ];
  return {
    peers: peers.filter(({ id }) => id !== network.me),
    leftOut: rest.length - shown.length,
  };
}
