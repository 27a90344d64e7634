node tools/generate.mjs
