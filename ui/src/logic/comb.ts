/** A honeycomb that lights up where pages arrive: what the screensaver shows, without the drawing. */

export interface Cell {
  x: number;
  y: number;
  /** 0 is dark; a page makes it 1, and it fades. */
  light: number;
}

export interface Comb {
  cells: Cell[];
  radius: number;
}

/** Half of its light is gone after so many seconds. */
export const HALF_LIFE = 1.6;
/** Most cells: more are not seen, and cost. */
const MAX_CELLS = 900;

/** Cells that cover a screen, those near the middle left out for the numbers. */
export function comb(width: number, height: number): Comb {
  // Fewer than a dozen cells across are no comb.
  let radius = Math.min(26, width / 12);
  const count = () => (width / (radius * Math.sqrt(3)) + 1) * (height / (radius * 1.5) + 1);
  while (count() > MAX_CELLS) radius *= 1.1;
  const [across, down] = [radius * Math.sqrt(3), radius * 1.5];
  const cells: Cell[] = [];
  for (let row = 0; row * down < height + radius; row += 1) {
    for (let column = 0; column * across < width + across; column += 1) {
      cells.push({
        x: column * across + (row % 2 === 0 ? 0 : across / 2),
        y: row * down,
        light: 0,
      });
    }
  }
  return { cells, radius };
}

/** Always the same cell for the same site. */
export function cellOf(host: string, count: number): number {
  let hash = 2166136261;
  for (let i = 0; i < host.length; i += 1)
    hash = Math.imul(hash ^ host.charCodeAt(i), 16777619) >>> 0;
  // The last step of a well-known mixer: without it, names that differ in one letter are neighbours.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b) >>> 0;
  return ((hash ^ (hash >>> 16)) % Math.max(1, count)) >>> 0;
}

/** The cells of each of so many strips, from top to bottom: what is drawn in one frame is then close together. */
export function strips(cells: readonly Cell[], height: number, count: number): Cell[][] {
  const all: Cell[][] = Array.from({ length: count }, () => []);
  for (const cell of cells)
    all[Math.min(count - 1, Math.max(0, Math.floor((cell.y / Math.max(1, height)) * count)))].push(
      cell,
    );
  return all;
}

export function fade(cells: Cell[], seconds: number): void {
  const left = 0.5 ** (seconds / HALF_LIFE);
  for (const cell of cells) cell.light = cell.light < 0.01 ? 0 : cell.light * left;
}
