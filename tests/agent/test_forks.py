"""`session/fork` at a message, in either version: the copy ends with it, and the session goes on as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.client.connect import Client
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.store.log_places import Rewind, Timeline
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import pair
from dragoman.vocabulary.events import AnyEvent, Chunk, Message
from tests.support.versions import both_protocols


class House:
    """A stored agent that answers each prompt in two messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[AnyEvent] = []

    @asynccontextmanager
    async def client(self, protocol: int) -> AsyncIterator[Client]:
        store = SqliteStore(self.folder)
        agent = Agent("kept", store=store)

        @agent.prompt
        async def answer(session: Session, prompt: Prompt) -> None:
            await session.say(f"first to {prompt.text}")
            async with session.tool("Look", kind="read") as call:
                await call.add("seen")
            await session.say(f"second to {prompt.text}")

        def hear(conversation: object, event: AnyEvent) -> None:
            self.heard.append(event)

        try:
            async with pair(agent, protocol=protocol, on_event=hear) as client:
                yield client
        finally:
            await store.close()

    def messages(self) -> dict[str, str]:
        """The texts of the messages heard by their ids, in order."""
        found: dict[str, str] = {}
        for event in self.heard:
            if isinstance(event, Chunk | Message):
                content = [event.content] if isinstance(event, Chunk) else event.content or []
                for block in content:
                    found[event.message_id] = found.get(event.message_id, "") + getattr(block, "text", "")
        return found

    def texts(self) -> list[str]:
        """The texts of the messages heard, in order."""
        return list(self.messages().values())

    def id_of(self, said: str) -> str:
        """The id of the message with this text."""
        return next(id for id, text in self.messages().items() if text == said)


@both_protocols
@pytest.mark.parametrize(
    ("at", "kept"),
    [
        ("second to one", ["one", "first to one", "second to one"]),
        ("first to two", ["one", "first to one", "second to one", "two", "first to two"]),
    ],
)
async def test_a_fork_ends_with_the_message_that_is_named(
    tmp_path: Path, protocol: int, at: str, kept: list[str]
) -> None:
    house = House(tmp_path)
    async with house.client(protocol) as client:
        session = await client.new_session("/")
        for prompt in ("one", "two"):
            house.heard += [event async for event in session.prompt(prompt)]
        fork = await session.fork(message_id=house.id_of(at))
        await fork.close()
        house.heard.clear()
        await (await client.load_session(fork.id, "/")).close()
        assert house.texts() == kept
        house.heard.clear()
        await session.close()
        await client.load_session(session.id, "/")
        assert len(house.texts()) == 6


@both_protocols
async def test_a_fork_at_a_message_that_is_not_there_is_refused_and_nothing_is_made(
    tmp_path: Path, protocol: int
) -> None:
    async with House(tmp_path).client(protocol) as client:
        session = await client.new_session("/")
        await session.ask("one")
        with pytest.raises(RequestFailed) as refused:
            await session.fork(message_id="msg_of_another")
        assert (refused.value.code, refused.value.data) == (INVALID_PARAMS, {"messageId": "msg_of_another"})
        assert [found.session_id for found in await client.list_sessions()] == [session.id]


def test_what_counts_after_rewinds_and_their_undoing() -> None:
    timeline = Timeline()

    def counted(last: int) -> list[int]:
        return [number for number in range(1, last + 1) if timeline.counts(number)]

    timeline.add(8, Rewind("a", 3, "both", "m"))
    assert counted(10) == [1, 2, 3, 9, 10]
    timeline.add(11, Rewind("b", 9, "both", "m"))
    assert counted(12) == [1, 2, 3, 9, 12]
    timeline.add(13, Rewind("c", 10, "both", undoes="b"))
    assert counted(14) == [1, 2, 3, 9, 10, 14]
    timeline.add(15, Rewind("d", 7, "both", undoes="a"))
    assert counted(15) == [1, 2, 3, 4, 5, 6, 7]
