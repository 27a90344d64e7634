// Before a session: in which folder, with which agent, and three things to begin with.

import { useRef, useState } from "preact/hooks";
import { useStore } from "../app/context";
import type { FolderPicker } from "../sessions/FolderPicker";
import { chosenAgent, chooseAgent, keepNext } from "../state/memory";
import { visible } from "../text/visible";
import { setPrompt } from "./draft";

const EXAMPLES = [
  ["Look around", "read README.md"],
  ["Write something", "create hello.py with print('hello')"],
  ["Check something", "run the tests and explain what fails"],
] as const;

export function Start() {
  const store = useStore();
  const { me, wish } = store;
  const agents = me.agents ?? [];
  const changeAgent = (name: string) => {
    store.close();
    chooseAgent(name);
    keepNext("", {});
    location.assign("/");
  };
  const folder = useRef<HTMLInputElement>(null);
  const [Picker, setPicker] = useState<typeof FolderPicker | null>(null);
  const browse = () => import("../sessions/FolderPicker").then(
    (module) => setPicker(() => module.FolderPicker),
    () => store.setTrouble("The list of folders could not be fetched. Type the path of one, or load the page again."),
  );
  const take = (path: string) => {
    if (folder.current) folder.current.value = path;
    store.setWish({ folder: path });
  };
  return (
    <section id="transcript" tabIndex={0} aria-label="New session" data-state="none">
      <div id="start">
        <h2>What shall we do?</h2>
        <div class="fields">
          {agents.length > 1 && (
            <label class="field">
              Agent
              <select id="agent" value={agents.includes(chosenAgent()) ? chosenAgent() : agents[0]} onChange={(event) => changeAgent(event.currentTarget.value)}>
                {agents.map((name) => <option key={name} value={name}>{visible(name)}</option>)}
              </select>
            </label>
          )}
          <div class="field">
            <label for="folder">Folder</label>
            <span class="folder-line">
              <input id="folder" ref={folder} spellcheck={false} autocapitalize="off" autocomplete="off" required defaultValue={wish.folder}
                disabled={!store.mayPrompt} onInput={(event) => store.setWish({ folder: event.currentTarget.value })} />
              <button type="button" class="button" id="browse" disabled={!store.mayPrompt} onClick={() => void browse()}>Choose…</button>
            </span>
            {Picker && <Picker start={folder.current?.value || me.folder} pick={take} close={() => setPicker(null)} />}
          </div>
          <label class="check">
            <input type="checkbox" id="worktree" checked={wish.inWorktree} disabled={!store.mayPrompt}
              onChange={(event) => store.setWish({ inWorktree: event.currentTarget.checked })} />
            in a git worktree of its own
          </label>
        </div>
        {store.mayPrompt ? (
          <ul class="examples" aria-label="Examples">
            {EXAMPLES.map(([title, text]) => (
              <li key={text}>
                <button type="button" class="button example" onClick={() => setPrompt(me.name, text)}>
                  <strong>{title}</strong>
                  <span class="muted">{text}</span>
                </button>
              </li>
            ))}
          </ul>
        ) : (
          <p class="muted">Your login may read sessions, and not begin any. Choose one from the list.</p>
        )}
      </div>
    </section>
  );
}
