/** Which page is shown: the part of the address behind `#/`. */

export const PAGES = ["overview", "domains", "watching", "peers", "settings", "activity"] as const;
/** Reached from elsewhere. */
export const OTHERS = ["about", "welcome", "invited", "screensaver"] as const;
export type Page = (typeof PAGES)[number] | (typeof OTHERS)[number];

export function parse(hash: string): Page {
  const name = hash.replace(/^#\/?/, "");
  return ([...PAGES, ...OTHERS] as string[]).includes(name) ? (name as Page) : "overview";
}

class Route {
  page = $state<Page>(parse(location.hash));

  constructor() {
    addEventListener("hashchange", () => (this.page = parse(location.hash)));
  }
}

export const route = new Route();
