"""Several sessions are loaded at the same moment: each history comes whole and in order, and its reply behind it."""

import asyncio
import random
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection

from dragoman import Agent, connect
from dragoman.agent.session import Prompt, Session
from dragoman.gateway.agent_source import AgentSource
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair
from dragoman.transports.remote import transport_for
from tests.support.gateway import gateway
from tests.support.messages import Message, greeting, hello
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.versions import both_versions

from .sockets import hear, opening, say
from .test_joining_a_turn import loading

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
SESSIONS = [f"s{number}" for number in range(4)]
TURNS = 12
ROUNDS = 5
mixed = pytest.mark.parametrize(("of_agent", "of_client"), [(1, 1), (1, 2), (2, 1), (2, 2)])


def history(session_id: str, version: int) -> list[Message]:
    """What an agent of this version sends when it replays a session: words and tool calls that name their place."""
    updates: list[Message] = []
    for turn in range(TURNS):
        name = f"{session_id}.{turn}"
        words = [{"type": "text", "text": f"{name}.{word} "} for word in range(3)]
        call = {"toolCallId": f"{name}.call", "title": "look", "status": "completed"}
        if version == 1:
            updates.append({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"}})
            updates += [{"sessionUpdate": "agent_message_chunk", "content": word} for word in words]
            updates.append({"sessionUpdate": "tool_call", **call})
        else:
            ask = {"messageId": f"{name}.ask", "content": [{"type": "text", "text": "go"}]}
            updates.append({"sessionUpdate": "user_message", **ask})
            message = {"sessionUpdate": "agent_message_chunk", "messageId": f"{name}.answer"}
            updates += [{**message, "content": word} for word in words]
            updates.append({"sessionUpdate": "tool_call_update", **call})
    return [{"method": "session/update", "params": {"sessionId": session_id, "update": one}} for one in updates]


def shown(messages: list[Message], session_id: str) -> list[str]:
    """The words and tool calls of a session, in order."""
    found: list[str] = []
    for message in messages:
        params = message.get("params", {})
        update = params.get("update", {})
        if params.get("sessionId") != session_id:
            continue
        match update["sessionUpdate"]:
            case "agent_message_chunk":
                found += update["content"]["text"].split()
            case "agent_message":
                found += "".join(block["text"] for block in update["content"]).split()
            case "tool_call" | "tool_call_update":
                found.append(update["toolCallId"])
            case _:
                pass
    return found


class Replaying(RawPeer):
    """An agent that answers loads together, once there are so many `at_once`: what it sends of the one stands between
    what it sends of the others, as `chance` has it."""

    def __init__(self, transport: Transport, version: int, chance: random.Random, at_once: int) -> None:
        self._version = version
        self._chance = chance
        self._at_once = at_once
        self._loads: list[Message] = []
        super().__init__(transport)

    def data_received(self, data: bytes) -> None:
        before = len(self.heard)
        super().data_received(data)
        for message in self.heard[before:]:
            if message.get("method") == "initialize":
                self.say({"id": message["id"], "result": greeting(self._version)})
            elif message.get("method") in ("session/load", "session/resume"):
                self._loads.append(message)
        if len(self._loads) >= self._at_once:
            self._replay()

    def _replay(self) -> None:
        loads, self._loads = self._loads, []
        left = [
            [*history(load["params"]["sessionId"], self._version), {"id": load["id"], "result": {}}] for load in loads
        ]
        together: list[Message] = []
        while left:
            one = self._chance.choice(left)
            count = self._chance.randint(1, 30)
            together += one[:count]
            del one[:count]
            left = [rest for rest in left if rest]
        self.say(*together)


def replaying(version: int, *, at_once: int) -> AgentSource:
    chance = random.Random(2026)

    def open_agent(principal: str) -> Transport:
        ours, its = memory_pair(4 * PIPE)
        Replaying(its, version, chance, at_once)
        return ours

    return AgentSource(open_agent, (version,))


async def greeted(socket: ClientConnection, version: int) -> None:
    await say(socket, hello(version))
    await hear(socket, 0)


async def ask_for_all(socket: ClientConnection, version: int, session_ids: list[str]) -> None:
    for number, session_id in enumerate(session_ids):
        await say(socket, loading(session_id, version, 10 + number))


async def histories(socket: ClientConnection, session_ids: list[str]) -> dict[str, list[str]]:
    """What is shown of each session before the reply to its load."""
    heard: list[Message] = []
    found: dict[str, list[str]] = {}
    async with asyncio.timeout(30):
        while len(found) < len(session_ids):
            message: Message = msgspec.json.decode(await socket.recv())
            heard.append(message)
            if "method" not in message:
                assert "result" in message, message
                session_id = session_ids[message["id"] - 10]
                found[session_id] = shown(heard, session_id)
    return found


async def loaded(socket: ClientConnection, version: int, session_ids: list[str]) -> dict[str, list[str]]:
    await greeted(socket, version)
    await ask_for_all(socket, version, session_ids)
    return await histories(socket, session_ids)


@mixed
async def test_a_client_that_loads_sessions_at_once_gets_each_whole_before_its_reply(
    of_agent: int, of_client: int, tmp_path: Path
) -> None:
    whole = {session_id: shown(history(session_id, of_agent), session_id) for session_id in SESSIONS}
    async with gateway(replaying(of_agent, at_once=len(SESSIONS)), tmp_path) as served:
        for _ in range(ROUNDS):
            async with opening(served) as socket:
                assert await loaded(socket, of_client, SESSIONS) == whole


@mixed
async def test_so_do_two_clients_that_load_the_same_sessions_at_the_same_moment(
    of_agent: int, of_client: int, tmp_path: Path
) -> None:
    whole = {session_id: shown(history(session_id, of_agent), session_id) for session_id in SESSIONS}
    async with gateway(replaying(of_agent, at_once=1), tmp_path) as served:
        for _ in range(ROUNDS):
            async with opening(served) as one, opening(served) as two:
                first, second = await asyncio.gather(
                    loaded(one, of_client, SESSIONS), loaded(two, 3 - of_client, SESSIONS[::-1])
                )
            assert first == second == whole


@both_versions
async def test_a_slow_reader_gets_each_history_whole_too_beside_a_fast_one(version: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions")
    agent = Agent("wordy", store=store)

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        for number in range(6):
            await session.say(f"{prompt.text}.{number}{'x' * 20_000} ")
            async with session.tool("Look", kind="read") as call:
                await call.add("seen")

    async with gateway(agent, tmp_path) as served:
        session_ids: list[str] = []
        async with connect(transport_for(served.ws, served.token)) as client:
            for name in SESSIONS:
                made = await client.new_session(Path("/"))
                for turn in range(3):
                    await made.ask(f"{name}.{turn}")
                session_ids.append(made.id)
        async with opening(served) as fast, opening(served) as slow:
            await greeted(slow, 3 - version)
            await ask_for_all(slow, 3 - version, session_ids)  # and reads nothing yet
            first = await loaded(fast, version, session_ids)
            second = await histories(slow, session_ids)
    await store.close()
    words = {id: [word.rstrip("x") for word in found if word[0] == "s"] for id, found in first.items()}
    assert words == {
        id: [f"{name}.{turn}.{number}" for turn in range(3) for number in range(6)]
        for name, id in zip(SESSIONS, session_ids, strict=True)
    }
    assert second == first
