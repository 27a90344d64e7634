/** Read CSV with a heading line. Returns an object for each row. */
export function parse(text) {
  const [heading, ...lines] = text.split("\n");
  const names = heading.split(",");
  return lines.map((line) => {
    const cells = line.split(",");
    return Object.fromEntries(names.map((name, at) => [name, cells[at]]));
  });
}
