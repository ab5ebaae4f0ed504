/** The lines behind a chart: at round values that people can read off it. */

/** Round steps within a power of ten. */
const STEPS = [1, 2, 5, 10];

/** Three or four round values, of which the largest is the least that is not below what has to fit. */
export function lines(most: number): number[] {
  const wanted = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = power * (STEPS.find((step) => step * power >= wanted * (1 - 1e-9)) ?? 10);
  const count = Math.max(3, Math.ceil(most / step - 1e-9));
  return Array.from({ length: count }, (_, i) => (i + 1) * step);
}
