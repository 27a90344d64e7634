"""What a command says when it cannot do what it was told."""

import sys


def complain(sentence: str, code: int = 2) -> int:
    """A sentence on stderr, and the exit code for it."""
    print(f"dragoman: {sentence}", file=sys.stderr)
    return code
