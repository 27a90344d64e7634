"""Keep the logins at remote MCP servers: one private file for each address, with the registered client and its tokens.

Promise: a file is readable by its owner alone from its first byte on, and is whole or not there; what others could
write is not used. Two processes renew a token one after the other (`McpLoginFile.lock`), because a server that rotates
refresh tokens takes the second use of one for a theft. Nothing here is printed: errors name the file, not its content.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from dragoman import limits
from dragoman.errors import StartFailed
from dragoman.host.private_file import check_private, write_private
from dragoman.host.regular_file import read_whole

# Metadata, a registration and two tokens; JWTs have some thousand characters.
_FILE_BYTES: Final = 256 * limits.KIB
# Another process that renews the token answers within this, or is taken for hung.
LOCK_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05

_Json = dict[str, Any]


class LoginNeeded(StartFailed):
    """The server wants a login, a new one or one with more rights; the text follows the server's name."""


class LoginFailed(StartFailed):
    """A login, or what is kept of one, cannot be used; the text is fit for the user."""


class McpLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one server: `client` and `tokens` as its authorization server gave them, and where that is.

    `expires_at` is in seconds since 1970; None: the tokens last until they are refused.
    """

    url: str
    client: _Json | None = None
    tokens: _Json | None = None
    expires_at: float | None = None
    metadata: _Json | None = None
    resource: _Json | None = None

    def __repr__(self) -> str:
        return f"<McpLogin {'logged in' if self.tokens else 'without tokens'}>"


def login_key(url: str) -> str:
    """Return the address that a login is for: without user, password and fragment, the host in lower case.

    `LoginFailed` if it cannot be read.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2].lower()
    except ValueError:
        raise LoginFailed("has an address that cannot be read") from None
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{parts.path or '/'}{query}"


class McpLoginFile:
    """The file of one server's login, in `folder`. Its methods block for a moment."""

    def __init__(self, folder: str, url: str) -> None:
        self.url: Final = login_key(url)
        name = hashlib.sha256(self.url.encode()).hexdigest()[:32]
        self._path: Final = Path(folder, f"{name}.json")

    def __repr__(self) -> str:
        return f"<McpLoginFile {self._path.name}>"

    def read(self) -> McpLogin | None:
        """Return what is kept; None: nothing. `LoginFailed` if the file cannot be used."""
        try:
            content = read_whole(self._path, _FILE_BYTES, follow=False, check=check_private)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LoginFailed(f"has a kept login that cannot be used: {self._path}: {error.strerror}") from None
        try:
            found = msgspec.json.decode(content, type=McpLogin)
        except (msgspec.MsgspecError, UnicodeError):
            found = None
        if found is None or found.url != self.url:
            raise LoginFailed(f"has a kept login that cannot be read; delete {self._path} and log in again")
        return found

    def write(self, login: McpLogin) -> None:
        """Keep a login in place of the one before. `LoginFailed` if it cannot be written; the old one stays then."""
        try:
            write_private(self._path, msgspec.json.encode(login))
        except OSError as error:
            raise LoginFailed(f"has a login that cannot be kept: {self._path}: {error.strerror}") from None

    def remove(self) -> bool:
        """Delete what is kept. False: there was nothing. `LoginFailed` if it cannot be deleted."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LoginFailed(f"has a login that cannot be deleted: {self._path}: {error.strerror}") from None
        finally:
            with suppress(OSError):
                self._lock_path.unlink()
        return True

    @property
    def _lock_path(self) -> Path:
        return self._path.with_suffix(".lock")

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the login for this process, while its tokens are renewed. Raises `LoginFailed` after `LOCK_SECONDS`."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await _acquire(fd)
            yield
        finally:
            os.close(fd)


async def _acquire(fd: int) -> None:
    """Lock an open file. Polled: a thread that waits for a lock cannot be cancelled."""
    try:
        async with asyncio.timeout(LOCK_SECONDS):
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise LoginFailed("has a login that another process of ours holds; try again") from None
