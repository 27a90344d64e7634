// The prompt: text, pictures and files, the options of the session, and the buttons that send and stop.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { focusPrompt } from "../app/Frame";
import { Icon } from "../app/Icon";
import { useStore } from "../app/context";
import { keepDraft } from "../state/memory";
import type { ContentBlock } from "../state/types";
import { visible } from "../text/visible";
import { readFiles, type Attachment } from "./attachments";
import { useCompletion, CompletionList } from "./Completion";
import { giveBack, setPrompt } from "./draft";
import { useHistory } from "./history";
import { Options } from "./Options";
import { Usage } from "./Usage";

const isFinger = () => matchMedia("(pointer: coarse)").matches;

export function Composer({ initialDraft }: { initialDraft: string }) {
  const store = useStore();
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const [attached, setAttached] = useState<Attachment[]>([]);
  const [isOver, setOver] = useState(false);
  const completion = useCompletion(field, store);
  const history = useHistory(store);
  const { me, mayPrompt, trouble, current } = store;
  const isRunning = current?.state.isRunning ?? false;
  // What is sent goes into the turn that runs; a person may want it to wait.
  const mayWait = isRunning && store.abilities.steers;
  useLayoutEffect(() => {
    if (initialDraft) setPrompt(me.name, initialDraft);
    focusPrompt();
  }, []);
  useLayoutEffect(() => focusPrompt(), [store.jumps]);
  useKeysOfThePage(stop);

  async function send(waits = false) {
    const element = field.current!;
    const text = element.value;
    if ((!text.trim() && !attached.length) || !store.wire) return;
    // The text first: a command is one only there.
    const words: ContentBlock[] = text.trim() ? [{ type: "text", text }] : [];
    const blocks = [...words, ...attached.map(({ block }) => block)];
    const sent = attached;
    element.value = "";
    setAttached([]);
    completion.close();
    history.add(text);
    // What is not sent yet outlives a reload.
    keepDraft(me.name, store.wire.ready ? "" : text);
    if (await store.prompt(blocks, waits)) keepDraft(me.name, field.current?.value ?? "");
    else {
      giveBack(me.name, text);
      setAttached((now) => [...sent, ...now]);
    }
  }

  function stop() {
    store.stop();
    focusPrompt();
  }

  async function attach(list: Iterable<File>) {
    await store.opened;
    const [read, troubles] = await readFiles([...list], store.abilities, attached);
    setAttached((now) => [...now, ...read]);
    store.setTrouble(troubles.join(" "));
    focusPrompt();
  }

  const pressed = (event: KeyboardEvent) => {
    if (completion.pressed(event)) return;
    if (history.pressed(event, field.current!)) return keepDraft(me.name, field.current!.value);
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isFinger()) return;
    event.preventDefault();
    void send(event.altKey && mayWait);
  };
  const pasted = (event: ClipboardEvent) => {
    const list = event.clipboardData?.files;
    if (!list?.length) return;
    event.preventDefault();
    void attach(list);
  };
  const dropped = (event: DragEvent) => {
    setOver(false);
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    void attach(event.dataTransfer.files);
  };
  const dragged = (event: DragEvent) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  return (
    <form id="composer" onSubmit={(event) => (event.preventDefault(), void send())}>
      <p id="trouble" role="alert" hidden={!trouble}>
        <span>{trouble}</span>
        <button type="button" class="button quiet icon" aria-label="Close this message" onClick={() => store.setTrouble("")}>
          <Icon name="close" size={16} />
        </button>
      </p>
      <div class={isOver ? "card over" : "card"} onDragOver={dragged} onDragLeave={() => setOver(false)} onDrop={dropped}>
        <CompletionList completion={completion} />
        {attached.length > 0 && (
          <ul class="attached" aria-label="Attached">
            {attached.map((one) => (
              <li key={one.key}>
                <Preview attachment={one} />
                <button type="button" class="button quiet icon" aria-label={`Remove ${visible(one.name)}`}
                  onClick={() => setAttached((now) => now.filter((other) => other !== one))}>
                  <Icon name="close" size={14} />
                </button>
              </li>
            ))}
          </ul>
        )}
        <textarea id="prompt" ref={field} rows={1} disabled={!mayPrompt} onKeyDown={pressed} onPaste={pasted}
          onInput={(event) => (keepDraft(me.name, event.currentTarget.value), completion.look())} onClick={completion.look} onBlur={completion.close}
          aria-label="Prompt" aria-describedby="prompt-help" aria-autocomplete="list" {...completion.attributes}
          placeholder={!mayPrompt ? "You can read here, and not write." : mayWait ? "Say more: the agent takes it up while it works." : isRunning ? "Say more: it is sent when the agent is done." : current ? "Say what to do. / has commands, @ has files." : "Say what to do."} />
        <span id="prompt-help" class="sr-only">Enter sends, Shift and Enter begins a new line, Escape stops.{mayWait && " Alt and Enter sends when the agent is done."}</span>
        <div id="controls">
          <button type="button" class="button quiet icon attach" aria-label="Attach files" title="Attach files" disabled={!mayPrompt}
            onClick={() => files.current!.click()}>
            <Icon name="attach" />
          </button>
          <input ref={files} id="files" type="file" multiple hidden onChange={(event) => {
            const input = event.currentTarget;
            void attach([...(input.files ?? [])]).then(() => (input.value = ""));
          }} />
          <Options />
          <Usage state={current?.state ?? null} />
          <button type="button" id="stop" class="button icon" hidden={!isRunning} disabled={!mayPrompt} title="Stop (Esc)" aria-label="Stop" onClick={stop}>
            <Icon name="stop" />
          </button>
          <button type="button" id="later" class="button quiet icon" hidden={!mayWait} disabled={!mayPrompt} title="Send when the agent is done (Alt+Enter)"
            aria-label="Send when the agent is done" onClick={() => void send(true)}>
            <Icon name="later" />
          </button>
          <button id="send" class="button primary icon" disabled={!mayPrompt} title={mayWait ? "Add to the turn (Enter)" : isRunning ? "Send when the agent is done (Enter)" : "Send (Enter)"} aria-label="Send">
            <Icon name="send" />
          </button>
        </div>
      </div>
    </form>
  );
}

function Preview({ attachment: { name, block } }: { attachment: Attachment }) {
  return (
    <>
      {block.type === "image" ? <img alt="" src={`data:${block.mimeType};base64,${block.data}`} /> : <Icon name="read" size={16} />}
      <span class="ellipsis">{visible(name)}</span>
    </>
  );
}

/** Escape stops the turn, and `/` goes to the prompt, wherever the focus is. */
function useKeysOfThePage(stop: () => void) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || document.getElementById("column")?.hidden) return;
      const isTyping = ["TEXTAREA", "INPUT", "SELECT"].includes(document.activeElement?.tagName ?? "");
      if (event.key === "Escape") stop();
      else if (event.key === "/" && !isTyping && document.getElementById("question")?.hidden) {
        event.preventDefault();
        document.getElementById("prompt")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
