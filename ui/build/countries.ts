// Puts the table of countries beside the site, from where the peer embeds it: packed, since it is a quarter of the program otherwise.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import type { Plugin } from "vite";

const TABLE = "@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb";
// 3.2 MB in three seconds; the best that Brotli can do is 2.4 MB in forty.
const PACKING = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  },
};

export function countries(target: string): Plugin {
  return {
    name: "apoidea-countries",
    apply: "build",
    closeBundle() {
      const path = resolve(import.meta.dirname, "..", target);
      mkdirSync(dirname(path), { recursive: true });
      const table = readFileSync(createRequire(import.meta.url).resolve(TABLE));
      writeFileSync(path, brotliCompressSync(table, PACKING));
    },
  };
}
