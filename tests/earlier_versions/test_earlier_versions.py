"""What an earlier version wrote is read by this one: sessions, remembered answers, settings, agents and tokens.

Each folder beside this file is the home of one version (`record.py` says how it was made); `expected.json` in it is
what that version itself made of its sessions.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.earlier_versions.record import REGISTRY, dragoman, mode_of, playing, script
from tests.earlier_versions.wire import Wire

HOMES = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
assert HOMES  # without one every test here would be skipped


@pytest.fixture(params=HOMES, ids=lambda home: home.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copy = shutil.copytree(request.param, tmp_path / "home")
    for path in (copy, *copy.rglob("*")):  # git keeps no modes, and other users may not read these
        path.chmod(0o700 if path.is_dir() else 0o600)
    return copy


def expected(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "expected.json").read_text())
    return found


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["work", "killed"])
def test_a_session_is_replayed_as_its_own_version_replayed_it(home: Path, name: str, version: int) -> None:
    session = expected(home)[name]
    with Wire(home, version, "--model", "demo") as wire:
        *updates, answer = wire.load(session["id"])
    assert [*updates, {"mode": mode_of(answer)}] == session[f"v{version}"]


def test_a_session_goes_on_with_what_it_knows_and_what_was_allowed(home: Path) -> None:
    session = expected(home)["work"]["id"]
    again = script([{"call": "bash", "input": {"command": "echo one"}}, {"say": "Done."}])
    with Wire(home, 1, "--model", playing(again)) as wire:
        wire.load(session)
        wire.ask("session/set_mode", {"sessionId": session, "modeId": "ask"})
        *updates, end = wire.prompt("Go on.")
    assert end["stopReason"] == "end_turn"
    assert [update["status"] for update in updates if "status" in update][-1] == "completed"
    assert wire.asked == []  # "always" was chosen in the earlier version


def test_sessions_are_listed_and_exported(home: Path) -> None:
    listed = json.loads(dragoman(home, "sessions", "list", "--all", "--json"))
    assert {one["sessionId"] for one in listed} == {one["id"] for one in expected(home).values()}
    for one in expected(home).values():
        first = json.loads(dragoman(home, "sessions", "export", one["id"]).splitlines()[0])
        assert first == one["v2"][0]


def test_settings_are_read(home: Path) -> None:
    shown = json.loads(dragoman(home, "config", "show", "--json"))
    values = {name: setting["value"] for name, setting in shown["settings"].items()}
    assert (values["mode"], values["max_turn_requests"], values["list_models"]) == ("ask", 40, False)


def test_agents_are_read(home: Path) -> None:
    listed = json.loads(dragoman(home, "agents", "list", "--json"))
    assert set(REGISTRY["servers"]) <= {one["name"] for one in listed}


def test_tokens_are_read(home: Path) -> None:
    (token,) = json.loads(dragoman(home, "tokens", "list", "--json"))
    assert (token["name"], token["principal"], token["scopes"]) == ("ada", "ada", ["read", "prompt"])
