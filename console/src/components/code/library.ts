// What of lowlight is fetched: the function, and not the list of all its grammars, which is a hundred times as large.

export { createLowlight } from "lowlight";
