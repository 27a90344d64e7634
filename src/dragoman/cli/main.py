"""`dragoman`: reads the command line and hands over to one file a command.

An editor starts this and waits: what a command needs is imported when that command runs, and not here.
"""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from dragoman.cli.common_options import add_common_options
from dragoman.cli.errors import CommandError, print_error
from dragoman.version import VERSION

_DESCRIPTION = (
    "Agents and clients for the Agent Client Protocol: a coding agent for every editor, a client for every agent."
)
_EPILOG = "`dragoman COMMAND --help` explains a command."

INTERRUPTED: Final = 130
# Each is a module beside this one.
COMMANDS: Final = (
    "acp",
    "run",
    "chat",
    "serve",
    "tokens",
    "connect",
    "bridge",
    "sessions",
    "store",
    "cluster",
    "login",
    "logout",
    "auth",
    "trust",
    "permissions",
    "models",
    "mcp",
    "agents",
    "config",
    "doctor",
    "setup",
    "check",
    "trace",
    "completion",
    "demo",
)
# What a command without an action does.
DEFAULT_ACTIONS: Final = {
    "sessions": "list",
    "agents": "list",
    "auth": "status",
    "models": "list",
    "mcp": "list",
    "permissions": "list",
    "tokens": "list",
    "cluster": "status",
}
# They may stand before an action, or are of the command itself.
_BEFORE_ACTIONS: Final = ("-h", "--help", "--version", "--protocol", "--trace", "--log-level")
# These read and write nothing of ours: they leave it where it is.
_NEED_NO_FOLDERS: Final = ("connect", "completion", "demo", "check", "trace")
# These speak the protocol. Others take its two options too, and mean nothing by them: their help leaves them out.
_SPEAK: Final = ("acp", "run", "chat", "serve", "connect", "bridge", "agents", "check", "demo", "doctor", "sessions")
# They live long, with keys in their memory.
_HOLD_KEYS: Final = ("acp", "run", "chat", "serve", "connect", "--acp")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code. Without `argv` this is the program, which may end here."""
    code = _guarded(argv)
    # Only a command that has loaded it can have calls in the background; importing it costs the others time.
    background = sys.modules.get("dragoman.background")
    if argv is None and background is not None:
        background.end_process(code)
    return code


def _guarded(argv: Sequence[str] | None) -> int:
    """Run a command; what ends it besides its own return becomes an exit code or an entry in the log."""
    if argv is None and _command_of(sys.argv[1:]) in _HOLD_KEYS:
        from dragoman.host.process_privacy import make_undumpable

        make_undumpable()
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        if argv is None:  # the program ends: Python need not go through all it has, to look for garbage
            gc.freeze()
        if sys.stdout is not None:  # started without one
            sys.stdout.flush()
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the shell's prompt begins on a line of its own
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has closed its pipe: no error, and Python must not report one at exit either.
        _silence()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and _is_hang_up(error):
            _silence()
            return INTERRUPTED
        from dragoman.cli.failure_log import record

        record(_command_of(sys.argv[1:] if argv is None else argv), error)
        raise
    return code


def _silence() -> None:
    """Let Python not complain at exit about what it cannot write to stdout any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_hang_up(error: OSError) -> bool:
    """Return whether a write failed because the window of our terminal was closed: that is no failure of ours."""
    import errno
    import termios

    if error.errno != errno.EIO:
        return False
    for descriptor in (0, 1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as failure:
            if failure.args[0] == errno.EIO:  # what is no terminal at all answers ENOTTY
                return True
    return False


def _command_of(given: Sequence[str]) -> str:
    """Return the name of the command, without its arguments."""
    return given[0] if given and given[0] in (*COMMANDS, "--acp") else ""


def _run(given: Sequence[str]) -> int:
    if not given:
        if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
            command_line().print_help(sys.stderr)
            return 2
        given = ["chat"]
    if given[0] == "--version":  # no command has to be loaded for that
        print(f"dragoman {VERSION}")
        return 0
    if given[0] == "help":
        given = [*given[1:], "--help"]
    if given[0] == "--acp":  # as a program whose users come to us has it
        given = ["acp", "--dialect", "agentao", *given[1:]]
    elif list(given[:2]) == ["acp", "serve"]:  # as another one has it
        given = ["serve", "--elephant", *given[2:]]
    parser = command_line(given[0])
    if given[0].startswith("-") and given[0] not in ("-h", "--help"):
        parser.error(f"unrecognized arguments: {given[0]}; first comes a command, then its options")
    if given[0] not in COMMANDS and not given[0].startswith("-"):
        parser.error(_unknown_command(given))
    given = _with_action(given)
    arguments = parser.parse_args(given)
    # `serve` had an option of this name first: it is the level of the server's own log.
    level = None if arguments.command == "serve" else arguments.log_level
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        if arguments.command not in _NEED_NO_FOLDERS:
            _prepare_folders()
        if level is None and not os.environ.get("DRAGOMAN_LOG"):
            return run(arguments)
        from dragoman.cli.log_lines import logging_to_stderr

        is_server = arguments.command == "serve"
        with logging_to_stderr(arguments.command, level, os.environ, as_json=is_server):
            return run(arguments)
    except CommandError as error:
        return print_error(str(error))


def _prepare_folders() -> None:
    """Move what earlier versions had elsewhere, if anything. Raise `CommandError` where there can be no folders."""
    from dragoman.cli.home import former_names

    if former_names():
        from dragoman.cli.former_files import move_former_files

        move_former_files()


def _with_action(given: Sequence[str]) -> Sequence[str]:
    """Return the command line with the action that is meant where a command has none."""
    action = DEFAULT_ACTIONS.get(given[0])
    is_without = len(given) == 1 or (given[1].startswith("-") and given[1].partition("=")[0] not in _BEFORE_ACTIONS)
    return [given[0], action, *given[1:]] if action and is_without else given


def _unknown_command(given: Sequence[str]) -> str:
    """Return what to say of a first word that is no command: the one that was meant, or how a prompt is sent."""
    import shlex

    word = given[0]
    if not any(character.isspace() for character in word):
        near = _near(word, COMMANDS)
        if near:
            return f"there is no command {word!r}; did you mean `dragoman {near}`?"
        if len(given) == 1:
            return f"there is no command {word!r}; `dragoman --help` lists what there is"
    prompt = shlex.quote(" ".join(given))
    return f"there is no command {word!r}; to send a prompt write: dragoman run {prompt}"


def _near(word: str, words: Iterable[str]) -> str:
    """Return the word that was perhaps meant; empty: none is near."""
    import difflib

    near = difflib.get_close_matches(word.casefold(), words, n=5)
    near.sort(key=lambda one: sorted(one) != sorted(word.casefold()))  # two letters in the wrong order come first
    return near[0] if near else ""


class _CommandLine(argparse.ArgumentParser):
    """A parser that reports unknown arguments with the usage of the subcommand they were given to, and a missing or
    unknown action with those that there are."""

    def error(self, message: str) -> NoReturn:
        if message == "the following arguments are required: ACTION":
            message = f"an action is missing: {', '.join(self._actions_of_command())}"
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.dest == "action" and action.choices is not None and value not in action.choices:
            near = _near(str(value), action.choices)
            meant = f"did you mean `{self.prog} {near}`?" if near else f"there are {', '.join(action.choices)}"
            self.error(f"there is no action {value!r}; {meant}")
        if action.choices is not None and value not in action.choices:
            near = _near(str(value), map(str, action.choices))
            if near:
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near}?")
        super()._check_value(action, value)

    def _actions_of_command(self) -> Iterable[str]:
        """Return the actions that the command of this parser has."""
        return next((one.choices for one in self._actions if one.dest == "action" and one.choices), ())

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown)}")
        return found, unknown

    def _hint(self, unknown: Sequence[str]) -> str:
        """Return what may have been meant by the first of these words; empty: there is nothing to say."""
        word = unknown[0].partition("=")[0]
        if self.prog == "dragoman chat" and not word.startswith("-"):
            import shlex

            return f"; to send a prompt write: dragoman run {shlex.quote(' '.join(unknown))}"
        near = _near(word, self._option_string_actions) if word.startswith("--") else ""
        return f"; did you mean {near}?" if near else ""


def command_line(chosen: str = "") -> argparse.ArgumentParser:
    """Return the parser of every command and option.

    Where the command is known already, its own only: the others cost time.
    """
    parser = _CommandLine(prog="dragoman", description=_DESCRIPTION, epilog=_EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dragoman {VERSION}", help="show the version")
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        title="commands",
        prog="dragoman",  # else argparse formats a usage line to find it
    )
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        command = import_module(f"dragoman.cli.{name}")
        added = command.add(commands)
        add_common_options(added, log_level=name != "serve", speaks=name in _SPEAK)
        added.set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
