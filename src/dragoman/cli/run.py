"""`dragoman run`: one prompt to any agent, for people, scripts and CI."""

import argparse
import os
import stat
import sys
from typing import Final

from dragoman.cli.common_options import (
    Commands,
    add_command,
    add_former,
    add_max_cost,
    add_own_agent_options,
    add_resume,
)
from dragoman.cli.decode_input import decode_input
from dragoman.cli.errors import CommandError
from dragoman.cli.target import add_allow, add_from_session, add_target
from dragoman.cli.worktrees import add_worktree_option

_DESCRIPTION = """\
Send one prompt to an agent and show its turn. Without --agent and -- CMD it is
the defaultServer of acp.json, or Dragoman's own agent. On a terminal you
see its tool calls and are asked for permission; through a pipe you get the
answer alone.
"""
_EPILOG = """\
  dragoman run "Explain @src/main.py"
  dragoman run --allow edit "Fix the typo in the README" -- gemini --acp
  git diff | dragoman run --stream-json "Review this:" -
  dragoman run --agent https://agents.example.org --cwd /srv/app "What is new?"

A word - stands for what comes on stdin, and @path for a file that goes along
(not inside what comes on stdin).

An agent that is started on this machine may read files in its folder without
asking, but for those that hold credentials. With --allow edit it may change
files there too, with all do anything it asks for, with none nothing. Files and
terminals that it uses through us stay inside the folder, also with all. For an
agent behind an address, ssh, a container or the like nothing is allowed before
--allow says so. The rest is asked on a terminal, and refused where there is
none. This does not hold back an agent that does not ask. The token for an
address is read from --token-file or DRAGOMAN_TOKEN, and an agent there works on
the files there.

exit codes: 0 done, 2 wrong usage, 3 refused, 4 a limit of the model or of what
may be spent, 5 something was not allowed, 6 the agent failed, 124 timeout, 130
cancelled
"""
# More is no prompt; the agent reads files itself.
STDIN_BYTES: Final = 16 * 1024 * 1024


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "run",
        "one prompt to any agent, for people and scripts",
        _DESCRIPTION,
        epilog=_EPILOG,
        usage="dragoman run [options] PROMPT [-- CMD ...]",
    )
    parser.add_argument(
        "prompt",
        metavar="PROMPT",
        nargs="*",
        help="the prompt; - stands for what comes on stdin, and can be left out where it is all",
    )
    add_target(parser)
    add_worktree_option(parser)
    add_from_session(parser)
    add_max_cost(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="print one JSON object at the end: the answer, and what was used, changed and denied",
    )
    output.add_argument(
        "--stream-json",
        dest="format",
        action="store_const",
        const="stream-json",
        help="print each event as a JSON line",
    )
    add_former(output, "--format", "--stream-json", "format", convert=_former_format)
    parser.set_defaults(format="text")
    add_allow(parser)
    parser.add_argument("--timeout", metavar="S", type=_seconds, help="cancel the turn after S seconds")
    add_resume(parser, "go on with this session, its id or its title; without one, as --continue does")
    add_former(parser, "--session", "--resume", "resume")
    parser.add_argument(
        "--image", metavar="FILE", action="append", default=[], type=_image, help="a picture for the prompt; repeatable"
    )
    parser.add_argument(
        "--output-schema", metavar="FILE", help="print an answer that is JSON and fits the JSON schema in FILE"
    )
    parser.add_argument(
        "--add-dir",
        metavar="DIR",
        action="append",
        default=[],
        type=_folder,
        help="a further folder of a new session, where the agent takes that; repeatable",
    )
    add_own_agent_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Say it."""
    from dragoman import background
    from dragoman.cli.one_turn import OneTurn
    from dragoman.cli.target import chosen_folder, chosen_target
    from dragoman.cli.worktrees import chosen_worktree

    if not arguments.prompt and (arguments.worktree or arguments.resume or not _stdin_is_given()):
        raise CommandError(_no_prompt(arguments))
    empty = "the prompt is empty" if arguments.prompt else _no_prompt(arguments)
    typed, piped = _prompt(arguments.prompt or ["-"], empty)
    target = chosen_target(arguments)
    if not target.ours:
        _refuse_own_options(arguments)
    folder = chosen_worktree(arguments, target, chosen_folder(arguments, target))
    schema = None
    if arguments.output_schema is not None:
        from dragoman.cli.output_schema import read_output_schema

        schema = read_output_schema(arguments.output_schema)
    single_turn = OneTurn(arguments, target, folder, typed, piped, schema)
    return background.run(single_turn.perform())


def _refuse_own_options(arguments: argparse.Namespace) -> None:
    if arguments.max_cost is not None:
        raise CommandError("--max-cost holds back Dragoman's own agent alone; another agent keeps no account for us")
    for option in ("--max-turns", "--system-prompt-file"):
        if getattr(arguments, option[2:].replace("-", "_")) is not None:
            raise CommandError(f"{option} is for Dragoman's own agent alone")


def _former_format(text: str) -> str:
    if text not in ("text", "json"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither text nor json")
    return "stream-json" if text == "json" else text


def _image(text: str) -> str:
    """Return the picture as it is named in a prompt."""
    if not os.path.isfile(os.path.expanduser(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no file")
    return f'@"{os.path.abspath(os.path.expanduser(text))}"'


def _folder(text: str) -> str:
    folder = os.path.abspath(os.path.expanduser(text))
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"{text!r} is no folder")
    return folder


def _no_prompt(arguments: argparse.Namespace) -> str:
    """Return what to write where there is no prompt: it may have been taken for what an option wants."""
    for option, given in (("--worktree", arguments.worktree), ("--resume", arguments.resume)):
        if given:
            what = "the worktree's name" if option == "--worktree" else "a session"
            return f"there is no prompt: {given!r} was taken as {what}; write {option}=NAME PROMPT"
    return 'there is no prompt; write dragoman run "PROMPT"'


def _stdin_is_given() -> bool:
    """Return whether stdin is a file or a pipe: then the prompt may come from there without a `-`."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # started without one, or something that is none
        return False
    return stat.S_ISREG(kind) or stat.S_ISFIFO(kind)


def _prompt(words: list[str], empty: str) -> tuple[list[str], str | None]:
    """Return the prompt: the arguments, and stdin where an argument says so. `empty` is said where it has no word."""
    piped = None
    if "-" in words:
        if sys.stdin is None:
            raise CommandError("there is no stdin to read the prompt from")
        from dragoman.host.decoding import decode_text, describe_binary

        data = sys.stdin.buffer.read(STDIN_BYTES + 1)
        if len(data) > STDIN_BYTES:
            raise CommandError(f"stdin has more than {STDIN_BYTES // 1024 // 1024} MiB; name a file with @path instead")
        decoded = decode_text(data)
        if decoded is None:
            raise CommandError(f"stdin is not text: {describe_binary(data, len(data))}; name a file with @path instead")
        piped = decoded.text
    words = [decode_input(word) for word in words]
    if not "".join(word for word in words if word != "-").strip() and not (piped or "").strip():
        raise CommandError(empty)
    return words, piped


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e8:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
