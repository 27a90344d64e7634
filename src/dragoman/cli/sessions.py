"""`dragoman sessions`: the stored sessions; find, show, change, copy, rewind and delete them."""

import argparse

from dragoman.cli.common_options import Commands, add_action, add_command, database_url, take_words_behind_options
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
  dragoman sessions search "flaky test"
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
        "find, show, change, copy, rewind, delete stored sessions",
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
    search = add_action(
        actions, "search", "the sessions in which some words were said", as_json="one JSON array of what was found"
    )
    search.add_argument("words", metavar="WORD", nargs="+", help="all of them in one message or title; case is alike")
    search.add_argument("-C", "--cwd", metavar="DIR", help="only sessions of this folder, and of worktrees made for it")
    search.add_argument("--all", action="store_true", help="archived ones too")
    search.add_argument("--limit", metavar="N", type=_count, default=20, help="at most so many; 20 if left out")
    stats = add_action(
        actions, "stats", "how much was said and used, and in how many sessions", as_json="a JSON object"
    )
    stats.add_argument("-C", "--cwd", metavar="DIR", help="only sessions of this folder, and of worktrees made for it")
    stats.add_argument("--days", metavar="N", type=_count, help="only sessions that were used in the last N days")
    rename = add_action(actions, "rename", "give a session another title", as_json="the session as a JSON object")
    rename.add_argument("id", metavar="ID")
    rename.add_argument("title", metavar="TITLE")
    archive = add_action(actions, "archive", "put sessions away: lists leave them out", as_json="the same, as JSON")
    archive.add_argument("ids", metavar="ID", nargs="+")
    archive.add_argument("--undo", action="store_true", help="take them out again")
    prune = add_action(
        actions, "prune", "delete old sessions for good", as_json="a JSON object with the ids of the deleted sessions"
    )
    prune.add_argument("--older-than", metavar="DAYS", type=_days, help="not used for so many days, such as 90 or 90d")
    prune.add_argument("--empty", action="store_true", help="those without a prompt")
    prune.add_argument("-C", "--cwd", metavar="DIR", help="only sessions of this folder, and of worktrees made for it")
    prune.add_argument("--archived", action="store_true", help="only those that are put away")
    prune.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where there is no terminal")
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
    take_words_behind_options(going_on, "prompt")
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
    for action in (listing, search, stats, rename, archive, prune, show, export, audit, fork, delete):
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


def _days(text: str) -> int:
    return _count(text.removesuffix("d"))


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
    if arguments.action == "prune" and arguments.older_than is None and not arguments.empty:
        return print_error("which ones? --older-than DAYS, --empty, or both: then those that are either")
    if arguments.action == "rewind" and arguments.undo and arguments.to is not None:
        return print_error("--undo takes the last rewind back, whichever prompt that was to; leave --to out")
    try:
        return background.run(perform(arguments))
    except (CommandError, StoreFailed) as failure:
        return print_error(str(failure), 1)
