"""What a command says when it cannot do what it was told, and whether there is a person to ask."""

import sys


def complain(sentence: str, code: int = 2) -> int:
    """A sentence on stderr, and the exit code for it."""
    print(f"dragoman: {sentence}", file=sys.stderr)
    return code


def can_ask() -> bool:
    """Whether a person at a terminal can read a question on stderr and answer it on stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
