"""The token that a client shows to a server: from a file that only its owner can read, or from a caller's own hands."""

import os
from typing import Final

from dragoman.errors import UsageError

# Far more than a token has, and less than a file that was named by mistake.
_TOKEN_BYTES: Final = 16 * 1024


def read_token(path: str | os.PathLike[str]) -> str:
    """The token in a file."""
    path = os.fspath(path)
    try:
        if os.stat(path).st_mode & 0o077:
            raise UsageError(f"{path}: others can read it; run chmod 600 on it")
        with open(path, "rb") as file:
            text = file.read(_TOKEN_BYTES + 1).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read").lower() if isinstance(error, OSError) else "this is no token"
        raise UsageError(f"{path}: {reason}") from error
    return one_token(text.strip(), path)


def one_token(text: str, place: str) -> str:
    """A token as it may stand in a header; `UsageError` names where it came from, and never what it is."""
    if not text or len(text.split()) != 1 or len(text) > _TOKEN_BYTES or not text.isascii() or not text.isprintable():
        raise UsageError(f"{place}: it must have one token and nothing else")
    return text
