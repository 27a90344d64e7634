"""`dragoman trace`: record what passes between a client and an agent, and read, compare and replay recordings."""

import argparse
from importlib import import_module
from typing import Final

from dragoman.cli.common_options import Commands, add_action, add_command, add_trust, keep_command

_DESCRIPTION = """\
Record what passes between any client and any agent, and read, compare, replay
and shorten recordings. The file is what --trace FILE of every command writes:
JSON lines, of which a later part replaces none, without secrets of known forms.
"""
_EPILOG = """\
In the settings of an editor, in place of the agent's own command:

  dragoman trace record -o /tmp/acp.jsonl -- gemini --acp
  dragoman trace view /tmp/acp.jsonl
"""
# Where each action is done.
_ACTIONS: Final = {
    "record": "trace_record",
    "view": "trace_view",
    "follow": "trace_follow",
    "diff": "trace_diff",
    "replay": "trace_replay",
    "shrink": "trace_shrink",
    "redact": "trace_redact",
}


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "trace", "record and read what clients and agents say", _DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    _add_record(actions)
    _add_view(actions)
    _add_follow(actions)
    _add_diff(actions)
    _add_replay(actions)
    _add_shrink(actions)
    _add_redact(actions)
    keep_command(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Do one action and return its exit code."""
    module = import_module(f"dragoman.cli.{_ACTIONS[arguments.action]}")
    code: int = module.run(arguments)
    return code


def _add_record(actions: Commands) -> None:
    record = add_action(
        actions,
        "record",
        "stand between an editor on stdin and stdout and an agent, and write down what passes",
        usage="dragoman trace record -o FILE [options] (-- CMD ... | URL)",
    )
    record.add_argument("-o", "--output", metavar="FILE", required=True, help="the trace; what is there stays")
    record.add_argument("url", metavar="URL", nargs="?", help="an agent at an address, in place of -- CMD")
    record.add_argument("--token-file", metavar="F", help="token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(record)
    record.add_argument("--no-redact", action="store_true", help="write secrets too, as to replay what needs them")
    add_bounds(record)


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Declare how large a trace may become."""
    parser.add_argument(
        "--max-size",
        metavar="MIB",
        type=_mebibytes,
        default=64,
        help="of one file; then it becomes FILE.1 (default 64)",
    )
    parser.add_argument("--keep", metavar="N", type=_few, default=2, help="so many older files (default 2)")


def _add_view(actions: Commands) -> None:
    view = add_action(actions, "view", "show a trace as a timeline", as_json="a line of JSON for each message")
    view.add_argument("file", metavar="FILE", help="the trace")
    add_filters(view)
    view.add_argument("--no-findings", action="store_true", help="judge nothing; quicker for a long trace")
    view.add_argument("--wire", action="store_true", help="show each frame whole below its row")
    view.add_argument(
        "--html", metavar="F", help="write one page without scripts to F, to be sent to others; - is stdout"
    )


def _add_follow(actions: Commands) -> None:
    follow = add_action(
        actions,
        "follow",
        "show a trace while it is written, or a session of a server while it goes on",
        as_json="a line of JSON for each message",
        usage="dragoman trace follow FILE [options]\n       dragoman trace follow URL SESSION [options]",
    )
    follow.add_argument("file", metavar="FILE", help="the trace; it may not be there yet. Or the URL of a server")
    follow.add_argument("of_session", metavar="SESSION", nargs="?", help="a session that is open at the server")
    follow.add_argument("--from-start", action="store_true", help="show what is in the file already, too")
    follow.add_argument("--wire", action="store_true", help="show each frame whole below its row")
    follow.add_argument("--token-file", metavar="F", help="token with admin for a server; else it is in DRAGOMAN_TOKEN")
    add_trust(follow)
    add_filters(follow, live=True)


def _add_diff(actions: Commands) -> None:
    diff = add_action(
        actions,
        "diff",
        "compare two traces by meaning: ids, times and the pieces of a text are no difference",
        as_json="a line of JSON for each difference",
    )
    diff.add_argument("a", metavar="A", help="a trace")
    diff.add_argument("b", metavar="B", help="another one")
    _add_comparing(diff)
    diff.add_argument("--most", metavar="N", type=_count, default=100, help="show N differences (default 100)")


def _add_replay(actions: Commands) -> None:
    replay = add_action(
        actions,
        "replay",
        "play one side of a trace to a live agent or client, up to the first difference",
        as_json="one object at the end",
        usage="dragoman trace replay FILE --as client [options] (-- CMD ... | URL)\n"
        "       dragoman trace replay FILE --as agent [options]",
    )
    replay.add_argument("file", metavar="FILE", help="the trace")
    replay.add_argument("url", metavar="URL", nargs="?", help="an agent at an address, in place of -- CMD")
    replay.add_argument(
        "--as",
        dest="role",
        choices=("agent", "client"),
        required=True,
        help="which side is played; an agent on stdin and stdout, for a client that starts this command",
    )
    replay.add_argument("--cwd", metavar="DIR", help="a folder in the place of the recorded ones")
    replay.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=30.0, help="wait so long for each message (default 30)"
    )
    for option in replay._actions:
        if "--protocol" in option.option_strings:  # every action has it, most without a use for it
            option.help = "speak to the live side in this version, over a bridge"
    _add_comparing(replay)
    replay.add_argument("--token-file", metavar="F", help="token for an address; else it is in DRAGOMAN_TOKEN")
    add_trust(replay)


def _add_comparing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--connection", metavar="N", default="", help="of this connection, where there are several")
    parser.add_argument(
        "--ignore",
        metavar="NAME",
        action="append",
        default=[],
        help="leave out this method or update; * and ? are wild",
    )
    parser.add_argument(
        "--ignore-field", metavar="NAME", action="append", default=[], help="leave out fields of this name"
    )


def _add_shrink(actions: Commands) -> None:
    shrink = add_action(
        actions,
        "shrink",
        "find the shortest trace that still fails",
        usage="dragoman trace shrink FILE -o F [options] -- CMD ...",
    )
    shrink.add_argument("file", metavar="FILE", help="the trace")
    shrink.add_argument("-o", "--output", metavar="F", required=True, help="the shortest one; it may not be there yet")
    shrink.add_argument("--connection", metavar="N", default="", help="of this connection, where there are several")
    shrink.add_argument("--cwd", metavar="DIR", help="a folder in the place of the recorded ones")
    shrink.add_argument(
        "--failure", metavar="TEXT", default="", help="the failure that is meant, or a part of its words"
    )
    shrink.add_argument("--runs", metavar="N", type=_count, default=200, help="run it at most so often (default 200)")
    shrink.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=10.0, help="wait so long for each answer (default 10)"
    )


def add_filters(parser: argparse.ArgumentParser, *, live: bool = False) -> None:
    """Declare which messages are shown. `live`: without what only a whole trace can tell."""
    shown = parser.add_argument_group("which messages")
    shown.add_argument("--session", metavar="ID", default="", help="of this session; a part at its start is enough")
    shown.add_argument(
        "--method", metavar="NAME", action="append", default=[], help="of this method or update; * and ? are wild"
    )
    shown.add_argument("--connection", metavar="N", default="", help="of this connection")
    shown.add_argument("--from", dest="sender", choices=("client", "agent"), default="", help="sent by this side")
    shown.add_argument("--errors", action="store_true", help="answers that are errors, and what is no message")
    if live:
        parser.set_defaults(slow=0.0, findings=False)
        return
    shown.add_argument(
        "--slow", metavar="SECONDS", type=_seconds, default=0.0, help="requests that took so long or have no answer"
    )
    shown.add_argument("--findings", action="store_true", help="messages that `check` has something against")


def _add_redact(actions: Commands) -> None:
    redact = add_action(actions, "redact", "copy a trace without its secrets")
    redact.add_argument("file", metavar="FILE", help="the trace")
    redact.add_argument(
        "-o", "--output", metavar="F", required=True, help="the copy; it may not be there yet; - is stdout"
    )
    redact.add_argument(
        "--content", action="store_true", help="also take out prompts, answers, files and output; lengths stay"
    )
    redact.add_argument("--secret", metavar="NAME", action="append", default=[], help="the value of this variable too")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000000")
    return int(text)


def _mebibytes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 512:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 512")
    return int(text)


def _few(text: str) -> int:
    if not text.isdecimal() or int(text) > 99:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 99")
    return int(text)
