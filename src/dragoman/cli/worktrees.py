"""`--worktree` of `run` and `chat`, and `dragoman sessions finish`: work in a git worktree, and what becomes of it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import CommandError, can_ask_user, discard_typed_input, print_error
from dragoman.cli.text_width import harmless_line

if TYPE_CHECKING:
    from dragoman.cli.target import Target
    from dragoman.host.worktrees import Worktree, WorktreeState
    from dragoman.store.contract import Store

_HELP: Final = (
    "work in a git worktree of its own, on branch dragoman/NAME; one of that name is used again. "
    "`dragoman sessions finish NAME` merges or removes it"
)
# Changed files and commits that are named before a question.
_NAMED: Final = 10
_WISHES: Final = {"m": "merge", "k": "keep", "r": "remove"}


def add_worktree_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--worktree [NAME]`."""
    parser.add_argument("--worktree", metavar="NAME", nargs="?", const="", help=_HELP)


def chosen_worktree(arguments: argparse.Namespace, target: "Target", folder: str) -> str:
    """Return the folder to work in: the given one, or, with `--worktree`, that of a worktree, which is made."""
    if arguments.worktree is None:
        return folder
    if target.is_remote:
        raise CommandError("--worktree is for agents of this machine; the agent behind an address has its own files")
    from dragoman import background
    from dragoman.host.worktrees import WorktreeFailed, add_worktree

    try:
        made = background.run(add_worktree(folder, arguments.worktree, os.environ, _parent()))
    except WorktreeFailed as error:
        hint = "; if that was the prompt, write --worktree=" if " " in arguments.worktree else ""
        raise CommandError(f"--worktree: {harmless_line(str(error))}{hint}") from None
    print(
        f"dragoman: working in {harmless_line(made.folder)}, on branch {harmless_line(made.branch)}; "
        f"`dragoman sessions finish {made.name}` merges or removes it",
        file=sys.stderr,
    )
    return made.folder


def _parent() -> str:
    from dragoman.cli.settings import read_settings

    return os.path.expanduser(read_settings().text("worktrees"))


async def worktree_meant(store: "Store", given: str) -> "Worktree":
    """Return the worktree that is meant: by its name in this repository, or by a session that works in it.

    Raise `CommandError` for a session that works in none, and for one that is open in another process.
    """
    from dragoman.cli.find_session import SessionUnknown, find_session
    from dragoman.host.worktrees import find_worktree, worktrees_of

    worktree = next((one for one in worktrees_of(".") if one.name == given), None)
    if worktree is None:
        try:
            meta = await store.read_meta(await find_session(store, given, "."))
        except SessionUnknown:
            raise CommandError(
                f"there is no worktree and no session {given!r}; `git worktree list` shows the worktrees of a "
                "repository, `dragoman sessions list --all` the sessions"
            ) from None
        worktree = find_worktree(meta.cwd)
        if worktree is None:
            raise CommandError(f"session {given} works in {harmless_line(meta.cwd)}, which is no worktree of ours")
    await _check_unused(store, worktree)
    return worktree


async def _check_unused(store: "Store", worktree: "Worktree") -> None:
    """Raise `CommandError` if a session in the worktree is open in another process."""
    from dragoman.store.contract import SessionHeld, StoreFailed

    for meta in (await store.list(cwd=worktree.folder)).sessions:
        try:
            await (await store.open(meta.id)).release()
        except SessionHeld as failure:
            raise CommandError(f"{meta.id} works in {harmless_line(worktree.path)}: {failure}") from None
        except StoreFailed:
            pass  # a damaged log holds up nothing


async def finish(worktree: "Worktree", arguments: argparse.Namespace) -> int:
    """Merge, keep or remove a worktree, after asking; return the exit code."""
    from dragoman.host.worktrees import WorktreeFailed, state_of

    try:
        state = await state_of(worktree, os.environ)
        _print_state(worktree, state)
        wish = arguments.wish or await _ask_wish(worktree)
        if wish == "keep":
            print("Kept as it is.", file=sys.stderr)
            return 0
        return await (_merge if wish == "merge" else _remove)(worktree, state, arguments)
    except WorktreeFailed as error:
        return print_error(harmless_line(str(error)), 1)


async def _merge(worktree: "Worktree", state: "WorktreeState", arguments: argparse.Namespace) -> int:
    from dragoman.host.worktrees import commit_changes, merge_worktree, remove_worktree

    if state.changed:
        if not await _confirm(f"Commit the {_files(len(state.changed))} first?", arguments):
            return print_error("nothing was merged: there are changes that are not committed", 1)
        await commit_changes(worktree, arguments.message or f"Work of {worktree.branch}", os.environ)
    elif not state.commits:
        print("There is nothing to merge.", file=sys.stderr)
    if state.changed or state.commits:
        if not await _confirm(f"Merge {worktree.branch} into {worktree.base}?", arguments):
            return print_error("nothing was merged", 1)
        commit = await merge_worktree(worktree, os.environ)
        print(f"Merged into {harmless_line(worktree.base)} as {commit}.", file=sys.stderr)
    await remove_worktree(worktree, os.environ)
    print(f"Removed {harmless_line(worktree.path)} and its branch.", file=sys.stderr)
    return 0


async def _remove(worktree: "Worktree", state: "WorktreeState", arguments: argparse.Namespace) -> int:
    from dragoman.host.worktrees import commit_changes, remove_worktree

    lost = [_files(len(state.changed))] if state.changed else []
    lost += [f"{len(state.commits)} commits"] if state.commits else []
    question = f"Remove it with {' and '.join(lost)} that are not in {worktree.base}?" if lost else "Remove it?"
    if not await _confirm(question, arguments):
        return print_error("nothing was removed", 1)
    if state.changed:  # git keeps what is committed for some weeks, also when no branch has it
        await commit_changes(worktree, f"Removed with {worktree.branch}", os.environ)
    tip = await remove_worktree(worktree, os.environ)
    back = f"; `git branch {worktree.branch} {tip}` brings it back for some weeks" if lost else ""
    print(f"Removed {harmless_line(worktree.path)} and its branch{back}.", file=sys.stderr)
    return 0


def _print_state(worktree: "Worktree", state: "WorktreeState") -> None:
    print(f"{harmless_line(worktree.path)}: branch {worktree.branch}, made from {worktree.base}", file=sys.stderr)
    for what, lines in ((f"not committed: {_files(len(state.changed))}", state.changed), ("commits", state.commits)):
        if lines:
            print(f"{what}:" if what != "commits" else f"{len(lines)} commits:", file=sys.stderr)
            for line in lines[:_NAMED]:
                print(f"  {harmless_line(line)}", file=sys.stderr)
            if len(lines) > _NAMED:
                print(f"  and {len(lines) - _NAMED:,} more", file=sys.stderr)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


async def _ask_wish(worktree: "Worktree") -> str:
    if not can_ask_user():
        raise CommandError("there is no terminal to ask at: add --merge, --keep or --remove, and --yes")
    answer = await _answer(f"[m]erge into {worktree.base}, [k]eep, or [r]emove? [k] ")
    return _WISHES.get(answer[:1], "keep")


async def _confirm(question: str, arguments: argparse.Namespace) -> bool:
    if arguments.yes:
        return True
    if not can_ask_user():
        raise CommandError("there is no terminal to ask at; add --yes")
    return await _answer(f"{question} [y/N] ") in ("y", "yes")


async def _answer(question: str) -> str:
    from dragoman.cli.session_actions import read_line

    discard_typed_input()
    print(question, end="", file=sys.stderr, flush=True)
    answer = await read_line()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower()
