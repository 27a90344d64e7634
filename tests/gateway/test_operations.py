"""For the operator of the server: metrics, the log, peers that are gone."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

import httpx2
import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.gateway import logbook
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.dead_peers import IDLE_SECONDS, UNACKNOWLEDGED_SECONDS, listeners, own_sockets
from dragoman.gateway.hub import Hub
from dragoman.gateway.logbook import Logbook
from dragoman.gateway.metrics import Metrics, metrics_of
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.memory import memory_pair
from tests.support.gateway import Served, counting, gateway, http_client, raw_http
from tests.support.messages import Message, prompt, texts
from tests.support.needs import ROOT, need
from tests.support.waiting import until

from .sockets import hear, opening, say, session

pytestmark = pytest.mark.anyio


# -- metrics ---------------------------------------------------------------------------------------------------------


async def metrics(served: Served, token: str = "") -> httpx2.Response:
    async with http_client() as client:
        headers = {"Authorization": f"Bearer {token or served.token}"}
        return await client.get(served.http.replace("/acp", "/metrics"), headers=headers)


def samples(text: str) -> dict[str, float]:
    """Every sample; whatever is not one, nor a comment, fails here."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            name, _, value = line.rpartition(" ")
            assert name
            assert name not in found
            found[name] = float(value)
    return found


async def test_metrics_count_what_happens(tmp_path: Path) -> None:
    async with gateway(counting(20), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        async with http_client() as client:
            assert (await client.get(served.http)).status_code == 401
        assert await raw.open("sess_unknown") == 404
        response = await metrics(served)
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = samples(response.text)
        assert found["dragoman_connections"] == found["dragoman_sessions"] == found["dragoman_agents"] == 1
        assert found["dragoman_streams"] == 2
        assert found["dragoman_turns"] == found["dragoman_questions"] == found["dragoman_streams_behind"] == 0
        assert found['dragoman_turns_ended_total{end="end_turn"}'] == 1
        assert found["dragoman_turn_seconds_count"] == 1
        assert found['dragoman_refused_total{status="401"}'] == found['dragoman_refused_total{status="404"}'] == 1
        for method in ("session/new", "session/prompt"):
            assert found[f'dragoman_answer_seconds_count{{method="{method}"}}'] == 1
        assert found["dragoman_chunk_seconds_count"] >= 1
        assert found['dragoman_chunk_seconds_bucket{le="+Inf"}'] == found["dragoman_chunk_seconds_count"]
        assert found["dragoman_held_bytes"] > found["dragoman_unread_bytes"] >= found["dragoman_unread_bytes_most"]


async def test_metrics_need_the_scope_admin(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        assert (await metrics(served, served.token_of("phone", ("read", "prompt")))).status_code == 403
        assert (await metrics(served, "wrong")).status_code == 401


async def test_a_client_cannot_make_new_series(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        before = set(samples((await metrics(served)).text))
        for id in range(10, 20):
            await raw.post({"id": id, "method": f"_made/up{id}", "params": {}})
            assert "error" in await raw.answer(id)
        after = set(samples((await metrics(served)).text))
        assert {name for name in after - before if 'method="other"' not in name} == set()


async def test_the_names_and_labels_of_all_series_are_those_of_the_documents(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        text = (await metrics(served)).text
    kinds = dict(line.removeprefix("# TYPE dragoman_").split() for line in text.splitlines() if "# TYPE " in line)
    gauges = ["connections", "streams", "agents", "agents_asleep", "sessions", "turns", "questions", "held_bytes"]
    gauges += ["unread_bytes", "unread_bytes_most", "streams_behind"]
    counters = ["turns_ended_total", "refused_total", "events_total"]
    histograms = ["chunk_seconds", "turn_seconds", "answer_seconds"]
    kind_of = {"gauge": gauges, "counter": counters, "histogram": histograms}
    assert kinds == {name: kind for kind, names in kind_of.items() for name in names}
    assert {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if not line.startswith("#")} == {
        *(f"dragoman_{name}" for name in (*gauges, "turns_ended_total", "events_total")),
        *(f"dragoman_{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")),
    }


class NodeStream:
    """What the metrics see of an agent that is a stream to another node."""

    is_of_other_node = has_process = True


async def test_a_stream_to_another_node_is_no_agent_that_is_asleep() -> None:
    hub = Hub(AgentSource(lambda _: memory_pair(1024)[0]))
    hub.agents.add(cast(AgentSide, NodeStream()))
    found = samples(metrics_of([hub], hub.monitor).decode())
    assert (found["dragoman_agents"], found["dragoman_agents_asleep"]) == (0, 0)


def test_the_metrics_of_two_servers_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.on_turn_end("end_turn", 1.0)
    one.on_turn_end({"not": "text"}, 1.0)
    labels = {"end": "other"}
    assert one.registry.get_sample_value("dragoman_turns_ended_total", labels) == 1
    assert one.registry.get_sample_value("dragoman_turn_seconds_bucket", {"le": "1.0"}) == 2
    assert other.registry.get_sample_value("dragoman_turn_seconds_count") == 0


# -- the log ---------------------------------------------------------------------------------------------------------


class Lines:
    """A log that is kept."""

    def __init__(self, level: logbook.Level = "debug") -> None:
        self.data = b""
        self.log = Logbook(self._write, level)

    def _write(self, lines: bytes) -> None:
        self.data += lines

    def events(self) -> list[Message]:
        self.log.close()
        return [json.loads(line) for line in self.data.splitlines()]


async def test_the_log_tells_who_and_when_and_never_what(tmp_path: Path) -> None:
    kept = Lines()
    running = gateway(counting(3), tmp_path, log=kept.log)
    async with running as served, raw_http(served) as raw, http_client() as client:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id, "my secret plan"), session_id)
        await raw.answer(2)
        heard = texts(raw.heard)
        secret = {"Authorization": "Bearer guessed-token"}
        await client.get(f"{served.http}?token=in-the-query", headers=secret)
        await client.get(served.http.replace("/acp", "/etc/passwd"), headers=served.headers)
        await client.delete(served.http, headers=served.headers | {"Acp-Connection-Id": raw.connection})
    events = kept.events()
    names = [event["event"] for event in events]
    expected = ["listening", "connection_opened", "agent_started", "session_opened", "turn_begun", "turn_ended"]
    assert [name for name in names if name in expected] == expected
    assert {"refused", "connection_closed", "stopping", "stopped"} <= set(names)
    for event in events:
        assert event["time"].endswith("Z")
        assert event["level"] in logbook.LEVELS
    opened = next(event for event in events if event["event"] == "session_opened")
    assert (opened["principal"], opened["method"]) == ("default", "session/new")
    assert session_id.startswith(opened["session"])
    begun = next(event for event in events if event["event"] == "turn_begun")
    assert (begun["session"], begun["principal"]) == (opened["session"], "default")
    ended = next(event for event in events if event["event"] == "turn_ended")
    assert (ended["end"], ended["seconds"] >= 0) == ("end_turn", True)
    requests = [(event["method"], event["status"]) for event in events if event["event"] == "request"]
    assert requests == [("session/new", "ok"), ("session/prompt", "ok")]
    refused = [(event["status"], event["path"]) for event in events if event["event"] == "refused"]
    assert refused == [(401, "/acp"), (404, "other")]
    for hidden in ("secret plan", heard[0] + heard[1], raw.connection, session_id, served.token, "guessed", "query"):
        assert hidden.encode() not in kept.data


async def test_the_log_tells_who_has_deleted_a_session(tmp_path: Path) -> None:
    """What was decided in it is gone with it."""
    kept = Lines()
    store = SqliteStore(tmp_path / "sessions")
    agent = Agent("stored", store=store)
    agent.prompt(_silent)
    async with gateway(agent, tmp_path, log=kept.log) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post({"jsonrpc": "2.0", "id": 7, "method": "session/delete", "params": {"sessionId": session_id}})
        assert "result" in await raw.answer(7)
    await store.close()
    (deleted,) = [event for event in kept.events() if event["event"] == "session_deleted"]
    assert deleted["principal"] == "default"
    assert session_id.startswith(deleted["session"])


async def _silent(session: Session, prompt: Prompt) -> None:
    """Say nothing."""


async def test_by_default_requests_are_not_told_one_by_one(tmp_path: Path) -> None:
    kept = Lines("info")
    async with gateway(counting(1), tmp_path, log=kept.log) as served, raw_http(served) as raw:
        await raw.session()
    names = {event["event"] for event in kept.events()}
    assert "session_opened" in names
    assert "request" not in names


def test_a_flood_of_refusals_is_a_few_lines() -> None:
    kept = Lines()
    for _ in range(1000):
        kept.log.refusal(status=401)
    assert len(kept.events()) <= 2 * logbook._REFUSALS


def test_an_unread_log_holds_nothing_up_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logbook, "_WAITING", 10)
    blocked, writing = threading.Event(), threading.Event()
    data: list[bytes] = []

    def write(lines: bytes) -> None:
        writing.set()
        blocked.wait(30)
        data.append(lines)

    log = Logbook(write)
    log.info("first")
    assert writing.wait(30)
    for number in range(25):
        log.info("more", number=number)
    blocked.set()
    while log._lines:
        pass  # the thread takes them
    log.info("last")
    log.close()
    events = [json.loads(line) for line in b"".join(data).splitlines()]
    assert [event["event"] for event in events] == ["first", *["more"] * 10, "last"]
    assert events[-1]["dropped"] == 15


def test_a_pipe_that_is_closed_does_no_harm() -> None:
    def write(lines: bytes) -> None:
        raise BrokenPipeError

    log = Logbook(write)
    log.info("one")
    log.info("two")
    log.close()


# -- peers that are gone ---------------------------------------------------------------------------------------------


def _accepted(port: int) -> list[socket.socket]:
    """Our own ends of connections to a port."""
    found = []
    for one in own_sockets():
        try:
            is_ours = one.getsockname()[1] == port and bool(one.getpeername())
        except (OSError, IndexError, TypeError):
            is_ours = False
        if is_ours:
            found.append(one)
        else:
            one.close()
    return found


async def test_the_kernel_asks_a_silent_peer_whether_it_is_there(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served), opening(served) as peer:
        await session(peer, 1)
        sockets = _accepted(served.server.port)
        try:
            assert len(sockets) >= 2
            for one in sockets:
                assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == IDLE_SECONDS
                assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNACKNOWLEDGED_SECONDS * 1000
        finally:
            for one in sockets:
                one.close()
        found = list(listeners(served.server.port))
        assert len(found) >= 1
        for one in found:
            one.close()


@pytest.mark.slow
def test_a_peer_whose_network_is_gone_is_found_and_can_come_back(tmp_path: Path) -> None:
    command = [need("unshare"), "--map-root-user", "--net", sys.executable, "-m", "tests.gateway.peers.gone"]
    assert need("ip")
    found = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert found.stdout == "0 left; kept: True\n", found.stderr


async def test_a_websocket_learns_its_connection_from_the_first_answer(tmp_path: Path) -> None:
    """The server library drops the headers of an accepted WebSocket, so no client may rely on them."""
    async with gateway(counting(1), tmp_path) as served, opening(served) as peer:
        connection, _ = await session(peer, 1)
        assert list(served.hub.connections) == [connection]
        assert peer.response is not None
        assert "Acp-Connection-Id" not in peer.response.headers


# -- stopping --------------------------------------------------------------------------------------------------------


async def test_a_server_that_stops_begins_no_turn_and_lets_the_last_word_arrive(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def pause() -> None:
        await go_on.wait()

    async with gateway(counting(2, pause), tmp_path) as served, opening(served) as peer:
        _, session_id = await session(peer, 1)
        await say(peer, {"id": 4, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
        other = (await hear(peer, 4))[0]["result"]["sessionId"]
        await say(peer, prompt(2, session_id))
        await until(lambda: served.hub.sessions[session_id].is_running)
        stopping = asyncio.create_task(served.server.stop(10))
        await until(lambda: served.hub.is_stopping)
        await say(peer, prompt(3, other))
        refused, before = await hear(peer, 3)
        assert refused["error"]["data"] == {"retry": True}
        go_on.set()
        answer, after = await hear(peer, 2)
        assert answer["result"] == {"stopReason": "end_turn"}
        assert texts(before + after) == ["0 ", "1 "]
        await stopping
