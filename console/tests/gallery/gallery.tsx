// Each component with what it may have to show, for tests in a browser: `#NAME` shows one. Not part of the console.

import "../../src/app/theme.css";
import "../../src/app/base.css";
import "./gallery.css";
import { type ComponentType, render } from "preact";
import { Changes, Code, Commands, Prose } from "./content";
import { Overlays, Plots } from "./controls";
import { Streaming, Transcript } from "./transcript";

/** What is not clicked, on one page. */
function All() {
  return (
    <>
      <Prose />
      <Code />
      <Changes />
      <Commands />
      <Plots />
    </>
  );
}

const PAGES: Record<string, ComponentType> = {
  all: All,
  prose: Prose,
  code: Code,
  changes: Changes,
  commands: Commands,
  overlays: Overlays,
  plots: Plots,
  transcript: Transcript,
  streaming: Streaming,
};

const name = location.hash.slice(1);
const Page = PAGES[name]!;
const theme = new URLSearchParams(location.search).get("theme");
if (theme) document.documentElement.dataset.theme = theme;
render(
  <main>
    <h1>{name}</h1>
    <Page />
  </main>,
  document.getElementById("root")!,
);
