"""How a session reaches its client: where its events and requests go, and the files and terminals that are lent to it.

An `EventSink` is the client's (`connection.ClientSink`) or a journal in front of it (`journal.Journal`). Nothing of a
turn that has ended reaches the client (`check_turn`).

What a client has not said it can do is never asked for: that is the author's mistake, and is named as one.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol, Self

from msgspec import UNSET

from dragoman.agent.checks import absolute, check_list, check_text, exact_text
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Note, R, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.services import (
    CreateTerminal,
    GetTerminalOutput,
    KillTerminal,
    ReadTextFile,
    ReleaseTerminal,
    TerminalExited,
    TerminalText,
    UserQuestion,
    WaitForTerminalExit,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ClientTerminalItem

if TYPE_CHECKING:
    from dragoman.agent.lent_servers import LentServers
    from dragoman.agent.session import Session
    from dragoman.agent.turn import RunningTurn


class TextSink(Protocol):
    """One message being sent in pieces."""

    def put(self, text: str) -> bool:
        """Send a piece. True: the queue is full, `wait_for_room` before the next one."""

    async def wait_for_room(self) -> None:
        """Wait until the queue has room; the event loop runs other tasks meanwhile."""


class EventSink(Protocol):
    """How a session reaches its client. Everything sent through one sink arrives in the order of the calls."""

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for the agent."""

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Send an event; wait while the queue is full. `LinkClosed` when the client is gone."""

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink:
        """Return a sink for the text of one message. `kind` is the event's name: `agent_message_chunk` and so on."""

    async def ask(self, request: Request[R]) -> R:
        """Send a request and wait for its reply. `PeerError` if the client refuses or its reply cannot be read."""

    async def send_notification(self, note: Note) -> None:
        """Send a notification; wait while the queue is full."""

    def lent_servers(self) -> "LentServers":
        """Return the MCP servers that the client lends."""


# Set in the task of a prompt handler. Tasks that the handler starts inherit it, which is how code that outlives its
# turn is recognised. None: code of no turn, such as a handler of `session_opened`.
CURRENT_TURN: ContextVar["RunningTurn | None"] = ContextVar("dragoman_turn", default=None)
# Bound once: it is called for every piece of text.
current_turn: Final = CURRENT_TURN.get


def check_turn() -> None:
    """Raise `CancelledError` if the running code belongs to a turn that has ended."""
    turn = current_turn()
    if turn is not None and turn.ended:
        raise too_late()


def too_late() -> BaseException:
    """Return the exception for code that emits after the end of its turn."""
    # Imported here: an author who names `Session` in an annotation must not wait for asyncio before `initialize`.
    from asyncio import CancelledError

    return CancelledError("the turn has ended")


# -- files and terminals of the client --------------------------------------------------------------------------------


class ClientTerminal:
    """A command that runs in the client's terminal. Released, and so killed, when its block is left.

    Made by `session.client_terminal(...)`. Every method sends a request and waits for its reply: `RequestFailed` if the
    client refuses it, `LinkClosed` when the client is gone.
    """

    def __init__(self, sink: EventSink, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self.item = ClientTerminalItem(terminal_id)
        self._sink = sink
        self._session_id = session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Also after an exception, and after a cancel: the command runs in the client and would go on there.
        await self.release()

    async def output(self) -> TerminalText:
        """Return what was printed so far, and the exit status if the command is done."""
        return await self._sink.ask(GetTerminalOutput(self._session_id, self.id))

    async def wait(self) -> TerminalExited:
        """Wait until the command is done, without a timeout, and return its exit status."""
        return await self._sink.ask(WaitForTerminalExit(self._session_id, self.id))

    async def kill(self) -> None:
        """Kill the command; the output stays readable."""
        await self._sink.ask(KillTerminal(self._session_id, self.id))

    async def release(self) -> None:
        """Kill the command and forget the terminal; it cannot be used after that."""
        await self._sink.ask(ReleaseTerminal(self._session_id, self.id))


class ClientServices:
    """The files and terminals that a client lends to one session."""

    def __init__(self, session_id: str, cwd: str, sink: EventSink) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._sink = sink

    async def read_text_file(self, path: str, line: int | None, limit: int | None) -> str:
        """Return the text of a file as the editor has it."""
        if not self._sink.client.read_text_file:
            raise UsageError("the client lends no files; look at session.client.read_text_file first")
        # The protocol has absolute paths only; a client would resolve a relative one by a folder of its own.
        place = absolute(path, "path")
        first, most = UNSET if line is None else line, UNSET if limit is None else limit
        # Behind the checks of arguments, so that a mistake is named even in code that outlived its turn.
        check_turn()
        reply = await self._sink.ask(ReadTextFile(self._session_id, place, first, most))
        return reply.content

    async def write_text_file(self, path: str, content: str) -> None:
        """Write the text of a file through the editor."""
        if not self._sink.client.write_text_file:
            raise UsageError("the client takes no files; look at session.client.write_text_file first")
        place = absolute(path, "path")
        check_text(content, "the content of a file", "session.write_text_file(path, 'text')")
        check_turn()
        await self._sink.ask(WriteTextFile(self._session_id, place, exact_text(content)))

    async def terminal(
        self, command: str, args: Iterable[str], cwd: str | None, output_byte_limit: int | None
    ) -> ClientTerminal:
        """Start a command in a terminal of the client."""
        if not self._sink.client.terminal:
            raise UsageError("the client lends no terminals; look at session.client.terminal first")
        check_text(command, "a command", 'session.client_terminal("make", ["test"])')
        words = check_list(args, "args", 'session.client_terminal("make", ["test"])')
        for word in words:
            check_text(word, "an argument of a command", 'session.client_terminal("make", ["test"])')
        request = CreateTerminal(
            self._session_id,
            exact_text(command),
            [exact_text(word) for word in words],
            # Always sent: without it a client may use the folder it was started in.
            cwd=self._cwd if cwd is None else absolute(cwd, "cwd"),
            output_byte_limit=UNSET if output_byte_limit is None else output_byte_limit,
        )
        check_turn()
        reply = await self._sink.ask(request)
        return ClientTerminal(self._sink, self._session_id, reply.terminal_id)


# -- questions in free text, for clients that have no forms ------------------------------------------------------------
#
# Which extension methods there are, and how each is written, the dialects know (`dialects/vendors/extensions.py`);
# nothing here or above names a vendor.


def can_ask_free_text(client: ClientCapabilities) -> bool:
    """Return whether a client has named a method for questions in free text in its capabilities."""
    from dragoman.dialects.vendors.extensions import advertised_question  # most agents never ask

    return advertised_question(client.meta) is not None


async def ask_free_text(session: "Session", question: str, options: Sequence[str] = ()) -> str | None:
    """Ask the user and wait for the text. None: no answer; `USER_UNAVAILABLE` where the client says so.

    `options` are answers to choose from. Only where `can_ask_free_text`. `PeerError` if the client refuses it.
    """
    from dragoman.dialects.vendors.extensions import QUESTION_EXTENSIONS, advertised_question

    method = advertised_question(session.client.meta)
    assert method is not None, "look at can_ask_free_text first"
    extension = QUESTION_EXTENSIONS[method]
    params = extension.encode(UserQuestion(session.id, question, tuple(options)))
    return extension.decode_answer(await session.request(method, params))
