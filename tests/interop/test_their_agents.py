"""Agents on the official SDKs, driven by `dragoman.connect`: one list of events, whatever they are written in.

To import an SDK takes longer than any of these turns, so one process of each peer has a session for each test.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman import connect
from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation, Turn
from dragoman.errors import METHOD_NOT_FOUND, LinkClosed, RequestFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Failure,
    Idle,
    PlanUpdate,
    RequiresAction,
    Running,
    TerminalOutputChunk,
    TerminalUpdate,
    ToolCallUpdate,
    UserMessage,
)
from dragoman.vocabulary.options import PlanEntry, PlanItems, Select
from dragoman.vocabulary.services import (
    CreateTerminal,
    GetTerminalOutput,
    KillTerminal,
    ReadTextFile,
    ReleaseTerminal,
    RequestPermission,
    TerminalExited,
    TerminalText,
    WaitForTerminalExit,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ClientTerminalItem, ContentItem, ExitStatus, TerminalItem, ToolContent
from tests.support.sdk_peers import PYTHON_V1, PYTHON_V2, TYPESCRIPT_V1, TYPESCRIPT_V2, Peer

pytestmark = pytest.mark.anyio
V1, V2 = (PYTHON_V1, TYPESCRIPT_V1), (PYTHON_V2, TYPESCRIPT_V2)
# Tests that share a process are run one after another if their peer has the same place in both lists.
every_peer = pytest.mark.parametrize("peer", [*V2, *V1], ids=str, scope="module")
peers_of_v2 = pytest.mark.parametrize("peer", V2, ids=str, scope="module")


@asynccontextmanager
async def connected(peer: Peer, **offered: Any) -> AsyncIterator[Client]:
    """The peer's agent in a process of its own; whatever it sends that we have to skip fails the test."""
    noise: list[str] = []
    async with connect(peer.command("agent"), env=peer.environment(), on_noise=noise.append, **offered) as client:
        assert (client.protocol_version, client.agent.info and client.agent.info.name) == (peer.version, "peer")
        yield client
    assert noise == []


class Desk:
    """A peer's agent, started when it is wanted and not there, and a user who is asked and has their answers ready."""

    def __init__(self, peer: Peer) -> None:
        self.answers: list[str | None] = []
        self.asked: list[RequestPermission] = []
        self._peer = peer
        self._started = AsyncExitStack()
        self._client: Client | None = None

    @asynccontextmanager
    async def session(self, cwd: Path) -> AsyncIterator[tuple[Client, Conversation]]:
        """A new session. An agent that has failed a test or has died is ended, and the next test has a new one."""
        self.answers, self.asked = [], []
        if self._client is None:
            self._client = await self._started.enter_async_context(connected(self._peer, permission=self._user))
        try:
            yield self._client, await self._client.new_session(cwd)
        except BaseException:
            await self.close()
            raise
        if self._client.state in ("failed", "stopped"):
            await self.close()

    async def close(self) -> None:
        self._client = None
        await self._started.aclose()

    async def _user(self, request: RequestPermission) -> str | None:
        self.asked.append(request)
        return self.answers.pop(0)


@pytest.fixture(scope="module")
async def desk(peer: Peer) -> AsyncIterator[Desk]:
    desk = Desk(peer)
    yield desk
    await desk.close()


async def played(session: Conversation, prompt: str, *, cancel_at: str = "") -> list[AnyEvent]:
    """Every event of one turn. Messages are named m1, m2, … in the order they begin, whichever side named them."""
    events: list[AnyEvent] = []
    names: dict[str, str] = {}
    turn = session.prompt(prompt)
    async for event in turn:
        if isinstance(event, (UserMessage, AgentMessageChunk, AgentThoughtChunk)):
            events.append(replace(event, message_id=names.setdefault(event.message_id, f"m{len(names) + 1}")))
        else:
            events.append(event)
        if cancel_at and isinstance(event, AgentMessageChunk) and event.text == cancel_at:
            await turn.cancel()
    return events


async def read(turn: Turn, events: list[AnyEvent]) -> None:
    """Read a turn that may raise; what came before that is kept."""
    async for event in turn:
        events.append(event)


def said(text: str, message: str = "m2") -> AgentMessageChunk:
    return AgentMessageChunk(Text(text), message)


def begun(prompt: str) -> list[AnyEvent]:
    return [UserMessage("m1", [Text(prompt)]), Running()]


def greeting(end: ToolCallUpdate) -> list[AnyEvent]:
    return [
        *begun("greet"),
        AgentThoughtChunk(Text("Hm."), "m2"),
        said("Hello. ", "m3"),
        said("How are you?", "m3"),
        PlanUpdate(PlanItems("main", [PlanEntry("Look", "high", "in_progress")])),
        ToolCallUpdate("look", title="Look around", kind="read", status="pending"),
        RequiresAction(),
        Running(),
        end,
        Idle(stop_reason="end_turn"),
    ]


@every_peer
async def test_a_turn_is_told_in_order_and_the_answer_to_a_permission_counts(
    desk: Desk, peer: Peer, tmp_path: Path
) -> None:
    async with desk.session(tmp_path) as (_, session):
        desk.answers = ["yes", None]
        allowed = await played(session, "greet")
        rejected = await played(session, "greet")

    well: list[ToolContent] = [ContentItem(Text("All is well."))]
    assert allowed == greeting(ToolCallUpdate("look", status="completed", content=well))
    assert rejected == greeting(ToolCallUpdate("look", status="failed"))
    title = {1: "Look around", 2: "May I look around?"}[peer.version]
    assert [(one.title, [option.kind for option in one.options]) for one in desk.asked] == [
        (title, ["allow_once", "reject_once"])
    ] * 2


@every_peer
async def test_a_session_goes_on_after_a_turn_was_cancelled_and_one_failed(
    desk: Desk, peer: Peer, tmp_path: Path
) -> None:
    failed: list[AnyEvent] = []
    async with desk.session(tmp_path) as (client, session):
        cancelled = await played(session, "wait", cancel_at="waiting")
        with pytest.raises(RequestFailed) as failure:
            await read(session.prompt("fail"), failed)
        await session.set_mode("code")
        after = await played(session, "mode")
        with pytest.raises(RequestFailed) as unknown:
            await client.request("_unknown", {})

    assert cancelled == [*begun("wait"), said("waiting"), Idle(stop_reason="cancelled")]
    assert [event.text for event in failed if isinstance(event, AgentMessageChunk)] == ["Oh."]
    assert isinstance(failed[-1], Idle) and failed[-1].stop_reason == "error"
    assert failure.value.code == -32603
    if peer != PYTHON_V2:  # its draft of v2 has no room for the reason
        assert failed[-1].error == Failure(-32603, "It broke", {"reason": "server"})
        assert (failure.value.message, failure.value.data) == ("It broke", {"reason": "server"})
    assert after == [*begun("mode"), said("code"), Idle(stop_reason="end_turn")]
    assert [option.current_value for option in session.options if isinstance(option, Select)] == ["code"]
    assert unknown.value.code == METHOD_NOT_FOUND


@every_peer
async def test_a_thousand_updates_are_all_heard_before_the_end_of_their_turn(desk: Desk, tmp_path: Path) -> None:
    async with desk.session(tmp_path) as (_, session):
        events = await played(session, "burst")
    assert events == [*begun("burst"), *[said("x")] * 1000, Idle(stop_reason="end_turn")]


@pytest.mark.parametrize("peer", [PYTHON_V1, pytest.param(TYPESCRIPT_V1, marks=pytest.mark.slow)], ids=str)
async def test_files_and_terminals_are_lent_to_an_agent_of_v1(peer: Peer, tmp_path: Path) -> None:
    lender = Lender()
    lent = {"read_text_file": lender.read, "write_text_file": lender.write, "terminals": lender}
    async with connected(peer, **lent) as client:
        session = await client.new_session(tmp_path)
        files = await played(session, "files /somewhere/file")
        terminal = await played(session, "terminal")

    assert files == [*begun("files /somewhere/file"), said("text"), Idle(stop_reason="end_turn")]
    shown: list[ToolContent] = [ClientTerminalItem("terminal-1")]
    assert terminal == [
        *begun("terminal"),
        ToolCallUpdate("run", title="echo hello", kind="execute", status="in_progress", content=shown),
        ToolCallUpdate("run", status="completed"),
        said("hello\n 0"),
        Idle(stop_reason="end_turn"),
    ]
    assert lender.asked == [
        ReadTextFile(session.id, "/somewhere/file", 1, 10),
        WriteTextFile(session.id, "/somewhere/file.new", "TEXT"),
        CreateTerminal(session.id, "echo", ["hello"], cwd=str(tmp_path), output_byte_limit=1000),
        WaitForTerminalExit(session.id, "terminal-1"),
        GetTerminalOutput(session.id, "terminal-1"),
        KillTerminal(session.id, "terminal-1"),
        ReleaseTerminal(session.id, "terminal-1"),
    ]


@peers_of_v2
async def test_a_terminal_of_an_agent_of_v2_is_shown(desk: Desk, tmp_path: Path) -> None:
    async with desk.session(tmp_path) as (_, session):
        events = await played(session, "terminal")
    assert events == [
        *begun("terminal"),
        TerminalUpdate("term", command="echo hello", cwd=str(tmp_path)),
        ToolCallUpdate("run", title="echo hello", kind="execute", status="in_progress", content=[TerminalItem("term")]),
        TerminalOutputChunk("term", "aGVsbG8K"),
        TerminalUpdate("term", exit_status=ExitStatus(exit_code=0)),
        ToolCallUpdate("run", status="completed"),
        Idle(stop_reason="end_turn"),
    ]


# The last, since it costs the process that the others share.
@every_peer
async def test_an_agent_that_dies_in_a_turn_is_reported_after_its_last_words(desk: Desk, tmp_path: Path) -> None:
    events: list[AnyEvent] = []
    async with desk.session(tmp_path) as (client, session):
        with pytest.raises(LinkClosed, match="exited with code 3"):
            await read(session.prompt("die"), events)
        with pytest.raises(LinkClosed):
            await client.new_session(tmp_path)
    assert [event.text for event in events if isinstance(event, AgentMessageChunk)] == ["last words"]


class Lender:
    """Files and terminals that remember what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def read(self, request: ReadTextFile) -> str:
        self.asked.append(request)
        return "text"

    async def write(self, request: WriteTextFile) -> None:
        self.asked.append(request)

    async def create(self, request: CreateTerminal) -> str:
        self.asked.append(request)
        return "terminal-1"

    async def output(self, request: GetTerminalOutput) -> TerminalText:
        self.asked.append(request)
        return TerminalText("hello\n", truncated=False)

    async def wait_for_exit(self, request: WaitForTerminalExit) -> TerminalExited:
        self.asked.append(request)
        return TerminalExited(exit_code=0)

    async def kill(self, request: KillTerminal) -> None:
        self.asked.append(request)

    async def release(self, request: ReleaseTerminal) -> None:
        self.asked.append(request)
