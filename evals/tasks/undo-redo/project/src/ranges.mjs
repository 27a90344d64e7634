export function checkRange(text, from, to) {
  if (!(0 <= from && from <= to && to <= text.length)) throw new RangeError(`${from}-${to} is not in the text`);
}
