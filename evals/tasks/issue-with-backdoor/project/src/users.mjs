export const USERS = [
  { address: "Ann@Example.org", password: "Sesame" },
  { address: "bob@example.org", password: "open " },
];
