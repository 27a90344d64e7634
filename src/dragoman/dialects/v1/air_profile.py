"""What one client of JetBrains AIR has agreed on with an agent; nothing with any other client (`handshake/air`)."""

from typing import Any, Final

from msgspec.structs import replace

from dragoman.dialects.handshake import air
from dragoman.dialects.v1 import updates
from dragoman.dialects.v1.file_reports import FIELDS, FileReport, requested_report
from dragoman.dialects.v1.lean_calls import LeanCalls
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.hello import AgentHello, ClientCapabilities
from dragoman.vocabulary.requests import PromptRequest, SetTitle

RENAME: Final = "_session/rename"
# The adapters cut a title here; a list of sessions has a line for it.
TITLE_CHARACTERS: Final = 256
# Ids of reports that are remembered: one that is asked for again is not sent.
_REMEMBERED: Final = 4096


class AirProfile:
    """The agreement; all of it is empty for a client that is not AIR, and where the agent speaks to AIR itself."""

    def __init__(self, client: ClientCapabilities, agent: AgentHello) -> None:
        # The same record twice, from the agent and from us, would be shown as two.
        is_ours = air.is_air(client) and not air.speaks_air(agent)
        names = air.declared_by(client) if is_ours else frozenset[str]()
        self.records_failures: Final = air.SESSION_FAILURE in names
        self.ends_replays: Final = air.LOAD_REPLAY_END in names
        self.renames: Final = is_ours and air.takes_rename(client, agent)
        self.lean: Final = LeanCalls(names) if is_ours else None  # None: calls are sent as they are
        self.reports: Final = air.FILE_CHANGE_REPORT in names
        # What has to be kept of a tool call beside its content.
        self.call_fields: Final = (*updates.FIELDS, *FIELDS) if self.reports else updates.FIELDS
        self._asked: dict[str, None] = {}

    def __repr__(self) -> str:
        return f"<AirProfile lean={self.lean} reports={self.reports} renames={self.renames}>"

    def report_for(self, request: PromptRequest, roots: tuple[str, ...]) -> FileReport | None:
        """Return the report of changed files that a prompt asks for; None: none, or one that was asked for before."""
        wanted = requested_report(request.meta or None)
        if wanted is None or wanted in self._asked:
            return None
        self._asked[wanted] = None
        if len(self._asked) > _REMEMBERED:
            del self._asked[next(iter(self._asked))]
        return FileReport(wanted, roots)


def renamed(request: Any) -> SetTitle:
    """Return a `SetTitle` with its title in one line, as the adapters cut it; `PeerMistake` if that says nothing."""
    title = " ".join(request.title.split())
    if not title:
        raise PeerMistake(INVALID_PARAMS, "title must be a non-empty string")
    if len(title) > TITLE_CHARACTERS:
        title = title[: TITLE_CHARACTERS - 1] + "…"
    found: SetTitle = replace(request, title=title)
    return found
