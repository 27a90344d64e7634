"""`dragoman serve` as a process: first start, tokens, names, agents of the registry, a signal."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.client.connect import connect
from dragoman.gateway.token_store import TokenStore
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.command import call
from tests.support.gateway import free_port
from tests.support.gateway_process import SLOW, serving, words
from tests.support.needs import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


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


async def test_a_server_without_a_model_says_how_to_get_one(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", free_port(), {}, "--model", "demo") as server:
        lines = [(await server.process.stderr.readline()).decode()]
        # Its log is written beside it: what stands first is not said.
        while lines[-1].startswith("{"):
            lines.append((await server.process.stderr.readline()).decode())
    assert lines[-1].startswith("dragoman: This is the demo, not a language model: ")
    assert "`dragoman login`" in lines[-1]


def test_a_name_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    TokenStore(home / "gateway" / "tokens.json").make("any")
    done = call("serve", "--host", "nowhere.invalid", "--model", "demo", DRAGOMAN_HOME=str(home))
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
