"""The folders of sessions that work in git worktrees: made for `session/new`, found again for lists and loads.

A client asks for one with `_meta["dragoman/worktree"]` in `session/new`: `true`, or a name. `dragoman acp --worktree`
asks for every session. The session's folder is the worktree then, and a client that names the project's folder finds
it there: in its list, and when it loads or forks the session. A list says of such a session, under the same key, what
its worktree and its branch are called.

Imported before `initialize` is answered, so the event loop is imported where it is used.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.agent.session import caller
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.vocabulary.requests import NewSession, SessionInfo

if TYPE_CHECKING:
    import asyncio

WORKTREE: Final = "dragoman/worktree"


class WorktreeFolders:
    """Chooses the folders of an agent's sessions. `default`: what to do without a wish; None: no worktree."""

    def __init__(self, environment: Mapping[str, str], default: str | None, parent: str = "") -> None:
        self._environment = environment
        self._default = default
        self._parent = parent

    @cached_property
    def _making(self) -> "asyncio.Lock":
        """One at a time: two sessions that begin together must not be given the same free name."""
        import asyncio

        return asyncio.Lock()

    async def choose(self, request: NewSession) -> str:
        """Return the client's folder, or that of a worktree made for the session. Waits for git."""
        name = _wanted(request, self._default)
        if name is None:
            return request.cwd
        import asyncio

        from dragoman.coder.identity_limits import check_folders, may_write
        from dragoman.host.worktrees import WorktreeFailed, add_worktree, worktree_parent

        identity = caller()
        if not may_write(identity):
            raise RequestFailed(INVALID_PARAMS, f"{identity.subject} may only read, and a worktree has to be made")
        parent = self._parent or await asyncio.to_thread(worktree_parent, request.cwd)
        check_folders([request.cwd, os.path.dirname(parent)], identity)
        try:
            async with self._making:
                return (await add_worktree(request.cwd, name, self._environment, parent)).folder
        except WorktreeFailed as error:
            raise RequestFailed(INVALID_PARAMS, f"No worktree was made: {error}", {"reason": "worktree"}) from None

    async def related(self, cwd: str) -> Sequence[str]:
        """Return the folders of the worktrees that were made for sessions of a folder."""
        import asyncio

        if not await asyncio.to_thread(_may_have_worktrees, cwd):
            return ()
        from dragoman.host.worktrees import folders_for

        return await asyncio.to_thread(folders_for, cwd)

    async def marked(self, sessions: Sequence[SessionInfo]) -> list[SessionInfo]:
        """Return the sessions of a list; those that work in worktrees of ours have their names in `_meta`."""
        import asyncio

        return await asyncio.to_thread(lambda: [marked(one) for one in sessions])


def marked(session: SessionInfo) -> SessionInfo:
    """Return a session of a list, with the name and the branch of its worktree if it works in one. Blocks."""
    from dragoman.host.worktrees import find_worktree

    worktree = find_worktree(session.cwd)
    if worktree is None:
        return session
    mark = {WORKTREE: {"name": worktree.name, "branch": worktree.branch}}
    return replace(session, meta={**(session.meta or {}), **mark})


def _may_have_worktrees(cwd: str) -> bool:
    """Return whether a folder is in a repository with worktrees, by as few looks as possible. Blocks."""
    here = os.path.realpath(cwd)
    while here != os.path.dirname(here):
        git = os.path.join(here, ".git")
        if os.path.lexists(git):
            return not os.path.isdir(git) or os.path.isdir(os.path.join(git, "worktrees"))
        here = os.path.dirname(here)
    return False


def _wanted(request: NewSession, default: str | None) -> str | None:
    """Return the name that a worktree shall have, empty for any; None: none is wanted."""
    value = request.meta.get(WORKTREE, default) if isinstance(request.meta, Mapping) else default
    if isinstance(value, bool):
        return "" if value else None
    if value is not None and not isinstance(value, str):
        raise RequestFailed(INVALID_PARAMS, f'_meta["{WORKTREE}"] has to be true, false or a name')
    return value
