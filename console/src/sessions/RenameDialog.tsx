// Asks for another title of a session.

import { useState } from "preact/hooks";
import { Dialog } from "../components/overlay/Dialog";
import type { ListedSession } from "./all_sessions";

interface Props {
  session: Pick<ListedSession, "title">;
  rename: (title: string) => Promise<void>;
  close: () => void;
}

const TITLE = 200; // characters

export function RenameDialog({ session, rename, close }: Props) {
  const [title, setTitle] = useState(session.title ?? "");
  const [trouble, setTrouble] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    rename(title.trim()).then(close, (error: Error) => setTrouble(error.message));
  };
  return (
    <Dialog title="Rename the session" onClose={close}>
      <form onSubmit={submit} class="form">
        <label class="field">
          Title
          <input autofocus required maxLength={TITLE} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
        </label>
        {trouble && <p role="alert" class="failure">{trouble}</p>}
        <p class="dialog-buttons">
          <button type="button" class="button" onClick={close}>Cancel</button>
          <button class="button primary" disabled={!title.trim()}>Rename</button>
        </p>
      </form>
    </Dialog>
  );
}
