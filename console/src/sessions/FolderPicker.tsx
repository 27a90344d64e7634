// Chooses a folder of the server's machine, of those in which this user may open a session.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { Dialog } from "../components/overlay/Dialog";
import { visible } from "../text/visible";
import { getJson } from "../wire/post";
import "./sessions.css";

interface Page {
  path: string;
  parent: string;
  folders: { name: string; path: string }[];
  roots: string[];
  more: boolean;
}

interface Props {
  start: string;
  pick: (folder: string) => void;
  close: () => void;
}

export function FolderPicker({ start, pick, close }: Props) {
  const [path, setPath] = useState(start);
  const [page, setPage] = useState<Page | null>(null);
  const [filter, setFilter] = useState("");
  const [hidden, setHidden] = useState(false);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    let isCurrent = true;
    const query = { path, ...(hidden && { hidden: "1" }) };
    getJson<Page>("/api/folders", query).then(
      (found) => isCurrent && (setPage(found), setTrouble(""), setFilter("")),
      (error: Error) => isCurrent && setTrouble(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [path, hidden]);
  const shown = page?.folders.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase())) ?? [];
  const choose = (event: Event) => {
    event.preventDefault();
    // One that is left of what was typed is gone into; else the folder that is shown is the one.
    if (filter && shown.length === 1) setPath(shown[0]!.path);
    else if (page && !filter) (close(), pick(page.path));
  };
  return (
    <Dialog title="Choose a folder" onClose={close} class="folder-picker">
      <form onSubmit={choose} class="form">
        <p class="where" role="status">{visible(page?.path ?? path)}</p>
        <input autofocus type="search" aria-label="Find a folder in this one" placeholder="Type a part of a name" value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)} />
        {trouble && (
          <p role="alert" class="failure">
            {trouble} {page ? <button type="button" class="button quiet" onClick={() => setPath(page.path)}>Stay here</button>
              : <button type="button" class="button quiet" onClick={() => setPath("")}>Begin elsewhere</button>}
          </p>
        )}
        <ol aria-label="Folders">
          {page?.parent && <Entry name="one up" icon="back" go={() => setPath(page.parent)} />}
          {shown.map((folder) => <Entry key={folder.path} name={visible(folder.name)} icon="folder" go={() => setPath(folder.path)} />)}
          {page && shown.length === 0 && <li class="muted small empty">{filter ? "No folder here is called so." : "There are no folders in this one."}</li>}
        </ol>
        {page?.more && <p class="small muted">There are more folders here than can be shown: type the path by hand.</p>}
        {(page?.roots.length ?? 0) > 1 && (
          <p class="small">You may work in: {page!.roots.map((root) => <button type="button" key={root} class="button quiet" onClick={() => setPath(root)}>{visible(root)}</button>)}</p>
        )}
        <label class="check"><input type="checkbox" checked={hidden} onChange={(event) => setHidden(event.currentTarget.checked)} /> hidden ones too</label>
        <p class="dialog-buttons">
          <button type="button" class="button" onClick={close}>Cancel</button>
          <button type="button" class="button primary" disabled={!page} onClick={() => (close(), pick(page!.path))}>Use this folder</button>
        </p>
      </form>
    </Dialog>
  );
}

function Entry({ name, icon, go }: { name: string; icon: "folder" | "back"; go: () => void }) {
  return <li><button type="button" onClick={go}><Icon name={icon} size={18} /> {name}</button></li>;
}
