// Generated from schema/statuses.json by `npm run generate`. Do not edit.
export const STATUSES = {
  waiting: {"code":1,"label":"Waiting"},
  running: {"code":2,"label":"Running"},
  done: {"code":3,"label":"Done"},
  paused: {"code":4,"label":"Paused"},
};
