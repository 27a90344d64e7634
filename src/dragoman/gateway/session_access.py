"""Which sessions a principal may reach, and by which id: the rules over the `SessionDirectory`.

A session belongs to the principal that made it. Beyond that a token may have a list of folders: it reaches a session
only if it may open every folder that the session works in. What is not allowed looks exactly like what does not exist.

Everything here but `load_folder`, `load_listed` and `exists` answers without waiting. Callers depend on that: `claim`
has to happen in the same step of the loop in which the agent's reply was received, or an event of the new session, or
another reply with the same id, could come between.
"""

import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.errors import INTERNAL_ERROR, RequestFailed
from dragoman.gateway.agent_restart import ID_IN_USE
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.connection import Full
from dragoman.gateway.read_only import may_read
from dragoman.gateway.session_directory import SessionDirectory
from dragoman.gateway.shared_state import SharedDirectory
from dragoman.gateway.token_types import TokenIdentity
from dragoman.vocabulary.requests import SessionInfo

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.shared_session import SharedSessions

FolderOf = Callable[[str], Awaitable[str]]
# Folders of sessions that were made without this server, as they were looked up; past this they are looked up again.
_FOLDERS: Final = 10_000


class SessionAccess:
    """Decide who may reach which session.

    `folder_of` tells where a stored session was made, also without this server (empty: there is none).
    `renames`: clients know sessions by ids of ours, and the agent by its own.
    """

    def __init__(
        self,
        sessions: "SharedSessions",
        *,
        directory: SharedDirectory | None = None,
        ceilings: Ceilings | None = None,
        folder_of: FolderOf | None = None,
        renames: bool = False,
    ) -> None:
        self.directory: Final[SharedDirectory] = directory or SessionDirectory()
        self.ceilings: Final = ceilings or Ceilings()
        self.renames: Final = renames
        self._sessions = sessions
        self._folder_of = folder_of
        self._folders: dict[str, str] = {}

    def may_reach(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Return whether a session belongs to this principal and is within the folders of its token. A session made
        without this gateway belongs to every principal with `admin`. An id that only the agent uses, for a session that
        clients know by another id, belongs to none. What a node asks for its clients, it has judged itself. A share
        link reaches the one session that it was made for."""
        if token_identity.node:
            return True
        # The link says which session, and whose it has to be: its own principal has none.
        share = token_identity.share
        if share is not None and (session_id != share.session or self.directory.owner(session_id) != share.owner):
            return False
        if not may_read(token_identity) or not self._is_within(session_id, token_identity):
            return False
        # An id of the agent's own that stands for a session under another id is no id for clients: else a principal
        # could reach a session of another one by the agent's name for it.
        owner = self.directory.owner(session_id)
        if owner is None:
            return token_identity.may("admin") and not self.directory.sessions_named(session_id)
        return share is not None or owner == token_identity.principal

    async def load_folder(self, session_id: str, token_identity: TokenIdentity) -> None:
        """Look up whose a session is, and where it was made if `may_reach` needs that for this token. Waits for the
        directory and the store."""
        await self.directory.load((session_id,))
        is_limited = bool(self.ceilings.identity(token_identity).workspaces)
        # Only for a token with a list of folders: for the others it would be a look into the store for nothing.
        if is_limited and self._folder_of is not None and not self.folder(session_id):
            self._remember_folder(session_id, await self._folder_of(session_id))

    async def exists(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Return whether there is such a session for this principal, open or stored. Waits for the store. Raise `Full`
        when it has as many subscribers as it may have."""
        await self.load_folder(session_id, token_identity)
        if not self.may_reach(session_id, token_identity):
            return False
        shared = self._sessions.get(session_id)
        if shared is not None and shared.is_full:
            raise Full
        if shared is not None or self.directory.owner(session_id) is not None:
            return True
        return self._folder_of is not None and bool(await self._folder_of(session_id))

    async def load_listed(self, infos: Iterable[SessionInfo]) -> None:
        """Look up whose the sessions of an agent's list are. Waits for the directory."""
        await self.directory.load(agent_ids=[info.session_id for info in infos])

    def visible_info(self, info: SessionInfo, token_identity: TokenIdentity) -> SessionInfo | None:
        """Return an entry of an agent's list with the id that clients know; None: this principal may not see it."""
        known = self.directory.sessions_named(info.session_id)
        # An agent that counts its ids anew in every process lists only its own latest session of an id.
        session_id = known[-1] if known else info.session_id
        # A session that was made without this gateway: its folder is in the list, and nowhere else here.
        if not known:
            self._remember_folder(session_id, info.cwd)
        if not self.may_reach(session_id, token_identity) or self.directory.is_ambiguous(session_id):
            return None
        return replace(info, session_id=session_id)

    def agent_id(self, session_id: str) -> str:
        """Return the agent's id for a session."""
        shared = self._sessions.get(session_id)
        return self.directory.agent_id(session_id) if shared is None else shared.agent_id

    def claim(self, agent_side: "AgentSide", agent_id: str, principal: str, cwd: str) -> str:
        """Return the id by which clients know a session that an agent has just made, and make `principal` its owner.
        Raise `RequestFailed` if another session or principal has the id."""
        # An agent that counts its ids gives them again after a restart; the older session of that id is over then.
        agent_side.release_agent_id(agent_id)
        renames = self.renames and not agent_side.is_of_other_node
        session_id = f"sess_{secrets.token_hex(16)}" if renames else agent_id
        in_use = not agent_id or agent_id in agent_side.sessions or session_id in self._sessions
        if in_use or not self.directory.claim(session_id, principal, agent_id, cwd):
            raise RequestFailed(INTERNAL_ERROR, ID_IN_USE)
        return session_id

    def _is_within(self, session_id: str, token_identity: TokenIdentity) -> bool:
        """Return whether all folders of a session are within the token's; False if the session's are not known."""
        identity = self.ceilings.identity(token_identity)
        # No list of folders, no limit; and no need to know the session's.
        if not identity.workspaces:
            return True
        made_in = self.folder(session_id)
        folders = [made_in, *self._added_folders(session_id)]
        return bool(made_in) and all(identity.may_open(os.path.realpath(folder)) for folder in folders)

    def folder(self, session_id: str) -> str:
        """Return the folder a session was made in, as far as that is known without looking it up; else empty."""
        shared = self._sessions.get(session_id)
        opened = shared.resume_request.cwd if shared is not None and shared.resume_request is not None else ""
        # The directory first: a client that resumes a session may name another folder than the one it was made in.
        return self.directory.cwd(session_id) or opened or self._folders.get(session_id, "")

    def _added_folders(self, session_id: str) -> list[str]:
        """Return the other folders of an open session: the token that opened it may have been allowed more."""
        shared = self._sessions.get(session_id)
        if shared is None or shared.resume_request is None:
            return []
        return shared.resume_request.additional_directories or []

    def _remember_folder(self, session_id: str, folder: str) -> None:
        # All at once: they are looked up again when they are needed, so no order has to be kept.
        if len(self._folders) >= _FOLDERS:
            self._folders.clear()
        self._folders[session_id] = folder
