"""`dragoman serve` and `dragoman connect` as processes: first start, an editor through it, kill -9, a signal."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.client.connect import connect
from dragoman.errors import RequestFailed
from dragoman.gateway.token_store import TokenStore
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.events import AnyEvent, Idle
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.command import call
from tests.support.fork_server.client import fork_server
from tests.support.gateway import free_port
from tests.support.gateway_process import SLOW, forked, serving, words
from tests.support.needs import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
both_transports = pytest.mark.parametrize("scheme", ["http", pytest.param("ws", marks=pytest.mark.slow)])
# `dragoman` with less patience for a server that is not there.
IMPATIENT = """
import sys
from dragoman.cli.main import main
from dragoman.transports import http
http.FIRST_SECONDS = 0.2
sys.exit(main())
"""


async def test_the_first_start_makes_a_token_and_shows_it_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with serving(home, free_port(), SLOW) as server:
        token = server.token
        file = home / "gateway" / "tokens.json"
        assert file.stat().st_mode & 0o777 == 0o600
        assert token not in file.read_text()
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await server.process.wait() == 0
    async with serving(home, free_port(), SLOW) as server:
        assert not [line for line in server.lines if "token" in line]


async def test_a_server_listens_on_a_name_of_this_machine(tmp_path: Path) -> None:
    port = free_port()
    async with serving(tmp_path / "home", port, SLOW, "--host", "localhost") as server:
        assert any(f"listening on http://localhost:{port}/acp" in line for line in server.lines)
        async with connect(transport_for(f"http://localhost:{port}", server.token)) as client:
            await client.new_session(tmp_path)


def test_a_name_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    TokenStore(home / "gateway" / "tokens.json").make("any")
    done = call("serve", "--host", "nowhere.invalid", "--model", "offline", DRAGOMAN_HOME=str(home))
    assert (done.code, done.out) == (2, "")
    assert "cannot listen on nowhere.invalid: there is no such address" in done.error


async def test_a_start_after_every_token_was_revoked_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    assert main(["serve", "--new-token", "phone", "--scopes", "read"]) == 0
    assert main(["serve", "--revoke-token", "phone"]) == 0
    async with serving(home, free_port(), SLOW) as server:
        assert not [line for line in server.lines if "shown this once" in line]
        assert [line for line in server.lines if "every token was revoked; make one with" in line]
    assert (home / "gateway" / "tokens.json").read_text() == '{\n  "tokens": []\n}\n'


@both_transports
async def test_an_editor_works_through_connect_and_outlives_a_killed_server(scheme: str, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    command = [*fork_server().dragoman(), "connect", f"{scheme}://127.0.0.1:{port}"]
    told: list[AnyEvent] = []
    seen: list[AnyEvent] = []
    async with serving(home, port, SLOW) as server:
        environment = {"DRAGOMAN_TOKEN": server.token, "DRAGOMAN_HOME": str(tmp_path / "editor")}
        client = connect(command, env=environment, on_event=lambda _, event: told.append(event))
        await client.__aenter__()
        conversation = await client.new_session(tmp_path)
        turn = conversation.prompt("go")
        async for event in turn:
            seen.append(event)
            if words(seen).count("word") >= 5:
                server.process.kill()  # -9, in mid-turn
                await server.process.wait()
                break
    async with serving(home, port, {"turns": [{"steps": [{"say": "again"}]}]}):
        rest: list[AnyEvent] = []
        try:
            async for event in turn:
                rest.append(event)
        except RequestFailed:
            pass  # in version 1 the lost turn is an error
        assert not [event for event in rest if isinstance(event, Idle) and event.stop_reason == "end_turn"]
        after = [event async for event in conversation.prompt("and now?")]
        assert words(after) == "again"
        told.clear()
        await client.load_session(conversation.id, tmp_path)
        story = words(told)
        assert story.startswith("word " * 5)  # everything that was seen
        assert story.endswith("again")
        await client.close()


async def test_a_server_of_another_agent_says_that_nothing_confines_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    assert main(["agents", "add", "example", "--", sys.executable, str(ROOT / "examples" / "agent.py")]) == 0
    async with serving(home, free_port(), {}, "--agent", "example") as server:
        line = (await server.process.stderr.readline()).decode()
    assert line.startswith("dragoman: example is confined by nothing of ours: every token that may prompt is a shell")


async def test_an_agent_of_the_fleet_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, port = tmp_path / "home", free_port()
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    assert main(["agents", "add", "example", "--", sys.executable, str(ROOT / "examples" / "agent.py")]) == 0

    async def allow(request: RequestPermission) -> PermissionOption:
        return request.options[0]

    async with (
        serving(home, port, SLOW, "--agent", "example") as server,
        connect(transport_for(f"ws://127.0.0.1:{port}", server.token), permission=allow) as client,
    ):
        conversation = await client.new_session(tmp_path)
        events = [event async for event in conversation.prompt("hello there")]
        assert words(events) == "You said: hello there"


def test_connect_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_file = tmp_path / "token"
    open_file.write_text("x")
    open_file.chmod(0o644)
    assert main(["connect", "ftp://x"]) == 2
    assert capsys.readouterr().err == (
        "dragoman: 'ftp://x' is no address of an agent; it begins with https://, http://, wss:// or ws://\n"
    )
    assert main(["connect", "http://127.0.0.1:1", "--token-file", str(open_file)]) == 2
    assert "chmod 600" in capsys.readouterr().err


async def refusal(url: str, token: str) -> tuple[int, str, str]:
    """How `dragoman connect` ends: its exit code, what it answers to `initialize`, and what it says on stderr."""
    hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    async with forked("connect", url, source=IMPATIENT, said=hello, DRAGOMAN_TOKEN=token) as process:
        async with asyncio.timeout(50):  # its stdin stays open: it ends by itself
            answer, said = await asyncio.gather(process.stdout.read(), process.stderr.read())
            code = await process.wait()
    return code, json.loads(answer)["error"]["message"], said.decode()


async def test_an_editor_is_told_why_there_is_no_connection(tmp_path: Path) -> None:
    """The answer to `initialize` is what an editor shows; stderr it may throw away."""
    nobody = f"http://127.0.0.1:{free_port()}"
    why = f"{nobody} cannot be reached: connection refused; is `dragoman serve` running there?"
    code, answer, said = await refusal(nobody, "")
    assert (code, answer, said.splitlines()[-1]) == (1, why, f"dragoman: {why}")
    async with serving(tmp_path / "home", free_port(), SLOW) as server:
        for scheme, token, why in (
            ("ws", "", "wants a token, and none was given"),
            ("http", "wrong", "does not know this token"),
        ):
            place = f"{scheme}://127.0.0.1:{server.port}"
            code, answer, said = await refusal(place, token)
            assert answer.startswith(f"{place} {why}; give ")
            assert (code, said) == (1, f"dragoman: {answer}\n")
