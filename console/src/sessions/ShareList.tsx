// The share links that are open, each with a way to end it.

import { useState } from "preact/hooks";
import { visible } from "../text/visible";
import { fullDate } from "../text/words";
import { postJson } from "../wire/post";

export interface Share {
  name: string;
  sessionId: string;
  label: string;
  created: number;
  expires: number;
}

interface Props {
  shares: readonly Share[];
  changed: () => void;
  titleOf?: (sessionId: string) => string;
}

export function ShareList({ shares, changed, titleOf }: Props) {
  const [trouble, setTrouble] = useState("");
  const end = (name: string) => postJson("/api/shares/revoke", { name }).then(changed, (error: Error) => setTrouble(error.message));
  return (
    <>
      {trouble && <p role="alert" class="failure">{trouble}</p>}
      <ul class="plain-list">
        {shares.map((share) => {
          const name = share.label || "a link without a note";
          return (
            <li key={share.name}>
              <span>
                {titleOf && <strong class="ellipsis">{titleOf(share.sessionId)}</strong>} <span>{visible(name)}</span>{" "}
                <span class="small muted">until {fullDate(share.expires)}</span>
              </span>
              <button type="button" class="button" aria-label={`End ${visible(name)}`} onClick={() => void end(share.name)}>End</button>
            </li>
          );
        })}
      </ul>
    </>
  );
}
