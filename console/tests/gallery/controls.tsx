// What is clicked: dialogs, menus, plots.

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../src/components/overlay/Dialog";
import { Menu } from "../../src/components/overlay/Menu";
import { Toast } from "../../src/components/overlay/Toast";
import { Plot } from "../../src/components/plot/Plot";

export function Overlays() {
  const [isAsked, setAsked] = useState(false);
  const [done, setDone] = useState("");
  const item = (label: string) => ({ label, onPick: () => setDone(label) });
  return (
    <>
      <div class="gallery-row">
        <Menu
          label="More about the session"
          class="button"
          items={[item("Rename"), { ...item("Archive"), isDisabled: true }, { ...item("Delete"), isDangerous: true, hint: "with undo" }]}
        >
          More
        </Menu>
        <button class="button" onClick={() => setAsked(true)}>
          Delete
        </button>
      </div>
      <p class="done">{done}</p>
      {isAsked && (
        <ConfirmDialog title="Delete the session?" confirm="Delete" isDangerous onConfirm={() => setDone("Deleted")} onClose={() => setAsked(false)}>
          <p>Its messages are gone then.</p>
        </ConfirmDialog>
      )}
      {done === "Deleted" && <Toast text="The session was deleted." action={item("Undo")} onEnd={() => setDone("")} />}
    </>
  );
}

export function Plots() {
  const wave = (count: number) => Array.from({ length: count }, (_, at) => ({ at: at * 10_000, value: 50 + 40 * Math.sin(at / 9) }));
  const gaps = wave(120).map((point, index) => (index % 30 < 6 ? { ...point, value: null } : point));
  return (
    <div class="gallery-plots">
      <Plot label="Requests in a second" points={wave(360)} format={(value) => value.toFixed(0)} />
      <Plot label="Memory" points={gaps} format={(value) => `${value.toFixed(1)} MiB`} />
      <Plot label="Errors" points={[]} />
    </div>
  );
}
