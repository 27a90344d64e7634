"""Leave while a large package is imported or a name is looked up: neither can be interrupted, no end waits for it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.editor import HELLO, PATIENCE_SECONDS, Editor
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.waiting import wait_until

# Says that it was reached, and never returns.
STUCK = """
import socket, sys, threading
def stuck(*_, **__):
    open({mark!r}, "w").close()
    threading.Event().wait()
"""
IMPORT = """
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return stuck() if name == "dragoman.coder.models.provider_connection" else None
sys.modules.pop("dragoman.coder.models.provider_connection", None)
sys.meta_path.insert(0, Finder)
"""
LOOKUP = "socket.getaddrinfo = stuck\n"
OPENAI = {
    "OPENAI_API_KEY": "sk-test",
    "OPENAI_BASE_URL": "http://provider.test/v1",
    "DRAGOMAN_LIST_MODELS": "true",
}


def stuck_at(mark: Path, what: str) -> str:
    return STUCK.format(mark=str(mark)) + what


@pytest.mark.parametrize("what", [IMPORT, LOOKUP], ids=["import", "lookup"])
def test_an_editor_can_leave_and_nothing_is_complained_of(tmp_path: Path, what: str) -> None:
    mark = tmp_path / "reached"
    options = ("--model", "openai/gpt-5")
    with Editor(tmp_path, None, *options, env=OPENAI, first=stuck_at(mark, what)) as editor:
        editor.result("initialize", HELLO[1])
        editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        wait_until(mark.exists)
        assert editor.leave() == (0, b"", b"")


def test_ctrl_c_ends_a_run_that_looks_up_its_server(tmp_path: Path) -> None:
    mark = tmp_path / "reached"
    env = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")}
    words = ("run", "hi", "--agent", "https://agents.test/acp")
    program = f"{stuck_at(mark, LOOKUP)}\n{MAIN}"
    process = fork_server().child(program, *words, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL)
    try:
        wait_until(mark.exists)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, out, error) == (130, b"", b"")
    finally:
        process.kill()
        process.wait()
