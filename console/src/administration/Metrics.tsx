// What the server measures, live: a look each two seconds, five minutes of them.

import { useRef } from "preact/hooks";
import { Plot, type PlotPoint } from "../components/plot/Plot";
import { bytes } from "../text/words";
import { get } from "../wire/post";
import { mean, parseMetrics, rate, total, type Samples } from "./prometheus";
import { usePolled } from "./polled";

const EVERY = 2000; // milliseconds
const KEPT = 150; // looks

interface Look {
  at: number;
  samples: Samples;
}

interface Curve {
  label: string;
  /** The value of a look, with the one before it. */
  of: (now: Look, before: Look | undefined) => number | null;
  format?: (value: number) => string;
}

const rounded = (unit: string) => (value: number) => `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${unit}`;
const gauge = (name: string) => ({ samples }: Look) => total(samples, `dragoman_${name}`);
const perSecond = (name: string) => (now: Look, before: Look | undefined) =>
  before ? rate(before.samples, now.samples, `dragoman_${name}`, (now.at - before.at) / 1000) : null;
const milliseconds = (name: string) => (now: Look, before: Look | undefined) => {
  const seconds = before ? mean(before.samples, now.samples, `dragoman_${name}`) : null;
  return seconds === null ? null : seconds * 1000;
};

const CURVES: readonly Curve[] = [
  { label: "Turns that run", of: gauge("turns") },
  { label: "Sessions that wait for an answer", of: gauge("questions") },
  { label: "Sessions open", of: gauge("sessions") },
  { label: "Connections", of: gauge("connections") },
  { label: "Agent processes", of: gauge("agents") },
  { label: "Requests answered", of: perSecond("answer_seconds_count"), format: rounded("/s") },
  { label: "Answer, mean", of: milliseconds("answer_seconds"), format: rounded("ms") },
  { label: "Text on its way, mean", of: milliseconds("chunk_seconds"), format: rounded("ms") },
  { label: "Requests refused", of: perSecond("refused_total"), format: rounded("/s") },
  { label: "Kept for clients that come back", of: gauge("held_bytes"), format: bytes },
];

export function Metrics() {
  const looks = useRef<Look[]>([]);
  const { trouble } = usePolled(async () => {
    const answer = await get("/metrics").catch(() => null);
    if (!answer?.ok) throw new Error("The measurements cannot be had now. They come again by themselves.");
    looks.current = [...looks.current, { at: Date.now(), samples: parseMetrics(await answer.text()) }].slice(-KEPT);
    return looks.current.length;
  }, EVERY);
  return (
    <section aria-label="Live measurements">
      {trouble && <p role="alert" class="failure">{trouble}</p>}
      <div class="plots">
        {CURVES.map(({ label, of, format }) => (
          <Plot key={label} label={label} points={points(looks.current, of)} {...(format && { format })} />
        ))}
      </div>
      <p class="small muted">Of this node, in this page only. <code>/metrics</code> has them for Prometheus.</p>
    </section>
  );
}

function points(looks: readonly Look[], of: Curve["of"]): PlotPoint[] {
  return looks.map((look, number) => ({ at: look.at, value: of(look, looks[number - 1]) }));
}
