"""Streamable HTTP on the real server: statuses, streams, both versions."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import session_streams
from dragoman.transports.contract import Transport
from tests.support.gateway import counting, gateway, http_client, raw_http
from tests.support.messages import hello, prompt, texts
from tests.support.needs import need
from tests.support.raw_peer import RawPeer
from tests.support.versions import both_versions
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@both_versions
async def test_a_turn_over_http(version: int, tmp_path: Path) -> None:
    async with gateway(counting(20), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await raw.session()
        assert (await raw.post(prompt(2, session_id), session_id)).status_code == 202
        answer = await raw.answer(2)
        await until(lambda: len(texts(raw.heard)) == 20)
        assert texts(raw.heard) == [f"{number} " for number in range(20)]
        on_session = [message for _, message in raw.by_stream[session_id]]
        assert answer in on_session
        assert [id for id, _ in raw.by_stream[session_id]] == [str(n + 1) for n in range(len(on_session))]
        if version == 1:
            assert answer["result"]["stopReason"] == "end_turn"
            assert on_session[-1] == answer


async def test_initialize_is_answered_with_a_body_and_names_the_connection(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served, greet=False) as raw:
        answer = await raw.post(hello(1))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["result"]["protocolVersion"] == 1
        assert answer.json()["result"]["connectionId"] == answer.headers["acp-connection-id"]


async def test_an_unsupported_version_is_an_error_and_no_connection(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served, greet=False) as raw:
        answer = await raw.post(hello(0))
        assert answer.status_code == 200
        assert answer.json()["error"]["code"] == -32022
        assert "acp-connection-id" not in answer.headers
        await until(lambda: not served.hub.connections)


@pytest.mark.parametrize(
    ("method", "headers", "body", "status"),
    [
        ("POST", {"Content-Type": "text/plain"}, b"{}", 415),
        ("POST", {"Content-Type": "application/x-www-form-urlencoded"}, b"a=b", 415),
        ("POST", {}, b"{}", 415),
        ("POST", {"Content-Type": "application/json"}, b"[]", 501),
        ("POST", {"Content-Type": "application/json"}, b" [{}]", 501),
        ("POST", {"Content-Type": "application/json"}, b"{", 400),
        ("POST", {"Content-Type": "application/json"}, b"7", 400),
        ("POST", {"Content-Type": "application/json"}, b"\xff", 400),
        ("POST", {"Content-Type": "application/json"}, b'{"jsonrpc":"2.0","id":1,"method":"session/new"}', 400),
        ("POST", {"Content-Type": "application/json", "Acp-Connection-Id": "x"}, b'{"id":1,"method":"a"}', 404),
        ("GET", {"Accept": "text/event-stream"}, b"", 400),
        ("GET", {"Accept": "text/event-stream", "Acp-Connection-Id": "x"}, b"", 404),
        ("GET", {"Accept": "application/json", "Acp-Connection-Id": "x"}, b"", 406),
        ("DELETE", {}, b"", 400),
        ("DELETE", {"Acp-Connection-Id": "x"}, b"", 404),
        ("PUT", {}, b"", 405),
    ],
)
async def test_statuses(method: str, headers: dict[str, str], body: bytes, status: int, tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, http_client() as client:
        response = await client.request(method, served.http, headers=served.headers | headers, content=body)
        assert response.status_code == status
        assert list(response.json()) == ["error"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"


async def test_a_message_of_a_session_names_it_in_the_header(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        assert (await raw.post(prompt(2, session_id))).status_code == 400
        assert (await raw.post(prompt(2, session_id), "sess_other")).status_code == 400
        bare = {"id": 3, "method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "x"}]}}
        assert (await raw.post(bare, session_id)).status_code == 202  # filled in from the header
        assert (await raw.answer(3))["result"]["stopReason"] == "end_turn"


async def test_a_second_reader_of_a_stream_is_refused_and_one_that_comes_back_takes_over(tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        assert await raw.open() == 409
        assert await raw.open(session_id) == 409
        first = raw._tasks[session_id]
        assert await raw.open(session_id, after="0") == 200
        async with asyncio.timeout(30):
            await asyncio.gather(first, return_exceptions=True)  # it was ended


async def test_an_unknown_session_has_no_stream(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        assert await raw.open("sess_0123") == 404


async def test_delete_ends_the_connection_and_its_work(tmp_path: Path) -> None:
    ended = asyncio.Event()
    agent = Agent("endless")

    @agent.prompt
    async def reply(session: object, prompt: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with gateway(agent, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: served.hub.sessions[session_id].is_running)
        gone = await raw.client.delete(served.http, headers=served.headers | {"Acp-Connection-Id": raw.connection})
        assert gone.status_code == 202
        async with asyncio.timeout(30):
            await ended.wait()
        assert (await raw.post(prompt(2, session_id), session_id)).status_code == 404
        await until(lambda: not served.hub.agents)


@both_versions
async def test_a_client_that_opens_no_session_stream_hears_everything_on_its_one_stream(
    version: int, tmp_path: Path
) -> None:
    async with gateway(counting(5), tmp_path) as served, raw_http(served, version) as raw:
        session_id = await raw.session(stream=False)
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        await until(lambda: len(texts(raw.heard)) == 5)
        assert list(raw.by_stream) == [""]


async def test_a_message_posted_twice_under_one_number_is_heard_once(tmp_path: Path) -> None:
    async with gateway(counting(2), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        for _ in range(2):
            posted = await raw.post(prompt(2, session_id), session_id, Acp_Message_Number="3")
            assert posted.status_code == 202
        await raw.answer(2)
        await raw.post(prompt(4, session_id), session_id, Acp_Message_Number="4")
        await raw.answer(4)
        assert len(texts(raw.heard)) == 4
        assert [m for m in raw.heard if "error" in m] == []


async def test_http_2(tmp_path: Path) -> None:
    """HTTP/2 without TLS, with an independent client."""
    curl = need("curl")
    async with gateway(counting(1), tmp_path) as served:
        command = [curl, "-s", "-i", "--http2-prior-knowledge", "-X", "POST", served.http]
        command += ["-H", f"Authorization: Bearer {served.token}", "-H", "Content-Type: application/json", "-d"]
        command.append('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}')
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=20)
        assert done.stdout.startswith("HTTP/2 200")
        assert "acp-connection-id: " in done.stdout


async def test_health_and_readiness_need_no_token_and_metrics_do(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, http_client() as client:
        root = served.http.removesuffix("/acp")
        assert (await client.get(f"{root}/health")).json() == {"status": "ok"}
        assert (await client.get(f"{root}/ready")).json() == {"status": "ready"}
        assert (await client.get(f"{root}/metrics")).status_code == 401
        only_reads = {"Authorization": f"Bearer {served.token_of('reader', ('read',))}"}
        assert (await client.get(f"{root}/metrics", headers=only_reads)).status_code == 403
        metrics = await client.get(f"{root}/metrics", headers=served.headers)
        assert "dragoman_connections 0.0" in metrics.text.splitlines()


async def test_a_stop_ends_streams_and_is_quick(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        await raw.session()
        async with asyncio.timeout(5):
            await served.server.stop(0.1)
            await asyncio.gather(*raw._tasks.values(), return_exceptions=True)


async def test_a_cwd_that_is_not_there_is_an_error_on_the_stream(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served, raw_http(served) as raw:
        params = {"cwd": os.path.join(str(tmp_path), "nowhere"), "mcpServers": []}
        await raw.post({"id": 9, "method": "session/new", "params": params})
        assert (await raw.answer(9))["error"]["code"] == -32602


async def test_streams_of_sessions_that_never_were_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(session_streams, "STREAMS", 3)
    async with gateway(counting(2), tmp_path) as served, raw_http(served) as raw:
        assert (await raw.post(prompt(2, "x" * 300), "x" * 300)).status_code == 400
        for id in range(10, 20):
            name = f"sess_{id}"
            assert (await raw.post(prompt(id, name), name)).status_code == 202
            assert (await raw.answer(id))["error"]["code"] == -32002
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        assert texts(raw.heard) == ["0 ", "1 "]
        assert len(served.hub.connections[raw.connection].connection.streams._by_session) <= 3


async def test_an_agent_that_never_answers_and_a_bug_of_ours_are_told_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = counting(1)

    async def mute(transport: Transport) -> None:
        peer = RawPeer(transport)
        await until(lambda: peer.lost, "the end of its connection")

    agent.serve = mute  # type: ignore[assignment, method-assign]
    monkeypatch.setattr("dragoman.limits.START_SECONDS", 0.2)
    async with gateway(agent, tmp_path) as served, raw_http(served, greet=False) as raw:
        answer = await raw.post(hello(1))
        assert answer.status_code == 200
        assert answer.json()["error"] == {"code": -32603, "message": "The agent did not answer in time"}
        assert "acp-connection-id" not in answer.headers
        assert not served.hub.connections
        monkeypatch.setattr(served.hub.connections, "open", lambda *_: 1 / 0)
        answer = await raw.post(hello(1))
        assert (answer.status_code, answer.json()) == (500, {"error": "Something went wrong here."})
        assert [type(bug) for bug in served.bugs] == [ZeroDivisionError]
        served.bugs.clear()
