"""`dragoman serve` and `dragoman connect` as processes: first start, an editor through it, kill -9, a signal."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from dragoman.client.connect import connect
from dragoman.errors import RequestFailed
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.events import AnyEvent, Idle
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.needs import ROOT, need

from .serving import free_port
from .started import DRAGOMAN, SLOW, serving, words

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
both_transports = pytest.mark.parametrize("scheme", ["http", "ws"])


async def test_the_first_start_makes_a_token_and_shows_it_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with serving(home, free_port(), SLOW) as server:
        token = server.token
        file = home / "gateway" / "tokens.json"
        assert file.stat().st_mode & 0o777 == 0o600
        assert token not in file.read_text()
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await server.process.wait() == 0
    async with serving(home, free_port(), SLOW) as server:
        assert not [line for line in server.lines if "token" in line]


async def test_a_start_after_every_token_was_revoked_makes_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    for given in (["--new-token", "phone", "--scopes", "read"], ["--revoke-token", "phone"]):
        command = await asyncio.create_subprocess_exec(*DRAGOMAN, "serve", *given, env=environment, stdout=PIPE)
        await command.communicate()
        assert command.returncode == 0
    async with serving(home, free_port(), SLOW) as server:
        assert not [line for line in server.lines if "shown this once" in line]
        assert [line for line in server.lines if "every token was revoked; make one with" in line]
    assert (home / "gateway" / "tokens.json").read_text() == '{\n  "tokens": []\n}\n'


@both_transports
async def test_an_editor_works_through_connect_and_outlives_a_killed_server(scheme: str, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    command = [*DRAGOMAN, "connect", f"{scheme}://127.0.0.1:{port}"]
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
            if words(seen).count("word") == 5:
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


@both_transports
async def test_an_agent_of_the_fleet_is_served(scheme: str, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    added = await asyncio.create_subprocess_exec(
        *[*DRAGOMAN, "agents", "add", "example", "--", sys.executable, str(ROOT / "examples" / "agent.py")],
        env={**os.environ, "DRAGOMAN_HOME": str(home)},
    )
    assert await added.wait() == 0

    async def allow(request: RequestPermission) -> PermissionOption:
        return request.options[0]

    async with serving(home, port, SLOW, "--agent", "example") as server:
        transport = transport_for(f"{scheme}://127.0.0.1:{port}", server.token)
        async with connect(transport, permission=allow) as client:
            conversation = await client.new_session(tmp_path)
            events = [event async for event in conversation.prompt("hello there")]
            assert words(events) == "You said: hello there"


async def test_tls_with_http_2(tmp_path: Path) -> None:
    openssl, curl = need("openssl"), need("curl")
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    made = await asyncio.create_subprocess_exec(*command, "-out", certificate, "-keyout", key, stderr=PIPE)
    await made.communicate()
    assert made.returncode == 0
    port = free_port()
    async with serving(tmp_path / "home", port, SLOW, "--certificate", certificate, "--key", key):
        asked = [curl, "-s", "-i", "-k", "--http2", f"https://localhost:{port}/health"]
        answer = await asyncio.create_subprocess_exec(*asked, stdout=PIPE)
        output, _ = await answer.communicate()
        assert output.startswith(b"HTTP/2 200")


async def test_connect_says_what_is_wrong(tmp_path: Path) -> None:
    async def complaint(*arguments: str, **environment: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *DRAGOMAN, "connect", *arguments, env={**os.environ, **environment}, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
        async with asyncio.timeout(30):
            _, errors = await process.communicate(hello)
        return process.returncode, errors.decode()

    open_file = tmp_path / "token"
    open_file.write_text("x")
    open_file.chmod(0o644)
    assert await complaint("ftp://x") == (
        2,
        "dragoman: 'ftp://x' is no address of an agent; it begins with https://, http://, wss:// or ws://\n",
    )
    code, errors = await complaint("http://127.0.0.1:1", "--token-file", str(open_file))
    assert (code, "chmod 600" in errors) == (2, True)
    async with serving(tmp_path / "home", free_port(), SLOW) as server:
        code, errors = await complaint(f"http://127.0.0.1:{server.port}", DRAGOMAN_TOKEN="wrong")
        assert code == 1
        assert "does not know this token" in errors


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_an_editor_is_told_why_there_is_no_connection(token: str, tmp_path: Path) -> None:
    """The answer to `initialize` is what an editor shows; stderr it may throw away."""

    async def answer(url: str) -> str:
        with pytest.raises(RequestFailed) as failed:
            async with connect([*DRAGOMAN, "connect", url], env={"DRAGOMAN_TOKEN": token}):
                pass
        return failed.value.message

    nobody = f"http://127.0.0.1:{free_port()}"
    assert await answer(nobody) == (
        f"{nobody} cannot be reached: connection refused; is `dragoman serve` running there?"
    )
    async with serving(tmp_path / "home", free_port(), SLOW) as server:
        place = f"ws://127.0.0.1:{server.port}"
        why = "does not know this token" if token else "wants a token, and none was given"
        assert (await answer(place)).startswith(f"{place} {why}; give ")
