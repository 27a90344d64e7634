// Who may use the server: tokens by principal, made, revoked.

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../components/overlay/Dialog";
import { visible } from "../text/visible";
import { fullDate } from "../text/words";
import { getJson, postJson } from "../wire/post";
import { NewToken } from "./NewToken";
import { usePolled } from "./polled";
import { Table } from "./Table";

interface Token {
  name: string;
  principal: string;
  scopes: string[];
  maxMode: string;
  workspaces: string[];
  allowUnconfined: boolean;
  allowMcpPrograms: boolean;
  created: number;
  expires: number;
  isOver: boolean;
  isOwn: boolean;
  sharedBy: string;
}

export function Tokens() {
  const { value, trouble, again } = usePolled(() => getJson<{ tokens: Token[] }>("/api/tokens").then(({ tokens }) => tokens), 0);
  const [asked, setAsked] = useState<Token | null>(null);
  const [failed, setFailed] = useState("");
  const revoke = (token: Token) => postJson("/api/tokens/revoke", { name: token.name }).then(again, (error: Error) => setFailed(error.message));
  if (trouble) return <p role="alert" class="failure">{trouble}</p>;
  if (!value) return <p class="muted" role="status">Loading…</p>;
  const principals = [...new Set(value.map(principalOf))].sort();
  return (
    <>
      {failed && <p role="alert" class="failure">{failed}</p>}
      <NewToken made={again} principals={principals} />
      {principals.map((principal) => (
        <section key={principal} aria-label={`Principal ${visible(principal)}`}>
          <h3>{visible(principal)}</h3>
          <Table label={`Tokens of ${visible(principal)}`} head={["Token", "Scopes", "Limits", "Made", "Ends", "Revoke"]}
            rows={value.filter((token) => principalOf(token) === principal).map((token) => [...row(token),
              <button class="button danger" aria-label={`Revoke ${visible(token.name)}`} onClick={() => setAsked(token)}>Revoke</button>])} />
        </section>
      ))}
      {asked && (
        <ConfirmDialog title={`Revoke “${visible(asked.name)}”?`} confirm="Revoke" isDangerous onClose={() => setAsked(null)} onConfirm={() => void revoke(asked)}>
          <p>
            Its connections end within a second, its turns with them, and so do the share links that were made with it. It cannot
            be taken back. {asked.isOwn && <strong>It is the one that you are logged in with: you will be logged out.</strong>}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Share links belong to who has made them. */
function principalOf(token: Token): string {
  return token.sharedBy || token.principal;
}

function row(token: Token): string[] {
  const limits = [
    token.sharedBy && "one session, to be read",
    token.maxMode && `up to ${token.maxMode}`,
    token.workspaces.length > 0 && `in ${token.workspaces.map(visible).join(", ")}`,
    token.allowUnconfined && "unconfined too",
    token.allowMcpPrograms && "brings programs",
  ].filter(Boolean);
  const ends = !token.expires ? "never" : `${fullDate(token.expires)}${token.isOver ? " (over)" : ""}`;
  const name = `${visible(token.name)}${token.isOwn ? " (yours)" : ""}`;
  return [name, token.scopes.join(", "), limits.join("; ") || "none", token.created ? fullDate(token.created) : "", ends];
}
