import { defineConfig } from "vitest/config";

/** Real Chromium, a real peer: one file, one after the other, with patience for a busy machine. */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
});
