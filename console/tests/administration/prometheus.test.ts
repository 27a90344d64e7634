// What `/metrics` says, read and compared between two looks.

import { expect, test } from "vitest";
import { mean, parseMetrics, rate, total } from "../../src/administration/prometheus";

const FIRST = `# HELP dragoman_turns Turns that run.
# TYPE dragoman_turns gauge
dragoman_turns 2.0
dragoman_refused_total{status="401"} 3.0
dragoman_refused_total{status="403"} 1.0
dragoman_refused_total_other 50.0
dragoman_answer_seconds_bucket{le="+Inf",method="session/new"} 4.0
dragoman_answer_seconds_count{method="session/new"} 4.0
dragoman_answer_seconds_sum{method="session/new"} 2.0
nonsense
`;
const SECOND = FIRST.replace("} 3.0", "} 9.0").replace("_count{method=\"session/new\"} 4.0", "_count{method=\"session/new\"} 6.0").replace("} 2.0", "} 5.0");

test("series are read, and summed over their labels", () => {
  const samples = parseMetrics(FIRST);
  expect(total(samples, "dragoman_turns")).toBe(2);
  expect(total(samples, "dragoman_refused_total")).toBe(4);
  expect(total(samples, "dragoman_unknown")).toBe(0);
});

test("a rate is what a counter grew by in a second, and nothing where it began anew", () => {
  const [before, after] = [parseMetrics(FIRST), parseMetrics(SECOND)];
  expect(rate(before, after, "dragoman_refused_total", 2)).toBe(3);
  expect(rate(after, before, "dragoman_refused_total", 2)).toBeNull();
  expect(rate(before, after, "dragoman_refused_total", 0)).toBeNull();
});

test("a mean is of what was measured between two looks, and nothing where nothing was", () => {
  const [before, after] = [parseMetrics(FIRST), parseMetrics(SECOND)];
  expect(mean(before, after, "dragoman_answer_seconds")).toBe(1.5);
  expect(mean(before, before, "dragoman_answer_seconds")).toBeNull();
});
