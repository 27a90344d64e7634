// Whether the server is there: nothing to see while it is.

import { useEffect, useState } from "preact/hooks";
import { useStore } from "./context";

export function LinkState() {
  const { link } = useStore();
  return <span id="link" role="status" class="link-state">{link.is === "connected" ? "" : link.is === "refused" ? link.why : <Connecting retryAt={link.retryAt} />}</span>;
}

/** Says how long it lasts, since a page that cannot reach its server looks like one whose agent is silent. */
function Connecting({ retryAt }: { retryAt: number | null }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = retryAt === null ? 0 : Math.ceil((retryAt - Date.now()) / 1000);
  return <>{seconds > 0 ? `connecting… next attempt in ${seconds} s` : "connecting…"}</>;
}
