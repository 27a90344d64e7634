"""What a client offers an agent: files inside the roots and nowhere else, and terminals that are real processes.

workspace = Workspace(["/path/to/project"], environment=os.environ, permissions=permissions)
async with workspace, connect(command, permission=permissions, **workspace.callbacks()) as client:
    ...

With a `PermissionHandler`, every file and every command is judged before it is touched: where it really lies, links
followed, and that place is shown and opened. What lies outside of the roots is lent at no level of a policy, and the
handler counts and records that as a denial. `close` leaves no process behind.
"""

import asyncio
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self, TypedDict

from msgspec.structs import replace

from dragoman import limits
from dragoman.client.command_lines import check_terminal
from dragoman.client.handlers import ReadCallback, Terminals, WriteCallback
from dragoman.client.terminals import RealTerminals
from dragoman.client.text_files import FILE_BYTES, current_bytes, encode_text
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, RequestFailed, UsageError
from dragoman.host.paths import PathRefused, Place, Roots, read_bytes, write_bytes
from dragoman.limits import MIB
from dragoman.vocabulary.services import CreateTerminal, ReadTextFile, WriteTextFile

if TYPE_CHECKING:
    from dragoman.client.permission_handler import Look, PermissionHandler


class Callbacks(TypedDict):
    """What `connect` takes."""

    read_text_file: ReadCallback
    write_text_file: WriteCallback
    terminals: Terminals


class Workspace:
    """The folders that an agent works in, as the callbacks of `connect`. Use it with `async with`, or `close` it.

    The callbacks raise `RequestFailed` for what is not allowed, and that is the error reply which the agent gets.
    """

    def __init__(
        self,
        roots: Sequence[str | os.PathLike[str]],
        *,
        environment: Mapping[str, str],
        permissions: "PermissionHandler | None" = None,
        decider: "PermissionHandler | None" = None,
    ) -> None:
        """Lend `roots`, the first of which is the folder where terminals start.

        `environment` is ours; variables that look like secrets are not given to terminals. `permissions` judges every
        request; without it everything inside of the roots is lent. `decider` is its former name. Raise `UsageError`
        if there is no root.
        """
        if decider is not None:
            warnings.warn("decider= is called permissions= now", DeprecationWarning, stacklevel=2)
            permissions = decider
        if not roots:
            raise UsageError("a workspace has at least one root")
        self.roots: Final = tuple(os.path.abspath(root) for root in roots)
        self._places = Roots(self.roots)
        self._permissions = permissions
        self.terminals: Final[RealTerminals] = _LentTerminals(self, environment)

    def callbacks(self) -> Callbacks:
        """Return the callbacks as settings: `connect(..., **workspace.callbacks())`."""
        return {
            "read_text_file": self.read_text_file,
            "write_text_file": self.write_text_file,
            "terminals": self.terminals,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End every terminal and wait for that, at most two seconds."""
        await self.terminals.close()

    async def read_text_file(self, request: ReadTextFile) -> str:
        """Return the text of a file, or the lines of it that `request` names; its `line` counts from 1.

        Waits for the user where the policy asks. Raise `RequestFailed` if it is denied, missing, too large or no text.
        """
        place = self._place(request.path, request)
        await self._permit(replace(request, path=place.path))
        text = await asyncio.to_thread(_read, place)
        if isinstance(request.line, int) or isinstance(request.limit, int):
            return _lines(text, request.line or 1, request.limit if isinstance(request.limit, int) else None)
        return text

    async def write_text_file(self, request: WriteTextFile) -> None:
        """Write a file, whole or not at all.

        Waits for the user where the policy asks. Raise `RequestFailed` if it is denied or cannot be written.
        """
        place = self._place(request.path, request)
        data = encode_text(request.content)
        try:
            await self._permit(replace(request, path=place.path), lambda: asyncio.to_thread(current_bytes, place))
            await asyncio.to_thread(write_bytes, place, data)
        except PathRefused as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from None

    async def _permit(self, request: ReadTextFile | WriteTextFile | CreateTerminal, look: "Look | None" = None) -> None:
        reason = None if self._permissions is None else await self._permissions.permits(request, look)
        if reason is not None:
            raise _not_allowed(reason)

    def _place(self, path: str, request: ReadTextFile | WriteTextFile | CreateTerminal) -> Place:
        """Return where a path leads, links resolved. That is what is opened, whatever is put in the way later.

        A path that no file can have is the agent's mistake; one that leads out of the roots is denied.
        """
        if not os.path.isabs(path):
            raise RequestFailed(INVALID_PARAMS, "The path must be absolute")
        try:
            if "\0" in path or len(os.fsencode(path)) > limits.PATH_BYTES:
                raise ValueError
            return self._places.place(path)
        except PathRefused as error:
            if self._permissions is not None:
                raise _not_allowed(self._permissions.deny_outside(request, path)) from None
            raise RequestFailed(INVALID_PARAMS, str(error)) from None
        except (OSError, ValueError):  # more links or more letters than a path may have, or some that no name may have
            raise RequestFailed(INVALID_PARAMS, "That is no path.") from None


class _LentTerminals(RealTerminals):
    """The terminals of a workspace; unlike others, they deny a working folder outside of the roots."""

    def __init__(self, workspace: Workspace, environment: Mapping[str, str]) -> None:
        super().__init__(workspace._places, environment, permit=workspace._permit)
        self._workspace = workspace

    async def create(self, request: CreateTerminal) -> str:
        check_terminal(request)
        if isinstance(request.cwd, str) and os.path.isabs(request.cwd):
            self._workspace._place(request.cwd, request)
        return await super().create(request)


def _not_allowed(reason: str) -> RequestFailed:
    return RequestFailed(INVALID_REQUEST, f"Not allowed: {reason}", {"reason": reason})


def _read(place: Place) -> str:
    try:
        data, more = read_bytes(place, FILE_BYTES)
    except PathRefused as error:
        if isinstance(error.__cause__, FileNotFoundError):
            message = f"Resource not found: {place.path} does not exist"
            raise RequestFailed(NOT_FOUND, message, {"path": place.path}) from None
        raise RequestFailed(INVALID_PARAMS, str(error)) from None
    if more:
        raise RequestFailed(INVALID_PARAMS, f"{place.path} is larger than {FILE_BYTES // MIB} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestFailed(INVALID_PARAMS, f"{place.path} is not UTF-8 text") from None


def _lines(text: str, line: int, limit: int | None) -> str:
    # Not splitlines: a form feed or U+2028 ends no line of a file.
    lines = text.split("\n")
    start = max(line, 1) - 1
    end = len(lines) if limit is None else start + max(limit, 0)
    chosen = lines[start:end]
    return "\n".join(chosen) + ("\n" if chosen and end < len(lines) else "")
