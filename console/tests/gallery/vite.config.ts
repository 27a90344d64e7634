// Builds the gallery for tests in a browser: `vite build --config tests/gallery/vite.config.ts`.

import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  build: {
    outDir: "../../../build/gallery",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
