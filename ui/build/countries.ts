// Puts the table of countries beside the site, from where the peer embeds it.
import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import type { Plugin } from "vite";

const TABLE = "@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb";

export function countries(target: string): Plugin {
  return {
    name: "apoidea-countries",
    apply: "build",
    closeBundle() {
      const path = resolve(import.meta.dirname, "..", target);
      mkdirSync(dirname(path), { recursive: true });
      copyFileSync(createRequire(import.meta.url).resolve(TABLE), path);
    },
  };
}
