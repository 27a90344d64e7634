"""Print the errors and warnings of commands; say whether there is a person to ask.

Exit codes that several commands share are here; `one_turn` has the others of `dragoman run`.

Sentences hold names from files, agents and folders. What acts on a terminal is spelled out here, so no caller can
forget it.
"""

import sys
from typing import Final

# Exit codes that several commands have: it was not done; the command line asks for what cannot be; the agent failed.
NOT_DONE: Final = 1
USAGE: Final = 2
FAILED: Final = 6


class CommandError(Exception):
    """A command cannot do what its arguments or the settings ask for; the text says what is wrong, for the user.

    `main` prints it, and ends with the code for wrong usage.
    """


def print_error(sentence: str, code: int = USAGE) -> int:
    """Print a sentence on stderr, made harmless, and return the exit code for it."""
    print_notice(sentence)
    return code


def print_notice(sentence: str) -> None:
    """Print a sentence on stderr, made harmless, if there is a stderr: stdout may carry the protocol."""
    from dragoman.host.text import harmless

    if sys.stderr is not None:
        print(f"dragoman: {harmless(sentence)}", file=sys.stderr)


def print_warning(sentence: str) -> None:
    """Print on stderr, made harmless, what the user should know while the command goes on."""
    print_error(f"warning: {sentence}")


def warn_about_plain_http(url: str, *, insecure: bool = False) -> None:
    """Say on stderr that a token for this address is sent where others can read it; nothing where they cannot.

    `insecure`: the user knows, and nothing is said.
    """
    from dragoman.client.targets import is_readable_on_the_way

    if not insecure and is_readable_on_the_way(url):
        print_warning(
            f"{url} is not encrypted: others on the network can read the token and the whole conversation. "
            "Use https:// or wss://, or an SSH tunnel to a port of this machine; --insecure silences this."
        )


def discard_typed_input() -> None:
    """Discard what was typed at the terminal until now: it is no answer to a question that is yet to be shown."""
    import termios

    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, OSError, ValueError):
        pass  # stdin has become something else; what comes from there is read, and judged, as it is


def can_ask_user() -> bool:
    """Return whether a person at a terminal can read a question on stderr and answer it on stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
