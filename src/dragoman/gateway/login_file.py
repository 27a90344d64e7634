"""The file in which the logins of browsers outlive a restart of the server: hashes, and nothing that logs a browser in.

Owns the form of the file, its bounds, and how it is written. What a login is worth is judged by `login_store`;
nothing here knows about requests.

Promises
- Only its owner can read it, and a file that others could have changed is not believed.
- A reader finds the old file or the new one, never half of one; what was written survives a power cut.
- A file that cannot be read, or is none of ours, is no login and a line in the log. The server starts.
- Where a change cannot be written the file is removed: a login that has ended must not come back with a restart.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec

from dragoman.host.private_file import check_private, write_private
from dragoman.host.regular_file import read_whole

# Of one server; a row of the file has some 330 bytes.
LOGINS: Final = 1000
FILE_BYTES: Final = 1024 * 1024

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class StoredLogin(msgspec.Struct, frozen=True):
    """One browser that is logged in: digests of its cookie, of its page key and of its token. Times are wall-clock."""

    cookie: Digest
    page_key: Digest
    token: Digest
    made: float
    used: float


class _Content(msgspec.Struct, frozen=True):
    logins: Annotated[list[StoredLogin], msgspec.Meta(max_length=LOGINS)]


class LoginFile:
    """The file of one server. `report` is called with a sentence about what went wrong with it, without its path."""

    def __init__(self, path: Path, report: Callable[[str], object]) -> None:
        self.path: Final = path
        self._report = report

    def read(self) -> list[StoredLogin]:
        """Return the logins of the file; none where there is no file, or none that can be believed."""
        try:
            # A FIFO or a link in its place must neither hold the start up nor be followed.
            content = read_whole(self.path, FILE_BYTES, follow=False, check=check_private)
            logins = msgspec.json.decode(content, type=_Content).logins
            # A time that is no number would make a login that never ends.
            if all(math.isfinite(login.made) and math.isfinite(login.used) for login in logins):
                return logins
            self._distrust("it has a time that is none")
        except FileNotFoundError:
            pass
        except OSError as error:
            self._distrust((error.strerror or "it cannot be read").lower())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._distrust("it is damaged, or no file of logins")
        return []

    def write(self, logins: Sequence[StoredLogin]) -> None:
        """Replace the content of the file. Blocks for the disk; a failure is reported, and the file removed."""
        try:
            write_private(self.path, msgspec.json.encode(_Content(list(logins[-LOGINS:]))))
        except OSError as error:
            reason = (error.strerror or "it cannot be written").lower()
            self._report(f"{reason}; browsers have to log in again after a restart")
            # Better no file than an old one: a login that has ended must not come back with a restart.
            with suppress(OSError):
                self.path.unlink()

    def _distrust(self, reason: str) -> None:
        self._report(f"{reason}; every browser has to log in again")
