import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { countries } from "./build/countries.ts";
import { world } from "./build/world.ts";

export default defineConfig({
  plugins: [svelte(), world(), countries("dist/countries.mmdb.br")],
  build: {
    outDir: "dist/site",
    emptyOutDir: true,
    // Nothing is inlined: the peer's content security policy loads from the peer itself only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
