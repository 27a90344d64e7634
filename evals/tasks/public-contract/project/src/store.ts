/** Titles by id. */
export const titles: ReadonlyMap<string, string> = new Map([
  ["b2", "Étude in red"],
  ["a1", "An etude, and another étude"],
  ["B3", "Red and blue"],
  ["c4", "Studies in blue, red and green"],
  ["d5", "Infrared"],
]);
