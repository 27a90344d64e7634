"""What a language server can see and reach: tried by a program that is started as one."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from dragoman.coder.language_servers.known import FoundServer, ServerSpec
from dragoman.coder.language_servers.launch import ServerPlace, prepare
from tests.support.whole_agent import ENVIRONMENT

LOOK = """
import os, socket, sys
work, home, port = sys.argv[1:]
def tried(action):
    try:
        return action() or "done"
    except OSError:
        return "refused"
print("write", tried(lambda: open(work + "/new.txt", "w").close()))
print("source", tried(lambda: open(work + "/a.py").read()))
print("env", tried(lambda: open(work + "/.env").read()))
print("ours", tried(lambda: open(home + "/dragoman/credentials.toml").read()))
print("mail", tried(lambda: open(home + "/mail.txt").read()))
print("temporary", tried(lambda: open(os.environ["TMPDIR"] + "/x", "w").close()))
print("connect", tried(lambda: socket.create_connection(("127.0.0.1", int(port)), 2).close()))
print("key", os.environ.get("OPENAI_API_KEY", "none"))
print("path", work in os.environ["PATH"])
"""


@pytest.mark.requirement("LSP3")
async def test_it_reads_the_workspace_and_reaches_nothing_else(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    work, home, data = base / "work", base / "home", base / "home" / "dragoman"
    for folder in (work, data):
        folder.mkdir(parents=True)
    (work / "a.py").write_text("source")
    (work / ".env").write_text("canary")
    (data / "credentials.toml").write_text("canary")
    (home / "mail.txt").write_text("canary")
    script = home / "bin-of-servers" / "look.py"
    script.parent.mkdir()
    script.write_text(LOOK)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        command = (sys.executable, str(script), str(work), str(home), port)
        environment = {**ENVIRONMENT, "HOME": str(home), "PATH": f"{work}/bin:{ENVIRONMENT['PATH']}"}
        place = ServerPlace([str(work)], environment, home=str(data))
        start = await asyncio.to_thread(prepare, FoundServer(ServerSpec("look", command, ("*",)), command[0]), place)
        assert start.is_confined
        process = await asyncio.create_subprocess_exec(
            *start.argv, cwd=work, env=start.environment, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        await asyncio.to_thread(start.close)
    assert dict(line.split(" ", 1) for line in printed.decode().splitlines()) == {
        "write": "refused",
        "source": "source",
        "env": "refused",
        "ours": "refused",
        "mail": "refused",
        "temporary": "done",
        "connect": "refused",
        "key": "none",
        "path": "False",
    }
