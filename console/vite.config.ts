import { defineConfig } from "vitest/config";

// What is built goes into the Python package, which serves it: `/` is index.html, the rest lies in `/console/`.
export default defineConfig({
  base: "/console/",
  build: {
    outDir: "../src/dragoman/gateway/console",
    emptyOutDir: true,
    assetsDir: "",
    assetsInlineLimit: 0, // the policy of the page has no data: but for pictures
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: ["es2023", "chrome123", "firefox128", "safari17.5"], // the first with light-dark()
  },
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    restoreMocks: true,
    testTimeout: 30_000, // a busy machine is no failure
  },
});
