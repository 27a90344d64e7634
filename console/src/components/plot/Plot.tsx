// A small plot of one value over time.
//
//   <Plot label={string} points={readonly PlotPoint[]} format?={(value) => string} height?={number} least?={number} />
//
// `points`: `{ at: milliseconds, value: number | null }` by rising time; null leaves a gap. `format`: a value with its unit.
// `least`: the lowest value that the plot reaches down to (0). The last value, the highest and the span of time stand
// beside it as text, so the curve itself is a picture with these words as its name.

import type { VNode } from "preact";
import { useId } from "preact/hooks";
import "./plot.css";

export interface PlotPoint {
  readonly at: number;
  readonly value: number | null;
}

export interface PlotProps {
  label: string;
  points: readonly PlotPoint[];
  format?: (value: number) => string;
  height?: number;
  least?: number;
}

const MOST_POINTS = 400; // drawn; of more, the highest of each group is taken, so that no peak is lost
const WIDTH = 1000;

export function Plot({ label, points, format = String, height = 56, least = 0 }: PlotProps): VNode {
  const id = useId();
  const drawn = thinned(points);
  const values = drawn.flatMap(({ value }) => (value === null ? [] : [value]));
  const last = values.at(-1);
  const most = Math.max(least, ...values);
  const span = drawn.length > 1 ? spanOf(drawn.at(-1)!.at - drawn[0]!.at) : "";
  return (
    <figure class="plot" aria-labelledby={id}>
      <figcaption id={id}>
        <span class="plot-label">{label}</span> <span class="plot-value">{last === undefined ? "no values yet" : format(last)}</span>
        {span && (
          <span class="plot-range">
            {" "}
            highest {format(most)} in {span}
          </span>
        )}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} height={height} preserveAspectRatio="none" aria-hidden="true">
        {lines(drawn, least, most, height).map((path, index) => (
          <g key={index}>
            <path class="plot-area" d={`${path.line} L${path.to} ${height} L${path.from} ${height} Z`} />
            <path class="plot-line" d={path.line} />
          </g>
        ))}
      </svg>
    </figure>
  );
}

interface Path {
  line: string;
  from: number;
  to: number;
}

function lines(points: readonly PlotPoint[], least: number, most: number, height: number): Path[] {
  const [start, end] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1];
  const x = (at: number) => Math.round(((at - start) / Math.max(1, end - start)) * WIDTH);
  const y = (value: number) => Math.round((1 - (value - least) / (most - least || 1)) * (height - 4) * 10) / 10 + 2;
  const found: Path[] = [];
  let isOpen = false;
  for (const { at, value } of points) {
    if (value === null) isOpen = false;
    else if (!isOpen) {
      found.push({ line: `M${x(at)} ${y(value)}`, from: x(at), to: x(at) });
      isOpen = true;
    } else {
      const path = found.at(-1)!;
      path.line += ` L${x(at)} ${y(value)}`;
      path.to = x(at);
    }
  }
  return found;
}

function thinned(points: readonly PlotPoint[]): readonly PlotPoint[] {
  if (points.length <= MOST_POINTS) return points;
  const size = Math.ceil(points.length / MOST_POINTS);
  const found: PlotPoint[] = [];
  for (let at = 0; at < points.length; at += size) {
    const group = points.slice(at, at + size);
    found.push(group.reduce((top, point) => ((point.value ?? -Infinity) > (top.value ?? -Infinity) ? point : top)));
  }
  return found;
}

function spanOf(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
