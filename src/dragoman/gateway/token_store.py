"""The tokens of a server, in a file that only its owner can read; the file has their hashes and not them.

A change of the file counts within a second, so a token is revoked without a restart; one that has expired counts as
revoked. A process that changes the file holds a lock on its folder meanwhile, so no change undoes another.

A token is an object with its fields. Files of earlier releases have arrays, `[name, principal, scopes, digest]`;
they are read, and written anew with the next change.
"""

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from dragoman.errors import UsageError
from dragoman.gateway.token_types import SCOPES, Scope, SessionShare, Token, TokenLimits, Unsure, digest_of
from dragoman.host.private_file import check_private, write_private
from dragoman.host.regular_file import read_whole

# So that a wrong file is not read whole, and a bound for what is written. A token takes some 300 bytes, a share link
# 550; the console makes 2,000 and 1,000 of them at most, and folders make a token much longer.
_FILE_BYTES: Final = 4 * 1024 * 1024
_CHECK_SECONDS: Final = 1.0
# Changing the file takes a few milliseconds; a process that holds the lock for longer hangs.
_WAIT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.01


class _OldToken(NamedTuple):
    """A token as earlier releases wrote it."""

    name: str
    principal: str
    scopes: tuple[Scope, ...]
    digest: str


class _File(msgspec.Struct):
    tokens: list[Token | _OldToken] = []


class TokenStore:
    """The file of tokens."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970: when tokens expire is a time of the calendar."""
        self.path: Final = path
        self._clock = clock
        self._tokens: Sequence[Token] = ()
        self._unsure_reason = ""
        self._checked_at = float("-inf")
        self._stamp: tuple[int, ...] | None = None

    def valid(self) -> Sequence[Token]:
        """Return the tokens that are valid now. Raise `Unsure` where there is a file and it cannot be read: that makes
        no token invalid, and is tried again."""
        now = time.monotonic()
        # By the monotonic clock: a wall clock that is set back must not keep a revoked token alive.
        if now - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = now
            self._unsure_reason = ""
            try:
                self._read_if_changed()
            except Unsure as unsure:
                self._unsure_reason = str(unsure)
        # Kept until the next look, so that a file that cannot be read is one answer for all requests of a second.
        if self._unsure_reason:
            raise Unsure(self._unsure_reason)
        now = self._clock()
        return [token for token in self._tokens if not has_expired(token, now)]

    def all(self) -> Sequence[Token]:
        """Return every token of the file, also those that have expired. Raise `Unsure` where it cannot be read."""
        self.valid()
        return self._tokens

    @property
    def never_made(self) -> bool:
        """Return whether there is no file, so no token was ever made: revoking the last one leaves an empty file."""
        self.valid()
        return self._stamp is None

    def make(
        self,
        name: str,
        scopes: Sequence[Scope] = SCOPES,
        principal: str = "",
        *,
        limits: TokenLimits | None = None,
        expires: float = 0,
        share: SessionShare | None = None,
    ) -> str:
        """Make a token and return it: it can never be read again. The name of one that has expired is free. Blocks for
        the disk. Raise `UsageError` for a name that is in use or cannot be one."""
        if not is_token_name(name):
            raise UsageError("a token's name has 1 to 64 printable characters")
        if principal and not is_token_name(principal):
            raise UsageError("a principal has 1 to 64 printable characters")
        now = self._clock()
        with self._locked():
            # Share links come and go, and their names are ours: those that are over are not kept for the list.
            kept = [one for one in self._tokens if not has_expired(one, now) or (one.name != name and not one.share)]
            if any(token.name == name for token in kept):
                raise UsageError(f"there is a token {name!r} already; revoke it first")
            # 256 bits: it cannot be guessed, so a fast hash is enough for the file.
            secret = secrets.token_urlsafe(32)
            digest = digest_of(secret.encode())
            limits = limits or TokenLimits()
            made = Token(name, principal or name, tuple(scopes), digest, limits, round(now), expires, share)
            self._write([*kept, made])
        return secret

    def revoke(self, name: str) -> bool:
        """Remove a token, and the share links that were made with it; return False if there is none of that name.
        Blocks for the disk."""
        with self._locked():
            left = without(name, self._tokens)
            if len(left) == len(self._tokens):
                return False
            self._write(left)
        return True

    def look_again(self) -> None:
        """Look into the file with the next question: it was changed just now."""
        self._checked_at = float("-inf")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file's folder and read the file again, so that no other process changes it before our write.

        Without that a token that was just revoked could be written back. Blocks for at most `_WAIT_SECONDS`; raises
        `UsageError` if the folder cannot be locked, and `Unsure` if the file cannot be read.
        """
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The folder is locked and not the file, because each write replaces the file.
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"{folder}: {(error.strerror or 'cannot be used').lower()}") from error
        try:
            _acquire(lock, folder)
            # Read again whatever its time says: two changes within the resolution of the clock look the same.
            self._stamp = None
            self._read_if_changed()
            yield
        finally:
            os.close(lock)

    def _read_if_changed(self) -> None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._tokens, self._stamp = (), None
            return
        except OSError as error:
            raise Unsure(f"{self.path}: {(error.strerror or 'cannot be read').lower()}") from error
        # A change of mode is told by the last of them, and by no other.
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size, found.st_ctime_ns)
        if stamp == self._stamp:
            return
        try:
            # What others could have written, or read, is not believed: they would have every token's hash, or their own
            # token.
            content = read_whole(self.path, _FILE_BYTES, check=check_private)
            found_tokens = msgspec.json.decode(content, type=_File).tokens
            self._tokens = [one if isinstance(one, Token) else Token(*one) for one in found_tokens]
        except OSError as error:
            raise Unsure(f"{self.path}: {(error.strerror or 'cannot be read').lower()}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unsure(f"{self.path}: this is no file of tokens; move it away and start again") from error
        self._stamp = stamp

    def _write(self, tokens: list[Token]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_File([*tokens])), indent=2) + b"\n"
        # A larger file could not be read again: no token would be valid then, and none could be revoked.
        if len(content) > _FILE_BYTES:
            raise UsageError("there are too many tokens, or too many folders in them; revoke some first")
        # On disk at once: a power cut must not bring a revoked token back.
        write_private(self.path, content)
        self._stamp = None
        self._read_if_changed()


class EmbeddedTokens:
    """The tokens of this server alone, as `SharedTokens`: `valid` returns those that are valid now."""

    def __init__(self, valid: Callable[[], Sequence[Token]]) -> None:
        self._valid = valid

    async def valid(self) -> Sequence[Token]:
        """Return them; the file is read, and may block for the disk, once a second at most."""
        return self._valid()


class EmbeddedTokenKeeper:
    """The tokens of this server alone, as `TokenKeeper`: the file is read and changed in threads."""

    def __init__(self, tokens: TokenStore) -> None:
        self._tokens = tokens
        # An object of its own: the server's is used by the loop, and these changes are made in threads.
        self._file = TokenStore(tokens.path)

    async def all(self) -> Sequence[Token]:
        """Return every token, also those that have expired. Waits for the disk. Raise `Unsure`."""
        return await asyncio.to_thread(self._read)

    async def make(
        self,
        name: str,
        scopes: Sequence[Scope] = SCOPES,
        principal: str = "",
        *,
        limits: TokenLimits | None = None,
        expires: float = 0,
        share: SessionShare | None = None,
    ) -> str:
        """Make a token and return it, as `TokenStore.make`. Waits for the disk."""
        made = await asyncio.to_thread(
            self._file.make, name, scopes, principal, limits=limits, expires=expires, share=share
        )
        # Its user may come in the next moment.
        self._tokens.look_again()
        return made

    async def revoke(self, name: str) -> bool:
        """Remove a token, as `TokenStore.revoke`. Waits for the disk."""
        is_revoked = await asyncio.to_thread(self._file.revoke, name)
        self._tokens.look_again()
        return is_revoked

    def _read(self) -> Sequence[Token]:
        self._file.look_again()
        return self._file.all()


def has_expired(token: Token, now: float) -> bool:
    """Return whether a token is over at a time, in seconds since 1970."""
    return bool(token.expires) and now >= token.expires


def without(name: str, tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens without that of this name, and without the share links that were made with it."""
    gone = {token.digest for token in tokens if token.name == name}
    return [one for one in tokens if one.name != name and (one.share is None or one.share.made_by not in gone)]


def is_token_name(name: str) -> bool:
    """Return whether a token, or a principal, may be called so."""
    return name.isprintable() and bool(name.strip()) and len(name) <= 64


def is_text(name: str) -> bool:
    """Return whether a name can be stored: what the shell gave may be bytes that are no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _acquire(lock: int, folder: Path) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            # Tried again and again in place of a blocking lock, which could not be given up.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise UsageError(f"{folder}: another process changes the tokens; try again") from None
            time.sleep(_PAUSE_SECONDS)
