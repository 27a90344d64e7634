"""What `dragoman acp` loads and what it prints: stdout carries the protocol alone, and little is imported."""

import json
from pathlib import Path

import pytest

from tests.support.editor import HELLO, Editor
from tests.support.versions import both_versions, mostly_v1

# Runs in the agent's process before it: prints at once, and goes on printing once descriptor 1 is not the protocol.
NOISE = """
import atexit, os, threading, time, warnings
print("printed before")
atexit.register(print, "printed last")
def noise():
    while os.fstat(1).st_ino != os.fstat(2).st_ino:
        time.sleep(0.001)
    while threading.main_thread().is_alive():
        print("printed")
        os.write(1, b"written\\n")
        warnings.warn("warned")
        time.sleep(0.001)
threading.Thread(target=noise).start()  # a daemon that prints while Python ends would abort it
"""


@pytest.mark.requirement("A16")
def test_stdout_carries_the_protocol_whatever_a_plugin_prints(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    env = {"PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1", "PYTHONUNBUFFERED": ""}
    with Editor(tmp_path, {"turns": [{"steps": [{"say": "x", "repeat": 50, "delay_ms": 1}]}]}, env=env) as editor:
        assert len(editor.open().prompt()) == 1 + 50 + 1  # each line was read as JSON
        code, out, errors = editor.leave()
    assert (code, out) == (0, b"")
    for text in (b"printed before", b"printed\n", b"written", b"warned", b"printed last"):
        assert text in errors


# An extension method would do, but the command offers none: the process tells at its end what it has loaded.
TELL = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""
HEAVY = {"anthropic", "google", "granian", "httpx", "httpx2", "mcp", "openai", "pydantic", "pydantic_ai", "starlette"}
HEAVY |= {"http.client", "pytest", "rich", "prompt_toolkit", "urllib.request", "websockets"}


def loaded(tmp_path: Path, version: int, *, prompt: bool) -> set[str]:
    """The modules of an agent that has answered `initialize`, and perhaps a prompt."""
    (tmp_path / "sitecustomize.py").write_text(TELL)
    with Editor(tmp_path, version=version, env={"PYTHONPATH": str(tmp_path)}) as editor:
        if prompt:
            editor.open().prompt()
        else:
            editor.result("initialize", HELLO[version])
        _, _, errors = editor.leave()
    return set(json.loads(errors))


@both_versions
def test_one_version_of_the_wire_is_loaded_and_no_heavy_library(version: int, tmp_path: Path) -> None:
    modules = loaded(tmp_path, version, prompt=True)
    assert modules & {"dragoman.wire.v1", "dragoman.wire.v2"} == {f"dragoman.wire.v{version}"}
    assert modules & HEAVY == set()
    assert "dragoman.client.connect" not in modules


@mostly_v1
def test_initialize_loads_no_other_version_no_store_and_nothing_of_the_coder(version: int, tmp_path: Path) -> None:
    """That it is answered before the loop is there, and so before the wire, is in tests/agent/test_first_request.py."""
    late = {f"dragoman.wire.v{3 - version}", "dragoman.store.sqlite", "sqlite3", "dragoman.coder.session", "tomllib"}
    assert loaded(tmp_path, version, prompt=False) & late == set()
