/**
 * What other teams call. Owned by them; a change needs their agreement.
 */
export interface Hit {
  readonly id: string;
  /** How many of the words are in the title; each word counts once, however often it is there. */
  readonly score: number;
}

export interface SearchOptions {
  /** At most so many hits; all without it. A limit that is no whole number from 0 on is a RangeError. */
  readonly limit?: number;
}

/**
 * Find the titles that have at least one of the words as a whole word. Neither case nor accents count: `Étude` is found
 * by `etude` and the other way round. The best hits come first; those with the same score by id, in the order of their
 * characters. Words are separated by white space and given once or more; the same word twice is one word.
 */
export type Search = (words: string, options?: SearchOptions) => readonly Hit[];
