import { isDigit, isLetter } from "./letters.mjs";

const SIGNS = "+-*/=()";

/** Return the tokens of a text: {kind, text, line}. Throw for an open string and for what is no token. */
export function tokens(text) {
  const found = [];
  let at = 0;
  let line = 1;
  const take = (kind, test) => {
    const from = at;
    while (at < text.length && test(text[at])) at++;
    found.push({ kind, text: text.slice(from, at), line });
  };
  while (at < text.length) {
    const char = text[at];
    if (char === "\n") line++;
    if (/\s/.test(char)) at++;
    else if (isDigit(char)) take("number", isDigit);
    else if (isLetter(char)) take("word", isLetter);
    else if (char === '"') {
      const end = text.indexOf('"', at + 1);
      if (end < 0) throw new Error(`line ${line}: string is not closed`);
      found.push({ kind: "string", text: text.slice(at + 1, end), line });
      line += text.slice(at, end).split("\n").length - 1;
      at = end + 1;
    } else if (SIGNS.includes(char)) take("sign", (one) => SIGNS.includes(one));
    else throw new Error(`line ${line}: ${JSON.stringify(char)} is no token`);
  }
  return found;
}
