"""`dragoman mcp`: what a user sees of servers and logins."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.command import Called, call
from tests.support.mcp_servers import RAW_SERVER
from tests.support.oauth_server import LoginServer, login_server


def configured(folder: Path, text: str) -> None:
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    (folder / "home" / "config.toml").write_text(text)


def raw_table(name: str, behaviour: str) -> str:
    arguments = json.dumps([*RAW_SERVER, behaviour])
    return f"[mcp.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"


def command(folder: Path, *words: str) -> Called:
    return call("mcp", *words, cwd=folder, DRAGOMAN_HOME=str(folder / "home"))


def test_without_servers_the_list_is_empty_and_says_so(tmp_path: Path) -> None:
    shown = command(tmp_path, "list")
    assert shown == Called(0, "", "There are no MCP servers; `dragoman mcp add NAME -- CMD` adds one.\n")
    assert command(tmp_path, "list", "--json").out == "[]\n"


def test_servers_are_listed_without_secrets(tmp_path: Path) -> None:
    configured(
        tmp_path,
        '[mcp.files]\ncommand = "serve-files"\nenv = { API_KEY = "canary-0b1c" }\n'
        '[mcp.tickets]\nurl = "https://tickets.example/mcp?key=canary-0b1c"\n',
    )
    shown = command(tmp_path, "list")
    assert shown.out == ("files    API_KEY=[hidden] serve-files\ntickets  https://tickets.example/mcp?…  (no login)\n")
    listed = json.loads(command(tmp_path, "list", "--json").out)
    assert [(one["name"], one["type"], one["login"]) for one in listed] == [
        ("files", "stdio", ""),
        ("tickets", "http", "no login"),
    ]


def test_a_server_is_tried_and_shows_its_tools(tmp_path: Path) -> None:
    configured(tmp_path, raw_table("good", "good"))
    assert command(tmp_path, "test", "good") == Called(0, "good: connected\ntools (1):\n  mcp__good__act\n", "")
    tried = json.loads(command(tmp_path, "test", "good", "--json").out)
    assert (tried["state"], tried["tools"]) == ("connected", ["mcp__good__act"])


def test_a_server_that_fails_shows_its_own_words(tmp_path: Path) -> None:
    program = "import sys; print('first', file=sys.stderr); sys.exit('no \\x1b[2J key')"
    arguments = json.dumps(["-c", program])
    configured(tmp_path, f"[mcp.bad]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n")
    tried = command(tmp_path, "test", "bad")
    assert tried.code == 1
    assert tried.out.startswith("bad: failed: exited with code 1; on stderr: first no ")
    assert "stderr:\n  first\n  no " in tried.out
    assert "\x1b" not in tried.out


@pytest.mark.parametrize("action", ["test", "login", "logout"])
def test_a_server_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, action: str) -> None:
    configured(tmp_path, '[mcp.files]\ncommand = "serve-files"\n')
    said = command(tmp_path, action, "ghost")
    assert said == Called(2, "", "dragoman: there is no MCP server 'ghost'; there are files\n")


def test_a_program_has_no_login(tmp_path: Path) -> None:
    configured(tmp_path, '[mcp.files]\ncommand = "serve-files"\n')
    said = command(tmp_path, "login", "files")
    assert said == Called(2, "", "dragoman: files is a program; only a server behind a URL has a login\n")


def test_without_a_login_there_is_nothing_to_end(tmp_path: Path) -> None:
    said = command(tmp_path, "logout", "https://tickets.example/mcp")
    assert said == Called(1, "", "dragoman: no login at https://tickets.example/mcp is kept here\n")


class Started:
    """The real program, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, begins: str) -> str:
        """Wait for a line of stderr."""
        assert self.process.stderr is not None
        while line := (await self.process.stderr.readline()).decode():
            if line.strip().startswith(begins):
                return line.strip()
        raise AssertionError(f"never said: {begins}")


async def start(folder: Path, *words: str) -> Started:
    environment = {**os.environ, "DRAGOMAN_HOME": str(folder / "home"), "BROWSER": "/nonexistent/browser"}
    pipe: Any = asyncio.subprocess.PIPE
    line = [sys.executable, "-m", "dragoman", "mcp", *words]
    process = await asyncio.create_subprocess_exec(
        *line, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment, cwd=folder
    )
    return Started(process)


async def logged_in(server: LoginServer, folder: Path) -> str:
    """Log in at a server by its name, with a browser; return what the program said at last."""
    started = await start(folder, "login", "tickets")
    url = await started.line("http://127.0.0.1")
    async with httpx2.AsyncClient(trust_env=False) as browser:
        assert (await browser.get(url, follow_redirects=True)).status_code == 200
    out, _ = await started.process.communicate()
    assert started.process.returncode == 0
    return out.decode()


@pytest.mark.requirement("MCP1")
async def test_a_login_and_a_logout_at_the_terminal(tmp_path: Path) -> None:
    async with login_server() as server:
        configured(tmp_path, f'[mcp.tickets]\nurl = "{server.url}"\n')
        said = await logged_in(server, tmp_path)
        assert said == "Logged in at tickets. `dragoman mcp logout tickets` ends it.\n"
        (token,) = server.issuer.tokens
        tried = await start(tmp_path, "test", "tickets")
        out, error = await tried.process.communicate()
        assert out.decode() == "tickets: connected\ntools (1):\n  mcp__tickets__add\n"
        assert token not in error.decode()
        ended = await start(tmp_path, "logout", "tickets")
        out, _ = await ended.process.communicate()
        assert out.decode() == "The login at tickets is deleted here, and its server has revoked it.\n"
        assert server.issuer.tokens == {}
        missing = await start(tmp_path, "test", "tickets")
        out, _ = await missing.process.communicate()
        assert out.decode() == (f"tickets: needs login: needs a login; run `dragoman mcp login {server.url}`\n")
        assert missing.process.returncode == 1
