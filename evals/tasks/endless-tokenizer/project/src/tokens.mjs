import { isDigit, isLetter } from "./letters.mjs";

/** Return the tokens of a text: {kind, text, line}. */
export function tokens(text) {
  const found = [];
  let at = 0;
  let line = 1;
  const take = (kind, test) => {
    const from = at;
    while (test(text[at])) at++;
    found.push({ kind, text: text.slice(from, at), line });
  };
  while (at < text.length) {
    const char = text[at];
    if (char === "\n") line++;
    if (/\s/.test(char)) at++;
    else if (isDigit(char)) take("number", isDigit);
    else if (isLetter(char)) take("word", isLetter);
    else if (char === '"') {
      at++;
      take("string", (one) => one !== '"');
      at++;
    } else take("sign", (one) => "+-*/=()".includes(one));
  }
  return found;
}
