"""`dragoman sessions`: the stored sessions; list, show, export, audit, fork, rewind, delete and finish them."""

import argparse
from typing import Any

from dragoman.cli.common_options import Commands, add_action, add_command, database_url
from dragoman.cli.errors import print_error
from dragoman.cli.target import add_allow, add_target

_DESCRIPTION = """\
The sessions that `dragoman acp` has kept. ID is a session's id, or the
beginning of it where that is the beginning of only one; `sess_` can be left
out. The whole title of a session will do too, where only one has it, in this
folder or of all.
"""
_EPILOG = """\
`dragoman sessions ACTION --help` explains an action.

  dragoman sessions list --cwd .
  dragoman sessions show sess_1f0c
  dragoman sessions export sess_1f0c --format markdown --output talk.md
  dragoman sessions audit sess_1f0c
  dragoman sessions rewind sess_1f0c --to 3 --files
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "sessions",
        "list, show, export, fork, rewind, delete, finish stored sessions",
        _DESCRIPTION,
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    listing = add_action(
        actions, "list", "the sessions there are, the newest first", as_json="one JSON array of sessions"
    )
    listing.add_argument(
        "-C", "--cwd", metavar="DIR", help="only sessions of this folder, and of worktrees made for it"
    )
    listing.add_argument("--all", action="store_true", help="archived ones too")
    listing.add_argument("--limit", metavar="N", type=_count, help="at most so many")
    show = add_action(actions, "show", "a session as a transcript", as_json="one JSON array of events")
    show.add_argument("id", metavar="ID")
    show.add_argument("--full", action="store_true", help="do not shorten what tools put out")
    export = add_action(actions, "export", "a session's events, or a document", as_json="the same as --format jsonl")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", choices=("jsonl", "markdown"), help="jsonl, an event a line, is the default")
    export.add_argument("-o", "--output", metavar="FILE", help="write there and not to stdout")
    audit = add_action(actions, "audit", "who allowed or refused what, a JSON object a line", as_json="the same")
    audit.add_argument("id", metavar="ID")
    fork = add_action(
        actions, "fork", "copy a session, and print the new id", as_json="the new session as a JSON object"
    )
    fork.add_argument("id", metavar="ID")
    fork.add_argument(
        "--at", metavar="MESSAGE_ID", help="up to this message, with it; `export` shows the ids of messages"
    )
    going_on = add_action(
        actions,
        "continue",
        "go on with a session, also with another agent",
        usage="dragoman sessions continue ID [options] [PROMPT] [-- CMD ...]",
    )
    going_on.add_argument("id", metavar="ID")
    going_on.add_argument(
        "prompt", metavar="PROMPT", nargs="*", help="as of `dragoman run`; without it a chat begins at this terminal"
    )
    _take_words_behind_options(going_on)
    add_target(going_on)
    add_allow(going_on)
    rewind = add_action(
        actions,
        "rewind",
        "go back to before a prompt: files, conversation or both",
        as_json="a JSON object with what was done",
    )
    rewind.add_argument("id", metavar="ID")
    rewind.add_argument(
        "--to", metavar="N", type=_count, help="to before prompt N, counted from 1; the last by default"
    )
    scopes = rewind.add_mutually_exclusive_group()
    for scope in ("files", "conversation"):
        scopes.add_argument(f"--{scope}", dest="scope", action="store_const", const=scope, help=f"only {scope}")
    rewind.add_argument("--undo", action="store_true", help="take the last rewind back")
    rewind.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")
    delete = add_action(
        actions, "delete", "delete sessions for good", as_json="a JSON object with the ids of the deleted sessions"
    )
    delete.add_argument("ids", metavar="ID", nargs="+")
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")
    for action in (listing, show, export, audit, fork, delete):
        action.add_argument(
            "--store",
            metavar="URL",
            type=database_url,
            help="sessions in this database, postgresql://…, and not those of this user",
        )
    finish = add_action(actions, "finish", "merge, keep or remove the git worktree that a session works in")
    finish.add_argument("id", metavar="ID", help="the session, or the name of the worktree in this repository")
    wishes = finish.add_mutually_exclusive_group()
    for wish, help in (
        ("merge", "merge its branch into the one it was made from, then remove it"),
        ("keep", "leave everything as it is"),
        ("remove", "remove the folder and the branch, with what is not merged"),
    ):
        wishes.add_argument(f"--{wish}", dest="wish", action="store_const", const=wish, help=help)
    finish.add_argument("--message", metavar="TEXT", help="of the commit, where something is not committed yet")
    finish.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")
    return parser


def _take_words_behind_options(parser: argparse.ArgumentParser) -> None:
    """Let the prompt stand behind an option too: `argparse` looks for it only beside the ID."""

    def parse(args: Any = None, namespace: Any = None) -> Any:
        found, rest = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
        unknown = [word for word in rest if word.startswith("-")]
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        found.prompt = [*found.prompt, *rest]
        return found, []

    parser.parse_known_args = parse  # type: ignore[method-assign]


# The options with a value that `sessions continue` has from `run`.
_OF_RUN = (
    *("cwd", "agent", "token_file", "ca_file", "model", "mode", "thinking", "allow"),
    *("protocol", "trace", "log_level"),
)


def _as_command_line(arguments: argparse.Namespace) -> list[str]:
    """Return the `run` or the `chat` that `sessions continue` is."""
    words = ["run" if arguments.prompt else "chat", "--from-session", arguments.id]
    for option in _OF_RUN:
        if getattr(arguments, option):
            words += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
    words += ["--show-stderr"] if arguments.show_stderr else []
    words += ["--insecure"] if arguments.insecure else []
    words += arguments.prompt
    return words if arguments.command_given is None else [*words, "--", *arguments.command_given]


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if arguments.action == "continue":
        from dragoman.cli.main import main

        if arguments.allow and not arguments.prompt:
            return print_error("--allow goes with a PROMPT; a chat asks you")
        return main(_as_command_line(arguments))
    from dragoman import background
    from dragoman.cli.errors import CommandError
    from dragoman.cli.session_actions import perform
    from dragoman.store.contract import StoreFailed

    if arguments.action == "export" and arguments.json and arguments.format == "markdown":
        return print_error("--json and --format markdown are two different things; choose one")
    if arguments.action == "rewind" and arguments.undo and arguments.to is not None:
        return print_error("--undo takes the last rewind back, whichever prompt that was to; leave --to out")
    try:
        return background.run(perform(arguments))
    except (CommandError, StoreFailed) as failure:
        return print_error(str(failure), 1)
