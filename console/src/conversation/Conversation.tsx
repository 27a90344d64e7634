// The conversation: what was said and done, what waits for an answer, and the prompt.

import { useState } from "preact/hooks";
import { focusPrompt } from "../app/Frame";
import { useStore } from "../app/context";
import { Composer } from "./Composer";
import { PlanStrip } from "./Plan";
import { QuestionPanel } from "./Question";
import { RewindPanel, type RewindRequest } from "./Rewind";
import { Start } from "./Start";
import { Transcript } from "./Transcript";
import { WorkStrip } from "./Work";
import { Working } from "./Working";
import "./conversation.css";

export function Conversation({ initialDraft }: { initialDraft: string }) {
  const store = useStore();
  const [rewind, setRewind] = useState<RewindRequest | null>(null);
  const { current } = store;
  const open = rewind && rewind.sessionId === current?.state.id ? rewind : null;
  return (
    <>
      {current ? (
        <Transcript followed={current} rewind={(messageId, text) => setRewind({ sessionId: current.state.id, messageId, text })} />
      ) : (
        <Start />
      )}
      <div id="bottom">
        {current && <Working state={current.state} />}
        {current && <WorkStrip state={current.state} />}
        {current && <PlanStrip state={current.state} isAsked={store.questions.size > 0} />}
        <RewindPanel request={open} close={() => (setRewind(null), focusPrompt())} />
        <QuestionPanel />
        <Composer initialDraft={initialDraft} />
      </div>
    </>
  );
}
