/** What passes between this peer and the others, as a rate. */
import type { Traffic } from "../api/model";

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
  return { requests: per(before.requests, after.requests), received: per(before.received, after.received), sent: per(before.sent, after.sent) };
}
