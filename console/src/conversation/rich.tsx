// How what the agent sends is drawn: prose, changes of files, output of commands.

import { useSettings } from "../app/context";
import { DiffView as Diff } from "../components/diff/Diff";
import { Markdown as Prose } from "../components/markdown/Markdown";
import { Output } from "../components/output/Output";
import { choose, settings } from "../state/settings";
import type { DiffContent } from "../state/types";
import { visible } from "../text/visible";
import { splitPath } from "../text/words";

export function Markdown({ text, isOpen }: { text: string; isOpen: boolean }) {
  return <Prose text={text} streaming={isOpen} />;
}

export function OutputView({ text, isCut, isRunning }: { text: string; isCut: boolean; isRunning: boolean }) {
  if (!text && !isRunning) return null;
  return <Output text={(isCut ? "…\n" : "") + text} isRunning={isRunning} />;
}

export function DiffView({ diff }: { diff: DiffContent }) {
  useSettings();
  return <Diff diff={diff} view={settings().isSplit ? "split" : "unified"} onView={(view) => choose({ isSplit: view === "split" })} />;
}

/** A path, of which what lies in the folder of the session stands out. */
export function PathIn({ path, cwd }: { path: string; cwd: string }) {
  const [head, tail] = splitPath(path, cwd);
  return <span><span class="muted">{visible(head)}</span>{visible(tail)}</span>;
}

/** The paths that a diff says it changes. */
export function pathsOf(diff: DiffContent): string[] {
  const paths = (diff.changes ?? []).flatMap((change) => [change.path, change.oldPath]);
  return paths.filter((path): path is string => typeof path === "string");
}
