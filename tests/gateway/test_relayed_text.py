"""Text passes the gateway as it came, and only as what it was proven to be."""

import json
from pathlib import Path

import pytest

from dragoman.dialects.codec import relayed_text
from dragoman.gateway.agent_source import AgentSource
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair
from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import Message, greeting, prompt, texts
from tests.support.raw_peer import PIPE, RawPeer
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class RawAgent:
    """An agent in raw bytes, with a process for every connection and sessions `s0`, `s1` …; its prompts stay open."""

    def __init__(self, version: int = 1) -> None:
        self.processes: list[RawPeer] = []
        self.version = version
        self.sessions = 0

    def open(self, principal: str) -> Transport:
        ours, its = memory_pair(4 * PIPE)
        self.processes.append(AnsweringPeer(its, self))
        return ours

    def source(self) -> AgentSource:
        return AgentSource(self.open, (self.version,))


class AnsweringPeer(RawPeer):
    """A process of a `RawAgent`."""

    def __init__(self, transport: Transport, agent: RawAgent) -> None:
        self.agent = agent
        super().__init__(transport)

    def data_received(self, data: bytes) -> None:
        before = len(self.heard)
        super().data_received(data)
        for message in self.heard[before:]:
            if message.get("method") == "initialize":
                self.say({"id": message["id"], "result": greeting(self.agent.version)})
            elif message.get("method") == "session/new":
                self.say({"id": message["id"], "result": {"sessionId": f"s{self.agent.sessions}"}})
                self.agent.sessions += 1


def chunk(session: str, text: str, *, more: str = "", before: str = "", kind: str = "agent_message_chunk") -> bytes:
    return (
        f'{{"jsonrpc":"2.0","method":"session/update","params":{{{before}"sessionId":"{session}","update":{{'
        f'"sessionUpdate":"{kind}",{more}"content":{{"type":"text","text":{text}}}}}}}}}\n'
    ).encode()


def heard(raw: RawHttp) -> list[str]:
    return texts(raw.heard)


async def started(raw: RawHttp, agent: RawAgent) -> str:
    """A session in whose turn the agent may speak."""
    session_id = await raw.session()
    await raw.post(prompt(7, session_id), session_id)
    asked = prompt(7, session_id)["params"]
    await until(lambda: any(m.get("params") == asked for process in agent.processes for m in process.heard))
    return session_id


@pytest.mark.requirement("K21")
@pytest.mark.parametrize("version", [1, 2], ids=["to version 1", "to version 2"])
async def test_the_third_piece_of_a_message_and_all_behind_it_reach_clients_byte_by_byte(
    version: int, tmp_path: Path
) -> None:
    agent = RawAgent()
    written = ['"a"', '"b"', r'"\u00e9\n"', '"é"', r'"\ud83d\ude00"', '"{\\"sessionId\\":\\"x\\"}"', '""']
    async with gateway(agent.source(), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await started(raw, agent)
        agent.processes[0].write(b"".join(chunk(session_id, text) for text in written))
        await until(lambda: len(heard(raw)) == len(written))
        (shared,) = served.hub.sessions.values()
        (client_side,) = shared.subscribers
        kept = [frame for frame in client_side.connection.streams.of_session(session_id)._frames if b'"text":' in frame]
    assert heard(raw) == [json.loads(text) for text in written]
    assert [text.encode() in frame for text, frame in zip(written[2:], kept[-5:], strict=True)] == [True] * 5


@pytest.mark.requirement("K21")
@pytest.mark.parametrize(
    "odd",
    [
        {"before": '"sessionId":"s1",'},
        {"before": r'"session\u0049d":"s1",'},
        {"more": '"sessionUpdate":"agent_thought_chunk",'},
        {"more": '"content":{"type":"text","text":"other"},'},
    ],
    ids=["two session ids", "two session ids, one escaped", "two kinds", "two contents"],
)
async def test_a_frame_with_a_key_twice_reaches_no_client_as_it_is(odd: dict[str, str], tmp_path: Path) -> None:
    agent = RawAgent()
    async with (
        gateway(agent.source(), tmp_path) as served,
        raw_http(served, token=served.token_of("alice")) as alice,
        raw_http(served, token=served.token_of("bob")) as bob,
    ):
        hers, _ = await started(alice, agent), await started(bob, agent)
        process = agent.processes[0]
        process.write(chunk(hers, '"1"') * 3)
        await until(lambda: heard(alice) == ["1"] * 3)
        process.write(chunk(hers, '"odd"', **odd) * 3 + chunk(hers, '"last"'))
        await until(lambda: "last" in heard(alice))
        frames = [
            frame
            for one in served.hub.connections.values()
            for buffer in one.connection.streams.all()
            for frame in buffer._frames
        ]
    assert heard(bob) == []
    assert [frame for frame in frames if b'"odd"' in frame and has_a_key_twice(frame)] == []


def has_a_key_twice(frame: bytes) -> bool:
    def look(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise KeyError
        return dict(pairs)

    try:
        json.loads(frame, object_pairs_hook=look)
    except KeyError:
        return True
    return False


async def test_an_agent_cannot_speak_in_a_session_of_another_process(tmp_path: Path) -> None:
    agent = RawAgent()
    async with (
        gateway(agent.source(), tmp_path) as served,
        raw_http(served, token=served.token_of("alice")) as alice,
        raw_http(served, token=served.token_of("bob")) as bob,
    ):
        hers, his = await started(alice, agent), await started(bob, agent)
        agent.processes[0].write(chunk(his, '"hers"') * 4 + chunk(hers, '"last"') * 4)
        await until(lambda: len(heard(alice)) == 4)
        assert heard(bob) == []


@pytest.mark.requirement("K21")
async def test_clients_of_two_versions_read_the_same_and_one_that_joins_gets_what_was_said(tmp_path: Path) -> None:
    agent = RawAgent()
    async with (
        gateway(agent.source(), tmp_path) as served,
        raw_http(served) as first,
        raw_http(served, 2) as second,
    ):
        session_id = await started(first, agent)
        process = agent.processes[0]
        process.write(b"".join(chunk(session_id, f'"{number} "') for number in range(10)))
        await until(lambda: len(heard(first)) == 10)
        await second.post(
            {
                "id": 5,
                "method": "session/resume",
                "params": {"sessionId": session_id, "cwd": "/", "replayFrom": {"type": "start"}},
            },
            session_id,
        )
        assert await second.open(session_id) == 200
        assert "result" in await second.answer(5)
        joined = said(second)
        process.write(b"".join(chunk(session_id, f'"{number} "') for number in range(10, 20)))
        await until(lambda: len(heard(first)) == 20 and said(second).endswith("19 "))
    whole = "".join(f"{number} " for number in range(20))
    assert joined == whole[: whole.index("10 ")]
    assert ("".join(heard(first)), said(second)) == (whole, whole)


def said(raw: RawHttp) -> str:
    """What the agent said, in whole messages and in pieces."""
    found = []
    for message in raw.heard:
        update: Message = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") in ("agent_message", "agent_message_chunk"):
            content = update["content"]
            found += [block["text"] for block in (content if isinstance(content, list) else [content])]
    return "".join(found)


async def test_another_update_between_pieces_stays_between_them_and_begins_a_new_message(tmp_path: Path) -> None:
    agent = RawAgent()
    call = (
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s0","update":'
        b'{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Look"}}}\n'
    )
    async with gateway(agent.source(), tmp_path) as served, raw_http(served) as raw:
        session_id = await started(raw, agent)
        agent.processes[0].write(chunk(session_id, '"a"') * 4 + call + chunk(session_id, '"b"') * 4)
        await until(lambda: len(heard(raw)) == 8)
    updates = [m["params"]["update"] for m in raw.heard if m.get("method") == "session/update"]
    kinds = [update["sessionUpdate"] for update in updates]
    assert kinds[-9:] == ["agent_message_chunk"] * 4 + ["tool_call"] + ["agent_message_chunk"] * 4
    ids = [update["messageId"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    assert ids == [ids[0]] * 4 + [ids[-1]] * 4
    assert ids[0] != ids[-1]


async def test_the_end_of_a_turn_stands_behind_its_last_piece(tmp_path: Path) -> None:
    agent = RawAgent()
    async with gateway(agent.source(), tmp_path) as served, raw_http(served) as raw:
        session_id = await started(raw, agent)
        process = agent.processes[0]
        asked = next(m["id"] for m in process.heard if m.get("method") == "session/prompt")
        end = b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}\n' % asked
        process.write(chunk(session_id, '"a"') * 5 + end)
        assert (await raw.answer(7))["result"]["stopReason"] == "end_turn"
        stream = [message for _, message in raw.by_stream[session_id]] if session_id in raw.by_stream else raw.heard
    said_at = [at for at, m in enumerate(stream) if m.get("method") == "session/update"]
    assert len(texts(stream)) == 5
    assert max(said_at) < next(at for at, m in enumerate(stream) if m.get("id") == 7)


async def test_many_messages_at_once_are_known_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relayed_text, "_KNOWN", 2)
    agent = RawAgent()
    async with gateway(agent.source(), tmp_path) as served, raw_http(served) as raw:
        session_id = await started(raw, agent)
        said = b"".join(chunk(session_id, f'"{n}"', more=f'"messageId":"m{n % 5}",') * 3 for n in range(10))
        agent.processes[0].write(said)
        await until(lambda: len(heard(raw)) == 30)
    assert heard(raw) == [str(n) for n in range(10) for _ in range(3)]
