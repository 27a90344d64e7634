"""Own the events: what an agent sends about a session, in order. A session's log is a list of these.

A prompt is accepted, then the session is running, requires action, or is idle with a stop reason. Messages, tool calls,
plans and terminals have ids, and later events patch them; the rules stand in code, in `state` and `patches`.
"""

from typing import Final

from msgspec import UNSET, UnsetType, field

from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.options import AnyCommand, Option, Plan
from dragoman.vocabulary.tools import (
    Cancellable,
    ExitStatus,
    Location,
    TerminalOutput,
    TerminalSize,
    ToolContent,
)
from dragoman.vocabulary.word import Extras, Unknown, Word


class Event(Word, frozen=True, kw_only=True, gc=False, tag_field="sessionUpdate"):
    """Something that happened in a session."""

    # `_meta` and unknown fields of the message that carried the event, beside it and not in it.
    outer: Extras | UnsetType = UNSET


class Chunk(Event, frozen=True, gc=False):
    """One block appended to a message. An empty id means that the message has no id yet."""

    content: Content
    message_id: str = ""

    @property
    def text(self) -> str:
        """Return the text of the block; empty for other content."""
        return self.content.text if type(self.content) is Text else ""


class UserMessageChunk(Chunk, frozen=True, gc=False, tag="user_message_chunk"):
    """A block of a message of the user."""


class AgentMessageChunk(Chunk, frozen=True, gc=False, tag="agent_message_chunk"):
    """A block of a message of the agent."""


class AgentThoughtChunk(Chunk, frozen=True, gc=False, tag="agent_thought_chunk"):
    """A block of a thought of the agent."""


# The pieces of messages by their name on the wire, which is also their kind in a log and in a text stream.
CHUNK_TYPES: Final[dict[str, type[UserMessageChunk | AgentMessageChunk | AgentThoughtChunk]]] = {
    "user_message_chunk": UserMessageChunk,
    "agent_message_chunk": AgentMessageChunk,
    "agent_thought_chunk": AgentThoughtChunk,
}


class Message(Event, frozen=True, gc=False):
    """A whole message, set or patched."""

    message_id: str
    content: list[Content] | None | UnsetType = UNSET


class UserMessage(Message, frozen=True, gc=False, tag="user_message"):
    """A message of the user."""


class AgentMessage(Message, frozen=True, gc=False, tag="agent_message"):
    """A message of the agent."""


class AgentThought(Message, frozen=True, gc=False, tag="agent_thought"):
    """A thought of the agent."""


class ToolCallUpdate(Event, frozen=True, gc=False, tag="tool_call_update"):
    """A tool call, created or patched."""

    tool_call_id: str
    name: str | None | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    kind: str | None | UnsetType = UNSET
    status: str | None | UnsetType = UNSET
    content: list[ToolContent] | None | UnsetType = UNSET
    locations: list[Location] | None | UnsetType = UNSET
    raw_input: object = UNSET
    raw_output: object = UNSET
    capabilities: Cancellable | None | UnsetType = UNSET


class ToolCallContentChunk(Event, frozen=True, gc=False, tag="tool_call_content_chunk"):
    """One item appended to a tool call's content."""

    tool_call_id: str
    content: ToolContent


class TerminalUpdate(Event, frozen=True, gc=False, tag="terminal_update"):
    """A display terminal, created or patched; `output` replaces everything shown before."""

    terminal_id: str
    command: str | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    output: TerminalOutput | None | UnsetType = UNSET
    exit_status: ExitStatus | None | UnsetType = UNSET
    size: TerminalSize | None | UnsetType = UNSET
    capabilities: Cancellable | None | UnsetType = UNSET


class TerminalOutputChunk(Event, frozen=True, gc=False, tag="terminal_output_chunk"):
    """Bytes (base64) appended to a display terminal. A chunk may end inside a character."""

    terminal_id: str
    data: str


class PlanUpdate(Event, frozen=True, gc=False, tag="plan_update"):
    """A plan, whole; it replaces the one with the same id."""

    plan: Plan


class PlanRemoved(Event, frozen=True, gc=False, tag="plan_removed"):
    """A plan is gone."""

    plan_id: str


class CommandsChanged(Event, frozen=True, gc=False, tag="available_commands_update"):
    """The slash commands there are now, all of them."""

    available_commands: list[AnyCommand]


class OptionsChanged(Event, frozen=True, gc=False, tag="config_option_update"):
    """The session options as they are now, all of them."""

    config_options: list[Option]


class SessionInfoChanged(Event, frozen=True, gc=False, tag="session_info_update"):
    """Title and time of the session."""

    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET


class Cost(Word, frozen=True, gc=False):
    """Money spent so far."""

    amount: float
    currency: str


class UsageChanged(Event, frozen=True, gc=False, tag="usage_update"):
    """How full the context window is."""

    used: int
    size: int
    cost: Cost | None | UnsetType = UNSET


# In `_meta` of a notice: true means that the answer so far is broken off, and begins anew.
BROKEN_OFF: Final = "dragoman/brokenOff"


# In `_meta` of a tool call that a helper of the agent makes: the id of the call that has started the helper.
HELPER_OF: Final = "dragoman/helperOf"
# In `_meta` of the usage of a turn, as `Cost` is on the wire: what the session has cost so far. For agents that know no
# window, and so send no `UsageChanged`.
COST: Final = "dragoman/cost"


class Notice(Event, frozen=True, gc=False, tag="notice"):
    """Something the user should see now; not part of the conversation."""

    severity: str
    title: str
    description: str | None | UnsetType = UNSET


class CompactionUpdate(Event, frozen=True, gc=False, tag="compaction_update"):
    """The context is being summarised, or was."""

    compaction_id: str
    status: str
    summary: list[Content] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET


class CompactionSummaryChunk(Event, frozen=True, gc=False, tag="compaction_summary_chunk"):
    """One block appended to the summary of a compaction."""

    compaction_id: str
    content: Content


class Usage(Word, frozen=True, gc=False):
    """Tokens of one turn."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    thought_tokens: int | None | UnsetType = UNSET
    cached_read_tokens: int | None | UnsetType = UNSET
    cached_write_tokens: int | None | UnsetType = UNSET


class Failure(Word, frozen=True, gc=False):
    """Why a turn ended in an error; the words are fit for the wire."""

    code: int
    message: str
    data: object = UNSET


class Background(Unknown, frozen=True, gc=False):
    """Work that goes on beside the conversation, of this `kind`."""


class Running(Event, frozen=True, gc=False, tag="running"):
    """The agent works on the conversation."""

    background: list[Background] | None | UnsetType = UNSET


class RequiresAction(Event, frozen=True, gc=False, tag="requires_action"):
    """The agent waits for the user: a permission, a question."""

    background: list[Background] | None | UnsetType = UNSET


# Why a turn ended, as far as the protocol has a name for it. Version 1 knows no other reason; version 2 also has
# `error`, and allows reasons with a name of the agent's own.
STOP_REASONS: Final = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})


class Idle(Event, frozen=True, gc=False, tag="idle"):
    """The agent is ready for a prompt. With a stop reason, this ends a turn; `error` comes with `"error"`."""

    stop_reason: str | None | UnsetType = UNSET
    error: Failure | None | UnsetType = UNSET
    usage: Usage | None | UnsetType = UNSET
    background: list[Background] | None | UnsetType = UNSET


class UnknownState(Event, frozen=True, gc=False, tag="?state"):
    """A session state this release does not know."""

    state: str
    fields: dict[str, object] = field(default_factory=dict)


class UnknownEvent(Event, frozen=True, gc=False, tag="?"):
    """An update this release does not know; `name` is its name on the wire, `fields` the rest of it."""

    name: str
    fields: dict[str, object] = field(default_factory=dict)


State = Running | RequiresAction | Idle | UnknownState
AnyEvent = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | UserMessage
    | AgentMessage
    | AgentThought
    | ToolCallUpdate
    | ToolCallContentChunk
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | PlanRemoved
    | CommandsChanged
    | OptionsChanged
    | SessionInfoChanged
    | UsageChanged
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    | Running
    | RequiresAction
    | Idle
    | UnknownState
    | UnknownEvent
)
