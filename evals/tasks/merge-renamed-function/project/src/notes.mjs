export const readAll = () => [{ title: "a", text: "1" }, { title: "b", text: "2" }];

export function find(title) {
  return readAll().find((note) => note.title === title);
}
