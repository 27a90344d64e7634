"""`python -m evals`, or `./dev eval`: our agent, or another, at the tasks of `evals/tasks`; a table and a report.

Exit status: 0 every attempt has a verdict, 1 some could not be run, 2 wrong usage, 130 interrupted.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evals.agents import OURS, SCRIPTED, AgentChoice
from evals.confinement import ROOT, bubblewrap
from evals.progress import Progress
from evals.report import report
from evals.results import UNGRADED, Attempt, ResultFile, slug, table
from evals.run import open_work, run
from evals.task import TASKS, Task, TaskError, load_tasks, select

FOLDER: Final = ROOT / "build" / "evals"
_MOST_AT_ONCE: Final = 64
_EPILOG: Final = f"""\
Attempts that have a verdict are not made again: the same command goes on where it was stopped.

  ./dev eval --model anthropic/claude-sonnet-5 --parallel 4
  ./dev eval --model ollama/qwen3-coder --tasks bug 'merge-*' --repeat 3
  ./dev eval --agent gemini --tasks injection-file
  ./dev eval --model solution     the harness proves itself: {", ".join(SCRIPTED)} play what a task's folder says
"""


def main(words: Sequence[str] | None = None, folder_of_tasks: Path = TASKS) -> int:
    """Run the command `words` and return its exit status."""
    parser = _parser()
    options = parser.parse_args(words)
    try:
        tasks = select(load_tasks(folder_of_tasks), options.tasks)
    except TaskError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{task.name:30} {task.kind:15} {task.language:11} {task.title}" for task in tasks))
        return 0
    folder = options.out or FOLDER / slug(f"{options.agent}-{options.model}-{options.mode}")
    choice = AgentChoice(options.agent, options.model, options.mode, options.env, [folder.resolve()])
    if choice.name == OURS and not choice.model:
        parser.error("--model is missing, such as --model anthropic/claude-sonnet-5")
    if choice.name != OURS and (choice.model or choice.mode):
        parser.error("--model and --mode are for our own agent; another one chooses by its own settings or --env")
    return evaluate(tasks, choice, folder, options)


def evaluate(tasks: Sequence[Task], choice: AgentChoice, folder: Path, options: argparse.Namespace) -> int:
    """Make what is still to be made, print the table and write the report."""
    file = ResultFile(folder / "results.jsonl")
    if options.again:
        shutil.rmtree(folder, ignore_errors=True)
    if bubblewrap() is None:
        print("Note: without bubblewrap an agent can find the graders, and checks run unconfined.", file=sys.stderr)
    wanted = {(task.name, task.digest, number) for task in tasks for number in range(1, options.repeat + 1)}

    def relevant() -> list[Attempt]:
        return [one for one in file.load() if one.key in wanted]

    work = open_work(tasks, options.repeat, relevant())
    progress = Progress(len(wanted), [one for one in relevant() if one.verdict not in UNGRADED], sys.stderr)
    try:
        asyncio.run(run(work, choice, file, progress, options.parallel))
    except KeyboardInterrupt:
        progress.close()
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130
    finally:
        progress.close()
        _conclude(relevant(), folder)
    return 1 if any(one.verdict in UNGRADED for one in relevant()) else 0


def _conclude(attempts: Sequence[Attempt], folder: Path) -> None:
    if attempts:
        print(table(attempts))
        page = folder / "report.html"
        page.write_text(report(attempts), encoding="utf-8")
        print(f"\nWrote {page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev eval",
        description="An agent at tasks of our own, each graded by checks that it cannot see.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--model", default="", metavar="M", help="model of our agent, as `dragoman acp --model` takes it"
    )
    parser.add_argument("--agent", default=OURS, metavar="A", help="another agent: a known name, or a command")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="T", help="names, kinds or languages, with wildcards")
    parser.add_argument("--mode", default="", metavar="MODE", help="mode of our agent; without it the task's own")
    parser.add_argument("--parallel", type=_count, default=1, metavar="N", help="attempts at the same time; 1")
    parser.add_argument("--repeat", type=_count, default=1, metavar="N", help="attempts at each task; 1")
    parser.add_argument("--env", action="append", default=[], metavar="NAME", help="a variable that the agent gets too")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where results.jsonl and report.html are; build/evals/…"
    )
    parser.add_argument("--again", action="store_true", help="forget what is done, and begin anew")
    parser.add_argument("--list", action="store_true", help="list the tasks and do nothing")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_AT_ONCE:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {_MOST_AT_ONCE}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
