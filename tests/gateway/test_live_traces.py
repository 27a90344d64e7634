"""An operator follows a session of a gateway: what passes, as the lines of a trace, while it passes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.agent.agent import Agent
from dragoman.cli.main import main
from dragoman.errors import RequestFailed
from dragoman.gateway import live_traces
from dragoman.gateway.token_types import TokenLimits
from dragoman.trace.records import TO_AGENT, TO_CLIENT
from dragoman.vocabulary.requests import SetTitle
from tests.support.gateway import Served, gateway, raw_http
from tests.support.gateway_process import forked
from tests.support.messages import prompt
from tests.support.versions import both_versions
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def talking() -> Agent:
    """An agent that calls a tool, asks once, and says a secret."""
    agent = Agent("talking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        await session.say("the key is ghp_" + "a1B2" * 9)
        async with session.tool("look around", kind="read"):
            pass
        await session.ask_permission("May I?")

    return agent


def trace_url(served: Served, session_id: str) -> str:
    return f"{served.http.removesuffix('/acp')}/trace/{session_id}"


@both_versions
async def test_an_operator_sees_both_directions_without_secrets(version: int, tmp_path: Path) -> None:
    async with gateway(talking(), tmp_path) as served, raw_http(served, version) as raw, httpx2.AsyncClient() as client:
        session_id = await raw.session()
        lines: list[dict[str, Any]] = []

        async def follow() -> None:
            async with client.stream("GET", trace_url(served, session_id), headers=served.headers) as response:
                assert response.status_code == 200
                async for line in response.aiter_lines():
                    lines.extend([json.loads(line)] if line.strip() else [])

        following = asyncio.ensure_future(follow())
        await until(lambda: served.hub.monitor.live.followers == 1)
        await raw.post(prompt(7, session_id), session_id)
        await until(lambda: any(m.get("method") == "session/request_permission" for m in raw.heard))
        question = next(m for m in raw.heard if m.get("method") == "session/request_permission")
        outcome = {"outcome": {"outcome": "cancelled"}}
        await raw.post({"id": question["id"], "result": outcome}, session_id)
        await until(lambda: any('"idle"' in line.get("frame", "") for line in lines))
        await raw.post({"id": 8, "method": "session/close", "params": {"sessionId": session_id}}, session_id)
        await asyncio.wait_for(following, 20)
        assert served.hub.monitor.live.followers == 0
    assert lines[0]["format"] == "acp-inspector-trace"
    frames = [(line["direction"], json.loads(line["frame"])) for line in lines if line["type"] == "frame"]
    told = [(way.partition(" ")[0], message.get("method", "answer")) for way, message in frames]
    assert told[0] == ("client", "session/prompt")
    assert ("agent", "session/request_permission") in told
    assert ("client", "answer") in told  # to the question
    assert "look around" in json.dumps(frames)
    assert "ghp_" not in json.dumps(frames)
    assert lines[-1]["event"] == "the session has ended here"


@pytest.mark.requirement("TR12")
async def test_only_a_token_with_admin_and_without_limits_follows(tmp_path: Path) -> None:
    async with gateway(talking(), tmp_path) as served, raw_http(served) as raw, httpx2.AsyncClient() as client:
        session_id = await raw.session()
        url = trace_url(served, session_id)
        limited = served.tokens.make("limited", ("read", "prompt", "admin"), limits=TokenLimits(max_mode="ask"))
        for token in (served.token_of("worker", ("read", "prompt")), limited):
            refused = await client.get(url, headers={"Authorization": f"Bearer {token}"})
            assert (refused.status_code, session_id in refused.text) == (403, False)
        assert (await client.get(url)).status_code == 401
        assert (await client.get(trace_url(served, "nothing"), headers=served.headers)).status_code == 404


@pytest.mark.requirement("TR12")
async def test_a_follower_that_does_not_read_holds_up_nothing_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_traces, "WAITING_BYTES", 1000)
    follower = live_traces.TraceFollowing()
    for _ in range(10):
        follower.put(b"x" * 300 + b"\n")
    read = await follower.read()
    assert read is not None
    assert read.count(b"x" * 300) == 3
    follower.put(b"y\n")
    assert b"7 messages were dropped" in (await follower.read() or b"")


async def test_a_person_follows_by_command_and_it_ends_with_the_session(tmp_path: Path) -> None:
    async with gateway(talking(), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        home = str(tmp_path / "h")
        command = ("trace", "follow", served.ws, session_id)
        async with forked(*command, DRAGOMAN_HOME=home, DRAGOMAN_TOKEN=served.token) as process:
            await until(lambda: served.hub.monitor.live.followers == 1)
            await raw.post(prompt(7, session_id), session_id)
            shown = [(await process.stdout.readline()).decode() for _ in range(2)]
            assert "-> session/prompt #1" in shown[0]
            await raw.post({"id": 8, "method": "session/close", "params": {"sessionId": session_id}}, session_id)
            assert await process.wait() == 0


def test_a_url_wants_a_session_and_a_file_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "follow", "https://example.org"]) == 2
    assert main(["trace", "follow", "file.jsonl", "s1"]) == 2
    assert "which? A FILE alone" in capsys.readouterr().err


async def test_a_follower_that_missed_messages_before_the_end_is_told_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_traces, "WAITING_BYTES", 1000)
    follower = live_traces.TraceFollowing()
    for _ in range(200):
        follower.put(b"x" * 9 + b"\n")
    follower.end()
    read = await follower.read() or b""
    assert b"%d messages were dropped" % (200 - read.count(b"x" * 9)) in read
    assert json.loads(read.splitlines()[-1])["event"] == "the session has ended here"
    assert await follower.read() is None


async def test_a_request_that_is_answered_with_an_error_has_its_answer_in_the_trace() -> None:
    live = live_traces.LiveTraces()
    with live.follow("s") as follower:
        with pytest.raises(RequestFailed), live.exchange("s", TO_AGENT, SetTitle("s", "new")):
            raise RequestFailed(-32602, "No such title")
        lines = [json.loads(line) for line in (await follower.read() or b"").splitlines()]
    asked, answered = [json.loads(line["frame"]) for line in lines if line["type"] == "frame"]
    assert answered == {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32602, "message": "No such title"}}
    assert lines[-1]["direction"] == TO_CLIENT
