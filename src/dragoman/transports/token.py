"""The token that a client sends to a server: from a file that only its owner can read, or from the caller."""

import os
from contextlib import suppress
from typing import Final

from dragoman.errors import UsageError

# Far more than a token has, and less than a file that was named by mistake.
_TOKEN_BYTES: Final = 16 * 1024


def read_token(path: str | os.PathLike[str]) -> str:
    """Return the token in a file. Raise `UsageError` if others can read the file, or if it holds something else."""
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
    """Return a token as it may stand in a header. Raise `UsageError` with the `place` it came from, never its text."""
    if not text or len(text.split()) != 1 or len(text) > _TOKEN_BYTES or not text.isascii() or not text.isprintable():
        raise UsageError(f"{place}: it must have one token and nothing else")
    return text


class TokenFile:
    """The token in a file, which a program may renew while a connection lasts: those of an OpenID issuer end after some
    minutes. Raise `UsageError` as `read_token` does."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._token = read_token(path)

    def __repr__(self) -> str:  # never the token
        return f"<TokenFile {os.fspath(self._path)}>"

    def current(self) -> str:
        """Return the token that is in the file now; the last one while the file cannot be used. Blocks for the disk."""
        # Read with every request and not watched: it is short, and comes from the page cache.
        with suppress(UsageError):
            self._token = read_token(self._path)
        return self._token
