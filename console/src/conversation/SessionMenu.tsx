// What can be done with the session that is shown.

import { useState } from "preact/hooks";
import { Icon } from "../app/Icon";
import { useApp, useStore } from "../app/context";
import { href, navigate } from "../app/router";
import { Menu, type MenuItem } from "../components/overlay/Menu";
import { RenameDialog } from "../sessions/RenameDialog";
import { ShareDialog } from "../sessions/ShareDialog";
import { currentAgent } from "../state/agents";
import type { Followed } from "../state/store";
import { harmless } from "../text/visible";
import { asMarkdown, download } from "./export";

export function SessionMenu() {
  const store = useStore();
  return store.current && store.mayPrompt ? <MenuOf key={store.current.state.id} followed={store.current} /> : null;
}

function MenuOf({ followed }: { followed: Followed }) {
  const { me, store } = useApp();
  const [dialog, setDialog] = useState<"" | "rename" | "share">("");
  const { state } = followed;
  const title = harmless(state.title || "Untitled");
  const copy = async () => {
    const isDone = await navigator.clipboard?.writeText(asMarkdown(state)).then(() => true, () => false);
    store.setTrouble(isDone ? "" : "This browser does not let the page copy. Download the conversation instead.");
  };
  const rename = async (wanted: string) => {
    await store.request("session/set_title", { sessionId: state.id, title: wanted });
    state.title = wanted;
    void store.list();
  };
  const fork = async () => {
    const made = await store.tried(store.request("session/fork", { sessionId: state.id, cwd: state.cwd, mcpServers: [] }));
    if (!made) return;
    await store.list();
    navigate(href("session", made.sessionId));
  };
  const other = [...store.followed.keys()].reverse().find((id) => id !== state.id);
  const items: MenuItem[] = [
    { label: "Copy the conversation", onPick: () => void copy() },
    { label: "Download as Markdown", onPick: () => download(state) },
    { label: "Rename", onPick: () => setDialog("rename") },
    { label: "Share", onPick: () => setDialog("share") },
    ...(other ? [{ label: "Side by side with the one before", onPick: () => navigate(href("beside", other, state.id)) }] : []),
    ...(store.abilities.forks ? [{ label: "Fork", onPick: () => void fork(), isDisabled: state.isRunning }] : []),
  ];
  const close = () => setDialog("");
  return (
    <>
      <Menu label="What to do with this session" items={items}><Icon name="more" /></Menu>
      {dialog === "rename" && <RenameDialog session={{ title: state.title }} rename={rename} close={close} />}
      {dialog === "share" && <ShareDialog sessionId={state.id} agent={currentAgent(me)} title={title} close={close} />}
    </>
  );
}
