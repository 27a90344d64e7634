"""Hooks behind `dragoman serve` are those of the server's user: they hold its clients back, and answer for none."""

import json
from pathlib import Path

import pytest

from dragoman.gateway.token_types import SCOPES
from tests.coder.test_hooks import deciding, group
from tests.support.principals import WORK, Household, bash, calling

from .test_principals import ends, workspace

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.mark.requirement("HK3")
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_a_client_is_denied_by_a_hook_and_asked_in_spite_of_its_allow(tmp_path: Path, decision: str) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    house.home.mkdir(exist_ok=True)
    (house.home / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [group("Bash", deciding(decision))]}}))
    owner = house.token("owner", SCOPES, "ada")
    async with house.served(calling(bash("touch made"))), house.client(owner) as client:
        session = await client.new_session(folder)
        status = ends([event async for event in session.prompt("go")])
    # The client says yes to what it is asked.
    expected = (["completed"], 1, True) if decision == "allow" else (["failed"], 0, False)
    assert (status, len(house.questions), (folder / "made").exists()) == expected


@pytest.mark.requirement("HK7")
async def test_a_prompt_of_a_client_is_held_back_too(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    house.home.mkdir(exist_ok=True)
    hooks = {"UserPromptSubmit": [group("", "echo 'Not now.' >&2; exit 2")]}
    (house.home / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    phone = house.token("phone", WORK, "ada")
    async with house.served(calling(bash("touch made"))), house.client(phone) as client:
        session = await client.new_session(folder)
        turn = session.prompt("go")
        events = [event async for event in turn]
    assert (turn.stop_reason, (folder / "made").exists()) == ("refusal", False)
    assert "A hook of the user has held this prompt back: Not now." in "".join(map(str, events))
