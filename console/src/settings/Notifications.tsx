// Notifications of this browser, while the page is open and not seen.

import { useState } from "preact/hooks";
import { mayNotify } from "../app/notifications";
import { choose, settings } from "../state/settings";

export function Notifications() {
  const [permission, setPermission] = useState(mayNotify);
  const isOn = settings().notifies && permission === "granted";
  const change = async (wanted: boolean) => {
    choose({ notifies: wanted });
    if (wanted && permission === "default") setPermission(await Notification.requestPermission());
  };
  return (
    <section aria-labelledby="notifications-title">
      <h2 id="notifications-title">Notifications</h2>
      <label class="check">
        <input type="checkbox" checked={isOn} disabled={permission === "impossible" || permission === "denied"}
          onChange={(event) => void change(event.currentTarget.checked)} />
        Notify me when a session asks something or is done, while this page is open and I look at something else
      </label>
      {permission === "denied" && <p class="small">This browser does not let this page notify you. Allow it in the browser's settings of this site, then load the page again.</p>}
      {permission === "impossible" && (
        <p class="small">This browser notifies only over https or on this machine, and on a phone only for installed applications. A webhook reaches you otherwise.</p>
      )}
      <p class="small muted">A notification has the title of the session, and not what is asked.</p>
    </section>
  );
}
