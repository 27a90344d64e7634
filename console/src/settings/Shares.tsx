// The share links of this user.

import { useEffect, useState } from "preact/hooks";
import { useStore } from "../app/context";
import { ShareList, type Share } from "../sessions/ShareList";
import { harmless } from "../text/visible";
import { getJson, Refused } from "../wire/post";

export function Shares() {
  const store = useStore();
  const [shares, setShares] = useState<Share[] | null>(null);
  const [trouble, setTrouble] = useState("");
  const load = () => getJson<{ shares: Share[] }>("/api/shares").then(
    (found) => setShares(found.shares),
    (error: Error) => setTrouble(error instanceof Refused && error.status === 404 ? "This server lets no sessions be shared." : error.message),
  );
  useEffect(() => void load(), []);
  return (
    <section aria-labelledby="shares-title">
      <h2 id="shares-title">Share links</h2>
      {trouble && <p class="small muted">{trouble}</p>}
      {shares?.length === 0 && <p class="small muted">None are open. A session is shared from its menu in the list of all sessions.</p>}
      {shares !== null && shares.length > 0 && <ShareList shares={shares} changed={load} titleOf={(id) => harmless(store.titleOf(id))} />}
    </section>
  );
}
