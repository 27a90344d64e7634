// How text of the agent is drawn: prose, changes of files, output of commands.

import type { DiffContent } from "../state/types";
import { visible } from "../text/visible";
import { splitPath } from "../text/words";

export function Markdown({ text }: { text: string; isOpen: boolean }) {
  return <div class="plain">{text}</div>;
}

const SEQUENCE = /\u001b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\u001b\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|\u001b[PX^_][^\u001b]{0,4096}\u001b\\|\u001b[ -/]{0,8}[0-OQ-WYZ`-~\\]/g;

export function OutputView({ text, isCut }: { text: string; isCut: boolean }) {
  return <pre class="screen">{(isCut ? "…\n" : "") + text.replace(SEQUENCE, "")}</pre>;
}

const LINES = 5000; // lines shown of a patch; with more a browser gets slow
const KINDS: Record<string, string> = { "+": "added", "-": "removed", "@": "place" };

/** What is done to which paths, and the patch. */
export function DiffView({ diff, cwd }: { diff: DiffContent; cwd: string }) {
  const text = diff.patch?.text;
  return (
    <div class="diff">
      {(diff.changes ?? []).map((change, index) => (
        <div class="path" key={index}>
          {visible(change.operation ?? "")} {change.oldPath ? `${visible(change.oldPath)} → ` : ""}
          <PathIn path={change.path ?? ""} cwd={cwd} />
        </div>
      ))}
      {typeof text === "string" && <PatchView text={text} paths={pathsOf(diff)} />}
    </div>
  );
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

/** Whether a line before the first place only repeats which files are changed. One that names another file does not. */
function repeats(line: string, paths: string[]): boolean {
  if (/^index /.test(line)) return true;
  const name = /^(?:--- |\+\+\+ |diff --git .* (?=b?\/))(?:[ab]\/)?([^\t]+)/.exec(line)?.[1];
  return name !== undefined && (name === "/dev/null" || paths.some((path) => path === name || path.endsWith(`/${name}`)));
}

/** The lines of a patch of files at these paths. */
export function PatchView({ text, paths }: { text: string; paths: string[] }) {
  const lines = text.replace(/\n$/, "").split("\n");
  let inside = false; // before the first place a line names files
  const shown = [];
  for (const [index, line] of lines.slice(0, LINES).entries()) {
    if (/^diff --git /.test(line)) inside = false;
    if (line.startsWith("@@")) inside = true;
    else if (paths.length && !inside && repeats(line, paths)) continue;
    const kind = inside ? KINDS[line[0] ?? ""] ?? "same" : "place";
    shown.push(<span class={`line ${kind}`} key={index}>{visible(line) + "\n"}</span>);
  }
  if (lines.length > LINES) shown.push(<span class="line place">{`${lines.length - LINES} more lines are not shown.\n`}</span>);
  return <pre class="patch">{shown}</pre>;
}
