"""An agent with a store: what was told is found again, by the same process or the next, in either version."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from dragoman import Agent
from dragoman.agent.history import History
from dragoman.agent.session import Prompt, Session
from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation
from dragoman.client.turn import Turn
from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, RequestFailed
from dragoman.store.contract import StoreFailed
from dragoman.store.entries import EventEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import pair
from dragoman.vocabulary import requests
from dragoman.vocabulary.content import Resource, Text, TextResource
from dragoman.vocabulary.events import (
    AgentMessage,
    AgentThought,
    AnyEvent,
    Chunk,
    CompactionSummaryChunk,
    CompactionUpdate,
    Idle,
    PlanUpdate,
    ToolCallUpdate,
    UserMessage,
)
from dragoman.vocabulary.options import Choice, PlanEntry, PlanItems, Select
from dragoman.vocabulary.tools import ContentItem
from tests.support.versions import both_protocols

MODES = Select("mode", "Mode", "ask", [Choice("ask", "Ask"), Choice("full", "Full")], category="mode")


class House:
    """A folder with sessions, and agents that come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[AnyEvent] = []
        self.gate = asyncio.Event()
        self.store: SqliteStore | None = None

    @asynccontextmanager
    async def agent(self, protocol: int) -> AsyncIterator[Client]:
        """A process that serves one client: a store, an agent, a connection."""
        store = self.store = SqliteStore(self.folder)
        agent = Agent("kept", store=store, options=[MODES])
        agent.prompt(self._answer)
        self.heard = []
        try:
            async with pair(agent, protocol=protocol, on_event=self._hear) as client:
                yield client
        finally:
            await store.close()

    async def _answer(self, session: Session, prompt: Prompt) -> None:
        await session.think("hm")
        await session.say("one ")
        await session.say("two")
        async with session.tool("Look", kind="read", id="call") as call:
            await call.add("seen")
            if prompt.text == "wait":
                await self.gate.wait()
        await session.plan(["step"])
        await session.remember("mine", prompt.text)

    def _hear(self, conversation: Conversation, event: AnyEvent) -> None:
        self.heard.append(event)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "sessions")


async def read_into(said: list[AnyEvent], turn: Turn) -> None:
    async for event in turn:
        said.append(event)


async def refused(work: Any) -> tuple[int, object]:
    with pytest.raises(RequestFailed) as caught:
        await work
    return caught.value.code, caught.value.data


@pytest.mark.parametrize("lived", [1, 2])
@pytest.mark.parametrize("loaded", [1, 2])
async def test_a_session_lived_in_one_version_is_told_again_in_the_other(house: House, lived: int, loaded: int) -> None:
    async with house.agent(lived) as client:
        session = await client.new_session("/")
        await session.ask("hello there")
    async with house.agent(loaded) as client:
        again = await client.load_session(session.id, "/")
        told = [event for event in house.heard if isinstance(event, (Chunk, UserMessage, AgentMessage, AgentThought))]
        texts = [event.text if isinstance(event, Chunk) else text_in(event) for event in told]
        assert texts == ["hello there", "hm", "one two"]
        (call,) = [event for event in house.heard if isinstance(event, ToolCallUpdate)]
        assert (call.title, call.status, call.content) == ("Look", "completed", [ContentItem(Text("seen"))])
        (plan,) = [event for event in house.heard if isinstance(event, PlanUpdate)]
        assert plan.plan == PlanItems("main", [PlanEntry("step")])
        assert again.title == "hello there"
        assert (await again.ask("and on")).text == "one two"


def text_in(event: UserMessage | AgentMessage | AgentThought) -> str:
    assert isinstance(event.content, list)
    return "".join(block.text for block in event.content if isinstance(block, Text))


@both_protocols
async def test_resuming_tells_nothing_again_but_how_things_stand(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.ask("hello")
    async with house.agent(protocol) as client:
        again = await client.resume_session(session.id, "/")
        assert house.heard == [Idle()]
        assert (await again.ask("and on")).stop_reason == "end_turn"


@both_protocols
async def test_an_order_is_no_title(tmp_path: Path, protocol: int) -> None:
    store = SqliteStore(tmp_path)
    agent = Agent("kept", store=store, options=[MODES])

    async def obey(session: Session, prompt: Prompt) -> None:
        await session.say("Yes.")

    agent.prompt(obey)
    for name in ("look", "mode"):
        agent.command(name, "An order")(obey)
    async with pair(agent, protocol=protocol) as client:
        session = await client.new_session("/")
        for prompt in ("/look", "/mode full", "/tmp is full"):  # the last is no command of ours
            assert not session.title
            await session.ask(prompt)
        (found,) = await client.list_sessions()
        assert found.title == "/tmp is full"
    await store.close()


@both_protocols
async def test_a_session_is_stored_before_its_first_prompt(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
    async with house.agent(protocol) as client:
        assert [found.session_id for found in await client.list_sessions()] == [session.id]
        assert (await (await client.resume_session(session.id, "/")).ask("hi")).text == "one two"


@both_protocols
async def test_options_outlive_the_process(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.set_mode("full")
    async with house.agent(protocol) as client:
        (mode,) = (await client.resume_session(session.id, "/")).options
        assert isinstance(mode, Select)
        assert mode.current_value == "full"


@both_protocols
async def test_sessions_are_listed_newest_first_and_by_folder(house: House, protocol: int, tmp_path: Path) -> None:
    async with house.agent(protocol) as client:
        first, second = await client.new_session("/"), await client.new_session(str(tmp_path))
        await first.ask("later")
        found = await client.list_sessions()
        assert [(one.session_id, one.title or "") for one in found] == [(first.id, "later"), (second.id, "")]
        assert [one.session_id for one in await client.list_sessions(str(tmp_path))] == [second.id]
        assert await refused(client.ask(requests.ListSessions(cursor="garbage"))) == (INVALID_PARAMS, None)


@both_protocols
async def test_a_fork_goes_its_own_way(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.ask("before")
        fork = await session.fork()
        await fork.ask("only here")
        await session.close()
        house.heard.clear()
        await client.load_session(session.id, "/")
        users = [e for e in house.heard if type(e).__name__.startswith("UserMessage")]
        assert len(users) == 1


@both_protocols
async def test_close_keeps_and_delete_forgets_and_neither_minds_the_unknown(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.close()
        await client.ask(requests.CloseSession(session.id))
        assert len(await client.list_sessions()) == 1
        await client.ask(requests.DeleteSession(session.id))
        await client.ask(requests.DeleteSession(session.id))
        assert await client.list_sessions() == []
        missing = (NOT_FOUND, {"sessionId": session.id})
        assert await refused(client.load_session(session.id, "/")) == missing
        assert await refused(client.ask(requests.ForkSession(session.id, "/"))) == missing
        assert await refused(client.ask(requests.SetTitle(session.id, "x"))) == missing


@both_protocols
async def test_a_session_is_named_after_what_was_typed_and_not_after_what_goes_along(
    house: House, protocol: int
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session(str(house.folder.parent))
        await session.ask([Text("explain @a.py"), Resource(TextResource("def a(): ...", "file:///w/a.py"))])
        other = await client.new_session(str(house.folder.parent))
        await other.ask([Resource(TextResource("def a(): ...", "file:///w/a.py"))])
        assert (session.title, other.title) == ("explain @a.py", "def a(): ...")


@both_protocols
async def test_title_archive_and_status(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        assert await client.ask(requests.SetTitle(session.id, "Mine")) == requests.TitleSet("Mine")
        status = await client.ask(requests.GetSessionStatus(session.id))
        assert isinstance(status, requests.SessionStatus)
        assert status.status == "open"
        await session.close()
        await client.ask(requests.ArchiveSession(session.id))
        assert await client.list_sessions() == []
        only = await client.ask(requests.ListSessions(archived="only"))
        assert isinstance(only, requests.SessionList)
        assert [(one.title, one.archived) for one in only.sessions] == [("Mine", True)]
        await client.ask(requests.UnarchiveSession(session.id))
        assert len(await client.list_sessions()) == 1
        status = await client.ask(requests.GetSessionStatus(session.id))
        assert isinstance(status, requests.SessionStatus)
        assert status.status == "saved"


@both_protocols
async def test_a_session_that_runs_is_not_told_again(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        turn = session.prompt("wait")
        async for event in turn:
            if isinstance(event, ToolCallUpdate):
                break
        request = requests.ResumeSession(session.id, "/", replay_from=requests.ReplayFromStart())
        assert await refused(client.ask(request)) == (INVALID_REQUEST, {"reason": "busy"})
        house.gate.set()
        assert (await turn.read()).stop_reason == "end_turn"


@both_protocols
async def test_another_folder_or_another_holder_is_refused(house: House, protocol: int, tmp_path: Path) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        other = House(house.folder)
        async with other.agent(protocol) as second:
            assert await refused(second.load_session(session.id, "/")) == (INVALID_REQUEST, {"reason": "open"})
            assert (await refused(second.load_session(session.id, str(tmp_path))))[0] == INVALID_PARAMS
    async with house.agent(protocol) as client:
        await client.load_session(session.id, "/")


@both_protocols
async def test_what_the_brain_remembers_is_recalled_after_a_restart(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.ask("first")
        await session.ask("second")
    store = SqliteStore(house.folder)
    log = await store.open(session.id)
    notes = [record.entry async for records in log.read() for record in records if record.entry[0] == "mine"]
    assert [note[1] for note in notes] == ["first", "second"]
    await store.close()


@both_protocols
async def test_a_turn_that_was_cut_off_is_mended_and_the_session_goes_on(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        turn = session.prompt("wait")
        async for event in turn:
            if isinstance(event, ToolCallUpdate):
                break
        # As a kill would leave it: the log ends in the middle, and its lease is free.
        copy = house.folder.parent / "copy"
        shutil.copytree(house.folder, copy, ignore=shutil.ignore_patterns("holders"))
        house.gate.set()
        await turn.read()
    killed = House(copy)
    async with killed.agent(protocol) as client:
        again = await client.load_session(session.id, "/")
        (call,) = [event for event in killed.heard if isinstance(event, ToolCallUpdate)]
        assert (call.status, call.content) == ("failed", [ContentItem(Text("seen")), ContentItem(Text("interrupted"))])
        assert (await again.ask("and on")).stop_reason == "end_turn"


@both_protocols
async def test_what_cannot_be_kept_is_not_said_and_the_turn_fails(
    house: House, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        assert house.store is not None
        keeper = house.store._engine
        append = keeper.append

        def full(*arguments: Any, **named: Any) -> Any:
            raise StoreFailed("the disk is full")

        monkeypatch.setattr(keeper, "append", full)
        turn = session.prompt("hello")
        said: list[AnyEvent] = []
        assert await refused(read_into(said, turn)) == (INTERNAL_ERROR, {"reason": "store"})
        assert [event for event in said if isinstance(event, Chunk)] == []
        monkeypatch.setattr(keeper, "append", append)
        assert (await session.ask("now")).text == "one two"
        house.heard.clear()
        await session.close()
        await client.load_session(session.id, "/")
        assert len([e for e in house.heard if type(e).__name__.startswith("UserMessage")]) == 1


@both_protocols
async def test_without_a_store_nothing_of_this_is_offered(protocol: int) -> None:
    agent = Agent("forgetful")

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("hi")

    async with pair(agent, protocol=protocol) as client:
        session = await client.new_session("/")
        for request in (requests.DeleteSession(session.id), requests.ForkSession(session.id, "/")):
            assert (await refused(client.ask(request)))[0] == METHOD_NOT_FOUND


@both_protocols
async def test_a_session_that_could_not_be_read_once_can_be_opened_later(
    house: House, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        await session.ask("hello")
        await session.close()

        def broken(self: History, entries: Any) -> None:
            raise StoreFailed("the disk failed")

        with monkeypatch.context() as failing:
            failing.setattr(History, "apply", broken)
            assert await refused(client.load_session(session.id, "/")) == (INTERNAL_ERROR, {"reason": "store"})
            assert await refused(client.ask(requests.ForkSession(session.id, "/"))) == (
                INTERNAL_ERROR,
                {"reason": "store"},
            )
        again = await client.load_session(session.id, "/")
        assert (await again.ask("and on")).text == "one two"


@both_protocols
async def test_an_option_is_on_disk_before_it_is_acknowledged(
    house: House, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        assert house.store is not None
        keeper, disk = house.store._engine, threading.Event()
        append = keeper.append

        def slow(*arguments: Any, **named: Any) -> Any:
            disk.wait(30)
            return append(*arguments, **named)

        monkeypatch.setattr(keeper, "append", slow)
        setting = asyncio.ensure_future(session.set_mode("full"))
        done, _ = await asyncio.wait([setting], timeout=0.05)
        assert not done
        disk.set()
        await setting


@both_protocols
async def test_an_option_that_cannot_be_kept_is_refused_and_can_be_set_later(
    house: House, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        assert house.store is not None

        def full(*arguments: Any, **named: Any) -> Any:
            raise StoreFailed("the disk is full")

        with monkeypatch.context() as failing:
            failing.setattr(house.store._engine, "append", full)
            for _ in range(2):
                assert await refused(session.set_mode("full")) == (INTERNAL_ERROR, {"reason": "store"})
        await session.set_mode("full")
        await session.close()
        (mode,) = (await client.resume_session(session.id, "/")).options
        assert isinstance(mode, Select)
        assert mode.current_value == "full"


@both_protocols
async def test_an_end_that_cannot_be_kept_is_told_as_a_failure(
    house: House, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.agent(protocol) as client:
        session = await client.new_session("/")
        assert house.store is not None
        append = house.store._engine.append

        def no_end(name: str, entries: Any, **named: Any) -> Any:
            if any(isinstance(entry, EventEntry) and isinstance(entry.event, Idle) for entry in entries):
                raise StoreFailed("the disk is full")
            return append(name, entries, **named)

        with monkeypatch.context() as failing:
            failing.setattr(house.store._engine, "append", no_end)
            assert await refused(session.ask("hello")) == (INTERNAL_ERROR, {"reason": "store"})
        assert (await session.ask("now")).text == "one two"


@both_protocols
@pytest.mark.parametrize("how", ["new", "fork"])
async def test_a_session_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path, how: str, protocol: int) -> None:
    store = SqliteStore(tmp_path / "store")
    agent = Agent("picky", store=store)
    refuses = False

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("yes")

    @agent.session_opened
    async def opened(session: Session) -> None:
        if refuses:
            raise RequestFailed(INTERNAL_ERROR, "Not today")

    async with pair(agent, protocol=protocol) as client:
        first = await client.new_session(tmp_path)
        await first.ask("hi")
        refuses = True
        with pytest.raises(RequestFailed, match="Not today"):
            await (client.new_session(tmp_path) if how == "new" else first.fork())
        assert [meta.id for meta in (await store.list()).sessions] == [first.id]
    await store.close()


async def test_a_summary_that_came_in_chunks_is_there_after_a_load(tmp_path: Path) -> None:
    told: list[AnyEvent] = [
        CompactionUpdate("s", "in_progress"),
        CompactionSummaryChunk("s", Text("the summary")),
        CompactionUpdate("s", "completed"),
        CompactionSummaryChunk("unannounced", Text("half")),
    ]

    async def compact(session: Session, prompt: Prompt) -> None:
        for event in told:
            await session.emit(event)

    heard: list[AnyEvent] = []
    session_id = ""
    for _ in range(2):
        store = SqliteStore(tmp_path)
        agent = Agent("kept", store=store)
        agent.prompt(compact)
        async with pair(agent, protocol=2, on_event=lambda conversation, event: heard.append(event)) as client:
            if session_id:
                await client.load_session(session_id, "/")
            else:
                session = await client.new_session("/")
                session_id = session.id
                await session.ask("compact")
        await store.close()
    assert [event for event in heard if isinstance(event, CompactionUpdate)] == [
        CompactionUpdate("s", "completed", [Text("the summary")]),
        CompactionUpdate("unannounced", "in_progress", [Text("half")]),
    ]


@both_protocols
async def test_a_session_that_was_opened_and_never_used_is_marked_in_the_list(house: House, protocol: int) -> None:
    async with house.agent(protocol) as client:
        empty = await client.new_session(house.folder.parent)
        used = await client.new_session(house.folder.parent)
        await used.ask("go")
        marks = {info.session_id: info.meta for info in await client.list_sessions()}
    assert marks == {empty.id: {"dragoman/empty": True}, used.id: UNSET}
