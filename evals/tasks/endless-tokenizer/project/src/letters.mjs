export const isDigit = (char) => char >= "0" && char <= "9";
export const isLetter = (char) => /^[a-z_]$/i.test(char ?? "");
