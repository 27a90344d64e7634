"""MCP servers at our own terminal: resources, prompts and questions in `chat` and `run`. And the bell after a turn."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.chat_pane import ASKED, PROMPT, Step, chat, ready, scripted
from tests.support.mcp_servers import RAW_SERVER
from tests.support.run_command import run


@pytest.fixture(autouse=True)
def servers(tmp_path: Path) -> None:
    """The user's own server `docs`, in the settings."""
    command = {"command": sys.executable, "args": [*RAW_SERVER, "library"]}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        f"notify = 'bell'\nnotify_after = 0\n[mcp.docs]\ncommand = {json.dumps(command['command'])}\n"
        f"args = {json.dumps(command['args'])}\n"
    )


def test_in_a_chat_a_resource_is_completed_asked_about_and_read(tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, [{"say": "Summed up."}])) as pane:
        ready(pane)
        pane.say("/mcp")
        pane.wait_for(r"@docs:docs://guide", PROMPT)
        pane.type("sum up @docs:docs://g")
        pane.press("Tab")
        pane.wait_for(r"sum up @docs:docs://guide")
        pane.press("Enter")
        shown = pane.wait_for(ASKED)
        assert "docs: docs://guide" in shown
        assert "is no file here" not in shown
        pane.say("y")
        pane.wait_for(r"Summed up\.", PROMPT)
        assert "\x07" in pane.raw()  # the user is called back
        pane.press("C-d")
        assert pane.left() == 0


def test_in_a_chat_a_prompt_of_a_server_is_a_command_and_its_question_is_asked(tmp_path: Path) -> None:
    form: list[Step] = [{"call": "mcp__docs__form", "input": {}}, {"say": "Booked."}]
    with chat(tmp_path, *scripted(tmp_path, [{"say": "Reviewed."}], form)) as pane:
        ready(pane)
        pane.say("/mcp")
        pane.wait_for("/mcp__docs__review", PROMPT)
        pane.say("/mcp__docs__review a.py")
        pane.wait_for(ASKED, "docs: review a.py")
        pane.say("y")
        pane.wait_for(r"Reviewed\.", PROMPT)
        pane.say("book")
        pane.wait_for(ASKED, "docs: form")
        pane.say("y")
        pane.wait_for("The MCP server docs asks: Where", "city:")
        pane.say("Oslo")
        pane.wait_for("Oslo", r"Booked\.", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
        assert "\x1b[2J" not in pane.raw().rpartition("asks:")[2]


def test_a_run_uses_a_prompt_and_a_resource(tmp_path: Path) -> None:
    options = [*scripted(tmp_path, [{"say": "Done."}]), "--mode", "full-access"]
    done = run(tmp_path, *options, "--stream-json", "/mcp__docs__hello")
    titles = [event["title"] for event in done.events if event["type"] == "tool_call_update" and "title" in event]
    assert (done.code, titles[0]) == (0, "docs: hello")
    done = run(tmp_path, *options, "--stream-json", "see @docs:docs://guide")
    assert "The text of docs://guide." in done.out
    assert "is no file here" not in done.error


def test_a_run_that_may_not_use_the_server_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, *scripted(tmp_path, [{"say": "Done."}]), "/mcp__docs__hello")
    assert done.out.startswith("Permission denied.")
    assert done.code == 5


def test_in_a_chat_a_prompt_can_be_typed_before_its_server_is_there(tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, [{"say": "Reviewed."}])) as pane:
        ready(pane)
        pane.say("/mcp__docs__review a.py")
        pane.wait_for(ASKED, "docs: review a.py")
        pane.say("n")
        pane.wait_for(r"Permission denied\.", PROMPT)
        pane.say("/mcp__docs__none")
        pane.wait_for("There is no prompt /mcp__docs__none", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
