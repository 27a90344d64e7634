import { render } from "@testing-library/preact";
import { expect, test } from "vitest";
import { Plot } from "../../src/components/plot/Plot";

const points = (...values: (number | null)[]) => values.map((value, index) => ({ at: index * 60_000, value }));

test("a plot says its last value, its highest and its span in words", () => {
  const { container } = render(<Plot label="Sessions" points={points(1, 9, 3)} format={(value) => `${value} open`} />);
  expect(container.textContent).toBe("Sessions 3 open highest 9 open in 2 min");
});

test("a gap in the values is a gap in the curve", () => {
  const { container } = render(<Plot label="Load" points={points(0, 1, null, 1, 0)} height={24} />);
  const curves = [...container.querySelectorAll(".plot-line")].map((path) => path.getAttribute("d"));
  expect(curves).toEqual(["M0 22 L250 2", "M750 2 L1000 22"]);
});

test("without values there is a sentence and no curve", () => {
  const { container } = render(<Plot label="Load" points={[]} />);
  expect(container.textContent).toBe("Load no values yet");
  expect(container.querySelectorAll("path")).toHaveLength(0);
});

test("of very many points the peaks are kept", () => {
  const many = Array.from({ length: 5_000 }, (_, index) => ({ at: index, value: index === 3_333 ? 100 : 1 }));
  const { container } = render(<Plot label="Load" points={many} height={24} />);
  const curve = container.querySelector(".plot-line")!.getAttribute("d")!;
  expect(curve.split(" L").length).toBeLessThanOrEqual(400);
  expect(curve).toMatch(/ 2( |$)/);
});
