"""`dragoman connect` as a process: an editor through it, a server that is killed, and why there is no connection."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.client.connect import connect
from dragoman.errors import RequestFailed
from dragoman.vocabulary.events import AnyEvent, Idle
from tests.support.fork_server.client import fork_server
from tests.support.gateway import free_port
from tests.support.gateway_process import SLOW, forked, serving, words

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
    nowhere = f"http://127.0.0.1:{free_port()}"
    why = f"{nowhere} cannot be reached: connection refused; is `dragoman serve` running there?"
    code, answer, said = await refusal(nowhere, "")
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
