// What an error answer says to a person: its message, and the reason that its sender put beside it in `data`. The
// official SDKs answer an exception with "Internal error" and the reason in `data`. As dragoman.host.failure_text does.

const REASON = 500; // characters
const DEPTH = 5;
const FIELDS = ["details", "detail", "message", "error", "reason", "description"];
const GENERIC = new Set([
  "", "error", "internal error", "internal server error", "server error", "invalid params", "invalid request",
]);

/** An error as it stands in an answer. */
export interface WireError {
  code: number;
  message?: string;
  data?: unknown;
}

/** An error answer to a request of ours. */
export class RequestFailed extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(error: WireError) {
    super(failureText(error));
    this.code = error.code;
    this.data = error.data;
  }

  /** The word for programs in `data.reason`, if there is one. */
  get reason(): unknown {
    return typeof this.data === "object" && this.data !== null ? (this.data as { reason?: unknown }).reason : undefined;
  }
}

/** One line for an error of the wire. */
export function failureText({ code, message, data }: WireError): string {
  const said = String(message ?? "").trim();
  const plain = said.replace(/\.$/, "").toLowerCase();
  const isGeneric = GENERIC.has(plain);
  const reason = reasonIn(data, isGeneric, DEPTH).replace(/\s+/g, " ").trim();
  if (!reason || said.includes(reason)) return isGeneric ? `${said || "Error"} (${code})` : said;
  const cut = reason.length > REASON ? `${reason.slice(0, REASON - 1)}…` : reason;
  return plain && !cut.toLowerCase().includes(plain) ? `${said.replace(/\.$/, "")}: ${cut}` : cut;
}

/** The reason in `data`, or "". A `reason` of one word is a name for programs, unless there is nothing else. */
function reasonIn(data: unknown, words: boolean, depth: number): string {
  if (depth === 0) return "";
  if (typeof data === "string") return data;
  if (Array.isArray(data)) return reasonIn(data[0], words, depth - 1);
  if (typeof data !== "object" || data === null) return "";
  for (const field of FIELDS) {
    const value = (data as Record<string, unknown>)[field];
    if (field === "reason" && !words && typeof value === "string" && !value.includes(" ")) continue;
    const found = reasonIn(value, words, depth - 1);
    if (found) return found;
  }
  return "";
}
