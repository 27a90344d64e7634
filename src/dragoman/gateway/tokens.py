"""The tokens of a server, in a file that only its owner can read; the file has their hashes and not them.

A change of the file counts within a second, so a token is revoked without a restart.
"""

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.guard import SCOPES, Scope, Token, digest_of
from dragoman.transports.token import read_token

# `read_token` is the other half: what a client shows.
__all__ = ["Tokens", "read_token"]

# More than anybody has, so a wrong file is not read whole.
_FILE_BYTES: Final = 1024 * 1024
_LOOK_SECONDS: Final = 1.0


class _File(msgspec.Struct):
    tokens: list[Token] = []


class Tokens:
    """The file of tokens."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._tokens: Sequence[Token] = ()
        self._looked = float("-inf")
        self._stamp: tuple[int, int] | None = None

    def valid(self) -> Sequence[Token]:
        """Those that count now. A file that cannot be read lets nobody in."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            try:
                self._look()
            except UsageError:
                self._tokens = ()
        return self._tokens

    def make(self, name: str, scopes: Sequence[Scope] = SCOPES, principal: str = "") -> str:
        """A new token; it is given out here and can never be read again."""
        if not name.isprintable() or not name.strip() or len(name) > 64:
            raise UsageError("a token's name has 1 to 64 printable characters")
        self._look()
        if any(token.name == name for token in self._tokens):
            raise UsageError(f"there is a token {name!r} already; revoke it first")
        token = secrets.token_urlsafe(32)
        self._write([*self._tokens, Token(name, principal or name, tuple(scopes), digest_of(token.encode()))])
        return token

    def revoke(self, name: str) -> bool:
        """Forget a token. False: there was none of that name."""
        self._look()
        left = [token for token in self._tokens if token.name != name]
        if len(left) == len(self._tokens):
            return False
        self._write(left)
        return True

    def _look(self) -> None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._tokens, self._stamp = (), None
            return
        except OSError as error:
            raise UsageError(f"{self.path}: {(error.strerror or 'cannot be read').lower()}") from error
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp == self._stamp:
            return
        if found.st_mode & 0o077:
            raise UsageError(f"{self.path}: others can read or change it; run chmod 600 on it")
        try:
            with self.path.open("rb") as file:
                self._tokens = msgspec.json.decode(file.read(_FILE_BYTES), type=_File).tokens
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{self.path}: this is no file of tokens; move it away and start again") from error
        self._stamp = stamp

    def _write(self, tokens: list[Token]) -> None:
        """Beside it first, then in its place: whoever reads it finds the old file or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        with suppress(FileNotFoundError):
            beside.unlink()
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(_File(tokens)), indent=2) + b"\n")
        beside.replace(self.path)
        self._stamp = None
        self._look()
