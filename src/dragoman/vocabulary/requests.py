"""Own the requests of a client to an agent, and the agent's replies to them."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from dragoman.errors import INVALID_PARAMS, RequestFailed, echo
from dragoman.vocabulary.asking import Done, Note, Reply, Request
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import State
from dragoman.vocabulary.options import AnyCommand, Option
from dragoman.vocabulary.word import Extras, Unknown, Word

# What a client that steers wants where no turn runs: nothing is begun, and it prompts by itself.
PROMPT_REQUIRED: Final = "promptRequired"
# The field of `session/fork` that names a message.
FORK_AT: Final = "messageId"


class EnvVariable(Word, frozen=True, gc=False):
    """A name and a value for a process's environment."""

    name: str
    value: str


class HttpHeader(Word, frozen=True, gc=False):
    """A header for an MCP server."""

    name: str
    value: str


class McpStdio(Word, frozen=True, gc=False, tag_field="type", tag="stdio"):
    """An MCP server to start."""

    name: str
    command: str
    args: list[str] | UnsetType = UNSET
    env: list[EnvVariable] | UnsetType = UNSET


class McpHttp(Word, frozen=True, gc=False, tag_field="type", tag="http"):
    """An MCP server over HTTP."""

    name: str
    url: str
    headers: list[HttpHeader] | UnsetType = UNSET


class McpSse(Word, frozen=True, gc=False, tag_field="type", tag="sse"):
    """An MCP server over the older SSE transport."""

    name: str
    url: str
    headers: list[HttpHeader] | UnsetType = UNSET


class McpAcp(Word, frozen=True, gc=False, tag_field="type", tag="acp"):
    """An MCP server reached through this very connection."""

    name: str
    server_id: str


class UnknownMcp(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """An MCP server of a type this release does not know."""


McpServer = McpStdio | McpHttp | McpSse | McpAcp | UnknownMcp


class SystemPrompt(Word, frozen=True, gc=False):
    """What the client adds to, or puts in place of, the agent's own instructions."""

    mode: str
    content: list[Content]


class Login(Request[Done], frozen=True, gc=False):
    """Log in with one of the advertised methods."""

    method_id: str


class Logout(Request[Done], frozen=True, gc=False):
    """Log out."""


class GetAuthStatus(Request["AuthStatus"], frozen=True, gc=False):
    """Ask whether a user is logged in."""


class NewSession(Request["SessionOpened"], frozen=True, gc=False):
    """Open a session in a folder."""

    cwd: str
    additional_directories: list[str] | UnsetType = UNSET
    mcp_servers: list[McpServer] | UnsetType = UNSET
    system_prompt: SystemPrompt | None | UnsetType = UNSET


class ReplayFromStart(Word, frozen=True, gc=False, tag_field="type", tag="start"):
    """Replay the session from its start."""


class UnknownReplay(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """A place to replay from that this release does not know."""


class ResumeSession(Request["SessionOpened"], frozen=True, gc=False):
    """Open a stored session; with `replay_from` its history is replayed before the reply."""

    session_id: str
    cwd: str
    additional_directories: list[str] | UnsetType = UNSET
    mcp_servers: list[McpServer] | UnsetType = UNSET
    replay_from: ReplayFromStart | UnknownReplay | None | UnsetType = UNSET
    system_prompt: SystemPrompt | None | UnsetType = UNSET


class ForkSession(Request["SessionOpened"], frozen=True, gc=False):
    """Copy a session into a new one."""

    session_id: str
    cwd: str
    additional_directories: list[str] | UnsetType = UNSET
    mcp_servers: list[McpServer] | UnsetType = UNSET
    system_prompt: SystemPrompt | None | UnsetType = UNSET

    @classmethod
    def at(cls, session_id: str, cwd: str, message_id: str) -> "ForkSession":
        """Return a request that copies up to a message, that message included. No schema has the field yet."""
        return cls(session_id, cwd, extras=Extras({FORK_AT: message_id}))

    @property
    def message_id(self) -> object:
        """The last message that is copied, as it came; None: all are."""
        return None if self.extras is UNSET else self.extras.fields.get(FORK_AT)


class ListSessions(Request["SessionList"], frozen=True, gc=False):
    """One page of the sessions there are."""

    cwd: str | None | UnsetType = UNSET
    cursor: str | None | UnsetType = UNSET
    archived: str | None | UnsetType = UNSET


class CloseSession(Request[Done], frozen=True, gc=False):
    """End the work of a session and free it; its history stays."""

    session_id: str


class DeleteSession(Request[Done], frozen=True, gc=False):
    """Delete a session's history."""

    session_id: str


class ArchiveSession(Request[Done], frozen=True, gc=False):
    """Archive a session: it stays, and is not listed."""

    session_id: str


class UnarchiveSession(Request[Done], frozen=True, gc=False):
    """Take a session out of the archive."""

    session_id: str


class GetSessionStatus(Request["SessionStatus"], frozen=True, gc=False):
    """Ask whether a session is open, and what it is doing."""

    session_id: str


class SetTitle(Request["TitleSet"], frozen=True, gc=False):
    """Name a session."""

    session_id: str
    title: str


class UnknownValue(Word, frozen=True, gc=False):
    """An option value of a type this release does not know."""

    kind: str
    value: object


class SetOption(Request["OptionsSet"], frozen=True, gc=False):
    """Change a session option."""

    session_id: str
    config_id: str
    value: str | bool | UnknownValue


class RecordNote(Request[Done], frozen=True, gc=False):
    """A value of the client's own to record in the session's log; it changes nothing else."""

    session_id: str
    name: str
    value: str


class PromptRequest(Request["PromptAccepted"], frozen=True, gc=False):
    """A prompt of the user: begins a turn."""

    session_id: str
    prompt: list[Content]


class SteerTurn(Request["Steered"], frozen=True, gc=False):
    """Words of the user for the turn that runs. Where none runs, they begin one, unless `needs_turn`."""

    session_id: str
    prompt: list[Content]

    @property
    def needs_turn(self) -> bool:
        """Whether the client prompts by itself where no turn runs."""
        steering = (self.meta or {}).get("steering")
        return isinstance(steering, dict) and steering.get("idleBehavior") == PROMPT_REQUIRED


RewindScope = Literal["both", "files", "conversation"]


class RewindSession(Request["SessionRewound"], frozen=True, gc=False):
    """Go back to the state before a prompt: files, conversation or both. Without a message id it is the last prompt.

    `preview`: only say what would happen. `undo`: take the last rewind back, and name no prompt.
    """

    session_id: str
    message_id: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    preview: bool | UnsetType = UNSET
    undo: bool | UnsetType = UNSET


# In `_meta` of a prompt: the client's own name for it, under which it may send the prompt again.
OPERATION_ID: Final = "dragoman/operationId"
# Where a new session may be worked on, in its `_meta`: `shared` (every node has its folder) or `node`.
HOME: Final = "dragoman/home"


def operation_id(request: PromptRequest | SteerTurn) -> object:
    """Return the id under which a prompt may be sent again, as it came; None where it has none."""
    return request.meta.get(OPERATION_ID) if isinstance(request.meta, Mapping) else None


def home_of(request: "NewSession") -> str:
    """Return where a session wishes to be worked on: `shared`, `node`, or empty where it says nothing.

    Raise `RequestFailed` for anything else: a session that is taken elsewhere by mistake finds an empty folder there.
    """
    home = request.meta.get(HOME) if isinstance(request.meta, Mapping) else None
    if home is not None and home not in ("shared", "node"):
        raise RequestFailed(INVALID_PARAMS, f"{HOME} is 'shared' or 'node', not {echo(str(home))!r}")
    return "" if home is None else str(home)


class CancelToolCall(Request[Done], frozen=True, gc=False):
    """Stop one tool call; the turn goes on."""

    session_id: str
    tool_call_id: str


class CancelTerminal(Request[Done], frozen=True, gc=False):
    """Stop the command of one display terminal; the turn goes on."""

    session_id: str
    terminal_id: str


class CancelTurn(Note, frozen=True, gc=False):
    """Stop the turn. It ends as cancelled."""

    session_id: str


class Account(Word, frozen=True, gc=False):
    """Who is logged in."""

    label: str
    active: bool | None | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    email: str | None | UnsetType = UNSET
    organization: str | None | UnsetType = UNSET


class AuthStatus(Reply, frozen=True, gc=False):
    """The login as it is."""

    state: str
    accounts: list[Account] | UnsetType = UNSET


class SessionOpened(Reply, frozen=True, gc=False):
    """A session is open. `session_id` is empty where the request named it."""

    session_id: str = ""
    config_options: list[Option] | None | UnsetType = UNSET
    available_commands: list[AnyCommand] | UnsetType = UNSET


class SessionInfo(Word, frozen=True, gc=False):
    """One session in a list."""

    session_id: str
    cwd: str
    additional_directories: list[str] | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET
    archived: bool | None | UnsetType = UNSET


class SessionList(Reply, frozen=True, gc=False):
    """A page of sessions."""

    sessions: list[SessionInfo]
    next_cursor: str | None | UnsetType = UNSET


class SessionStatus(Reply, frozen=True, gc=False):
    """What a session is doing."""

    status: str
    state: State | None | UnsetType = UNSET


class TitleSet(Reply, frozen=True, gc=False):
    """The title as it is now."""

    title: str


class OptionsSet(Reply, frozen=True, gc=False):
    """The options as they are now, all of them."""

    config_options: list[Option]


class Steered(Reply, frozen=True, gc=False):
    """What became of words for a turn: injected, startedNewTurn, failed, or promptRequired with `reason`.

    `message_id` is where they stand in the conversation.
    """

    outcome: str
    reason: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET


class RewoundFile(Word, frozen=True, gc=False):
    """One file of a rewind. `action`: restore, delete or change. `trouble`: why it is left alone; empty: it is not.

    `diff` is a unified diff of what happens to it, where it is text and not too long.
    """

    path: str
    action: str
    trouble: str = ""
    diff: str = ""


class SessionRewound(Reply, frozen=True, gc=False):
    """What a rewind has done, or would do: its files, and how many prompts count no more.

    `applied` False: it was a preview. `message_id` is the prompt that it goes back before, `number` its number from 1;
    `not_covered` says in sentences what no rewind brings back.
    """

    applied: bool
    scope: str
    files: list[RewoundFile]
    prompts: int
    message_id: str | UnsetType = UNSET
    number: int | UnsetType = UNSET
    not_covered: list[str] | UnsetType = UNSET


class PromptAccepted(Reply, frozen=True, gc=False):
    """The prompt stands in the conversation under this id; the turn ends with an idle event."""

    message_id: str
