"""What a user sets about language servers, and is told of them; and that nothing of it is loaded before its use."""

import json
from pathlib import Path

import pytest

from dragoman.host.trust import trust
from tests.cli.test_builtin_agent import dragoman
from tests.support.editor import Editor, turns
from tests.support.machine import marked
from tests.support.waiting import wait_until


def config(home: Path, text: str) -> Path:
    home.mkdir()
    (home / "config.toml").write_text(text)
    return home


def test_a_table_that_is_wrong_is_the_users_mistake_and_named(tmp_path: Path) -> None:
    home = config(tmp_path / "home", "[language_servers.mine]\ncommand = 'my-server'\n")
    done = dragoman(home, "run", "--model", "demo", "hello")
    assert done.code == 2
    assert f"{home}/config.toml: language_servers.mine.command has to be a list of texts" in done.error
    assert "Traceback" not in done.error


def test_config_show_has_the_tables_and_the_switch(tmp_path: Path) -> None:
    home = config(tmp_path / "home", "diagnostics = false\n[language_servers.ruff]\nenabled = false\n")
    shown = json.loads(dragoman(home, "config", "show", "--json").out)
    assert shown["settings"]["diagnostics"] == {"value": False, "source": f"{home}/config.toml"}
    assert shown["language_servers"] == ["ruff"]
    assert "language_servers   ruff\n" in dragoman(home, "config", "show").out


def test_the_doctor_lists_the_servers_that_are_found_outside_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.cli.doctor import _language_servers

    home = config(tmp_path / "home", "[language_servers.ruff]\nenabled = false\n")
    inside, outside = (tmp_path / name for name in ("work", "tools"))
    for folder, name in ((inside, "gopls"), (outside, "clangd")):
        folder.mkdir()
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    monkeypatch.setenv("PATH", f"{inside}:{outside}")
    monkeypatch.chdir(inside)
    said = f"servers clangd ({outside}/clangd); used in trusted folders: dragoman trust"
    assert _language_servers() == ("language", "ok", said)
    monkeypatch.setenv("PATH", str(inside))
    assert _language_servers().text.startswith("no server found: basedpyright, pyright, typescript, gopls")
    monkeypatch.setenv("DRAGOMAN_DIAGNOSTICS", "false")
    assert _language_servers().text == "servers are turned off"


@pytest.mark.requirement("LSP3")
def test_an_editor_opens_a_session_without_loading_anything_of_it(tmp_path: Path) -> None:
    with Editor(tmp_path, None, python=("-X", "importtime")) as editor:
        editor.open()
        _, _, loaded = editor.leave()
    assert b"dragoman.coder.session" in loaded
    assert b"language_servers" not in loaded
    assert b"lsprotocol" not in loaded


@pytest.mark.requirement("LSP1")
def test_an_editor_is_sent_the_errors_with_the_edit(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("value = 1\nprint(value)\n")
    (tmp_path / "home").mkdir()
    trust(tmp_path / "home" / "trust.json", tmp_path)
    edit = {"path": "app.py", "old_string": "(value)", "new_string": "(valeu)"}
    look: dict[str, object] = {"call": "diagnostics", "input": {}}
    script = turns([{"call": "edit_file", "input": edit}, {"say": "Now I look."}, look, {"say": "Done."}])
    with Editor(tmp_path, script, "--mode", "workspace-write") as editor:
        updates = editor.open().prompt()
    ended = [one for one in updates if one.get("status") == "completed"]
    assert [problem["code"] for problem in ended[-1]["rawOutput"]["problems"]] == ["F821"]
    assert "app.py:2:7: error: Undefined name `valeu` (Ruff F821)" in json.dumps(updates)


@pytest.mark.requirement("LSP7")
def test_nothing_of_a_server_outlives_a_killed_agent(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("value = 1\n")
    (tmp_path / "home").mkdir()
    trust(tmp_path / "home" / "trust.json", tmp_path)
    script = turns([{"call": "diagnostics", "input": {"paths": ["app.py"]}}])
    mark = f"PROOF_OF_DEATH={tmp_path}"
    with Editor(tmp_path, script, env=dict([mark.split("=")])) as editor:
        editor.open().prompt()
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked(mark)]
        assert any(line.endswith(b"/ruff\0server\0") for line in lines)
        editor.process.kill()
        editor.process.wait()
        editor.left = True
        wait_until(lambda: marked(mark) == [])
