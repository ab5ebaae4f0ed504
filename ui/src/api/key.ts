/**
 * The key that opens the peer's API to this browser. A link of the peer brings it, in the part of
 * the address that is sent nowhere. It is kept where only pages of this port can read it: cookies
 * go to every program that listens on this computer. It ends with the peer's process.
 */
const NAME = "api-key";

/** The address without the key, and the key, if there is one. */
export function split(hash: string): { rest: string; key?: string } {
  const [rest, key] = hash.split("?key=");
  return key ? { rest, key } : { rest: hash };
}

/** Takes the key out of the address, so that it is neither shown nor bookmarked. */
export function takeKey(): void {
  const { rest, key } = split(location.hash);
  if (key === undefined) return;
  localStorage.setItem(NAME, key);
  history.replaceState(history.state, "", rest.length > 2 ? rest : location.pathname);
}

export function key(): string {
  return localStorage.getItem(NAME) ?? "";
}
