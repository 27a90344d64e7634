"""The parser of a command, of one action of it (`dragoman tokens create`), and the options that every command has.

Part of every start: imports nothing but `argparse`.
"""

import argparse
from argparse import SUPPRESS
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dragoman.version import VERSION

# What commands, or the actions of one, are added to. `argparse` has no public name for it.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# Those of `coder.models.descriptions`, and of `logging`, which are not imported for this.
THOUGHT_LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

# What `--resume` and `--continue` without an id ask for.
NEWEST: Final = ""
CHOOSE: Final = "?"


def add_common_options(parser: argparse.ArgumentParser, *, log_level: bool, speaks: bool = True) -> None:
    """Add the group "on every command". `log_level`: with `--log-level`, for a command that has none of its own.
    `speaks`: the command speaks the protocol, and its help shows what is about that."""
    common = parser.add_argument_group("on every command")
    version = "use only this version of the protocol" if speaks else SUPPRESS
    trace = "append every message to FILE as JSON lines, without secrets" if speaks else SUPPRESS
    common.add_argument("--protocol", type=int, choices=(1, 2), help=version)
    common.add_argument("--trace", metavar="FILE", help=trace)
    if log_level:
        common.add_argument(
            "--log-level",
            choices=LOG_LEVELS,
            help="log what the program does to stderr, without content and secrets; DRAGOMAN_LOG does the same",
        )
        if "-v" not in parser._option_string_actions:
            common.add_argument(
                "-v", "--verbose", dest="log_level", action="store_const", const="info", help="as --log-level info"
            )
    common.add_argument("--version", action="version", version=f"dragoman {VERSION}", help="show the version")


class FormerSpelling(argparse.Action):
    """An option as the release before this one had it: it works, and says on stderr how it is written now.

    `const` is the option of now; one that takes a value takes it here too. `--help` does not show it.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        from dragoman.cli.errors import print_notice

        print_notice(f"{option} is written {self.const} now; the next release does not know {option} any more")
        setattr(namespace, self.dest, values)


def add_former(
    parser: "argparse._ActionsContainer",
    former: str,
    now: str,
    dest: str,
    *,
    convert: "Callable[[str], str]" = str,
) -> None:
    """Declare a former spelling of an option that takes a value; `convert` makes of it what it is now."""
    parser.add_argument(
        former, dest=dest, action=FormerSpelling, const=now, type=convert, default=SUPPRESS, help=SUPPRESS
    )


def add_max_cost(parser: argparse.ArgumentParser) -> None:
    """Add `--max-cost`."""
    parser.add_argument(
        "--max-cost", metavar="DOLLARS", type=dollars, help="stop a turn whose model calls have cost so much"
    )


def add_own_agent_options(parser: argparse.ArgumentParser) -> None:
    """Add what a caller chooses of one start of our own agent: how long it may go on, and its instructions."""
    parser.add_argument(
        "--max-turns", metavar="N", type=_count, help="stop a turn of Dragoman's own agent after N model requests"
    )
    parser.add_argument(
        "--system-prompt-file",
        metavar="F",
        type=_absolute,
        help="instructions for Dragoman's own agent, in the place of its own; its notes and tools stay",
    )


def add_resume(parser: argparse.ArgumentParser, help: str, *, without_id: str = NEWEST) -> None:
    """Declare `--resume [ID]` and `--continue`. `without_id`: what `--resume` alone means, `NEWEST` or `CHOOSE`."""
    resuming = parser.add_mutually_exclusive_group()
    resuming.add_argument("--resume", metavar="ID", nargs="?", const=without_id, help=help)
    resuming.add_argument(
        "--continue", dest="resume", action="store_const", const=NEWEST, help="go on with the newest of the folder"
    )


def add_thinking(parser: argparse.ArgumentParser) -> None:
    """Add `--thinking` of a command that is our own agent."""
    parser.add_argument(
        "--thinking",
        metavar="LEVEL",
        choices=THOUGHT_LEVELS,
        help=f"how hard models think that let one choose: {', '.join(THOUGHT_LEVELS)}; other models do not mind",
    )


def database_url(text: str) -> str:
    """Return the address of a database that was typed; raise `ArgumentTypeError` if it is none."""
    from dragoman.errors import UsageError
    from dragoman.store.postgres.database import check_url

    try:
        return check_url(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _absolute(file: str) -> str:
    import os

    return os.path.abspath(os.path.expanduser(file))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of dollars, 0 or more")
    return amount


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    description: str,
    *,
    epilog: str | None = None,
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Declare a command. A description of several lines is shown in these lines, and the epilog with it."""
    kind = argparse.RawDescriptionHelpFormatter if "\n" in description else argparse.HelpFormatter
    return commands.add_parser(
        name,
        help=summary,
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=kind,
        allow_abbrev=False,
    )


def add_action(
    actions: Commands, name: str, summary: str, *, as_json: str = "", usage: str | None = None
) -> argparse.ArgumentParser:
    """Declare an action. `as_json` says what `--json` prints; without it there is no such option."""
    description = f"{summary[0].upper()}{summary[1:]}."
    parser = actions.add_parser(name, help=summary, description=description, usage=usage, allow_abbrev=False)
    if as_json:
        parser.add_argument("--json", action="store_true", help=as_json)
    # The help of the command has these. Their defaults are the command's too: one given before the action stays.
    parser.add_argument("--protocol", type=int, choices=(1, 2), default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--trace", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--log-level", choices=LOG_LEVELS, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument(
        "-v", "--verbose", dest="log_level", action="store_const", const="info", default=SUPPRESS, help=SUPPRESS
    )
    parser.add_argument("--version", action="version", version=f"dragoman {VERSION}", help=argparse.SUPPRESS)
    return parser


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Declare whom a connection to an address believes."""
    parser.add_argument(
        "--ca-file", metavar="F", help="believe a server by the authorities in this PEM file alone, such as your own"
    )
    parser.add_argument("--insecure", action="store_true", help="do not warn where a token is sent without encryption")


def keep_command(parser: argparse.ArgumentParser) -> None:
    """Keep what follows `--` from the parser: it is the command of an agent, in `command_given`; None without `--`."""
    parser.set_defaults(command_given=None)
    whole = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        given = list(args or ())
        if "--" not in given:
            return whole(given, namespace)
        at = given.index("--")
        found, rest = whole(given[:at], namespace)
        found.command_given = given[at + 1 :]
        return found, rest

    parser.parse_known_args = parse  # type: ignore[method-assign]


def take_words_behind_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Let the argument `name`, a list of words, stand behind an option too: `argparse` looks for it only beside the
    argument before it. Comes before `keep_command`."""

    def parse(args: Any = None, namespace: Any = None) -> Any:
        found, rest = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
        unknown = [word for word in rest if word.startswith("-")]
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        setattr(found, name, [*getattr(found, name), *rest])
        return found, []

    parser.parse_known_args = parse  # type: ignore[method-assign]
