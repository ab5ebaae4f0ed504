/** What passes between this peer and the others, as a rate. */
import type { PeerView, Traffic } from "../api/model";

export interface Flow {
  requests: number;
  received: number;
  sent: number;
}

export function total(traffic: Traffic): Flow {
  const sum = { requests: 0, received: 0, sent: 0 };
  for (const kind of Object.values(traffic.kinds)) {
    sum.requests += kind.asked + kind.answered;
    sum.received += kind.bytes_in;
    sum.sent += kind.bytes_out;
  }
  return sum;
}

/** Per second; a peer that was restarted in between counts from zero. */
export function flow(before: Flow, after: Flow, millis: number): Flow {
  const per = (a: number, b: number) => (millis > 0 ? (Math.max(0, b - a) * 1000) / millis : 0);
  return {
    requests: per(before.requests, after.requests),
    received: per(before.received, after.received),
    sent: per(before.sent, after.sent),
  };
}

/** Bytes that went over each connection so far. */
export function carried(connected: readonly PeerView[]): Map<string, number> {
  return new Map(connected.map(({ id, bytes_in, bytes_out }) => [id, bytes_in + bytes_out]));
}

/** Bytes a second with each peer; those that were not there before have no rate yet. */
export function rates(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  millis: number,
): Map<string, number> {
  const known = [...after].filter(([id]) => millis > 0 && before.has(id));
  // A connection that was made anew counts from zero.
  return new Map(
    known.map(([id, bytes]) => [id, (Math.max(0, bytes - (before.get(id) ?? 0)) * 1000) / millis]),
  );
}

/** How thick a line is drawn for so many bytes a second: one more for each time eight. */
export function thickness(bytesPerSecond: number): number {
  return Math.min(6, 0.9 + Math.log2(1 + bytesPerSecond / 64) / 3);
}
