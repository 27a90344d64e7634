import { Lru } from "./lru.js";

/** Names by id, asked for again after a minute. */
export const names = new Lru<number, string>(100, 60_000, () => Date.now());
