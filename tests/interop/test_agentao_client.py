"""Agentao's own client drives `dragoman acp --dialect agentao`: permissions, questions, cancels, a load."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import DRAGOMAN, turns
from tests.support.needs import ROOT, need_agentao
from tests.support.sdk_peers import Line

pytestmark = pytest.mark.interop

SECONDS = 100


def writes(name: str) -> list[dict[str, Any]]:
    return [{"call": "write_file", "input": {"path": name, "content": "hello\n"}}, {"say": f"About {name}."}]


WAITS = [{"say": "I wait."}, {"say": "Never said.", "delay_ms": 600_000}]
ASKS = [{"call": "ask_user", "input": {"question": "Which colour?"}}, {"say": "I see."}]


class Desk:
    """A folder to work in, and what Agentao's client saw there."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home, self._script = folder / "work", folder / "home", folder / "script.json"
        for each in (self.work, self.home):
            each.mkdir()

    def watched(self, script: Any, *plan: dict[str, str]) -> list[Line]:
        self._script.write_text(json.dumps(script))
        agent = [*DRAGOMAN, "acp", "--dialect", "agentao", "--model", f"script:{self._script}"]
        command = [*need_agentao("tests.interop.peers.client_agentao"), json.dumps(plan), str(self.work), *agent]
        homes = {"HOME": str(self.home), "DRAGOMAN_HOME": str(self.home)}
        environment = {**os.environ, **homes, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.requirement("8.4.12")
def test_its_user_says_yes_and_no(desk: Desk) -> None:
    answers = ("approve", "reject", "reject always", "approve always")
    names = [f"{answer.replace(' ', '-')}.txt" for answer in answers]
    plan = [{"prompt": "write it", "permission": answer} for answer in answers]
    lines = desk.watched(turns(*map(writes, names)), *plan)
    assert lines[0] == ["initialize", {"protocolVersion": 1, "name": "dragoman"}]
    assert ends(lines) == ["end_turn"] * 4
    asked = [value for kind, value in lines if kind == "permission"]
    assert [[option["optionId"] for option in one["options"]] for one in asked] == [
        ["allow", "allow_always", "reject"]
    ] * 4
    assert {name for name in names if (desk.work / name).exists()} == {"approve.txt", "approve-always.txt"}
    assert said(lines) == [f"About {name}." for name in names]
    assert last_statuses(lines) == ["completed", "failed", "failed", "completed"]
    # What is asked about is the call that was shown.
    shown = [value["toolCallId"] for kind, value in lines if kind == "update" and value["sessionUpdate"] == "tool_call"]
    assert [one["toolCall"]["toolCallId"] for one in asked] == shown


def test_there_is_no_user_to_say_yes_or_no(desk: Desk) -> None:
    plan = [{"prompt": "write it", "policy": policy} for policy in ("reject_all", "accept_all")]
    lines = desk.watched(turns(writes("rejected.txt"), writes("accepted.txt")), *plan)
    assert [kind for kind, _ in lines if kind in ("end", "interaction required")] == ["interaction required", "end"]
    assert not (desk.work / "rejected.txt").exists()
    assert (desk.work / "accepted.txt").read_text() == "hello\n"
    assert last_statuses(lines) == ["failed", "completed"]


@pytest.mark.requirement("8.4.21", "agentao-6")
def test_its_user_answers_a_question(desk: Desk) -> None:
    script = turns(ASKS, ASKS)
    lines = desk.watched(script, {"prompt": "ask", "reply": "blue"}, {"prompt": "ask", "policy": "reject_all"})
    (asked,) = [value for kind, value in lines if kind == "input"]
    assert asked["question"] == "Which colour?"
    assert said(lines) == ["I see.", "I see."]
    results = [value for kind, value in lines if kind == "update" and value["sessionUpdate"] == "tool_call_update"]
    assert "blue" in json.dumps([value for value in results if value["status"] == "completed"])
    assert [kind for kind, _ in lines if kind in ("end", "interaction required")] == ["end", "interaction required"]


@pytest.mark.requirement("8.4.14", "agentao-5")
def test_a_turn_is_cancelled_in_both_ways_and_another_process_loads_the_session(desk: Desk) -> None:
    cancelled = desk.watched(
        turns(WAITS, WAITS, writes("made.txt")),
        {"prompt": "one", "cancel_at": "I wait.", "by": "notification"},
        {"prompt": "two", "cancel_at": "I wait.", "by": "request"},
        {"prompt": "three", "permission": "approve"},
    )
    assert ends(cancelled) == ["cancelled", "cancelled", "end_turn"]
    assert [value for kind, value in cancelled if kind == "cancelled"] == [{}]
    session = next(value["sessionId"] for kind, value in cancelled if kind == "session")

    again = desk.watched(turns([{"say": "Here I am."}]), {"load": session}, {"prompt": "four"})
    at = next(number for number, (kind, _) in enumerate(again) if kind == "session")
    story, live = again[:at], again[at:]
    kinds = [value["sessionUpdate"] for kind, value in story if kind == "update"]
    assert [kind for kind in kinds if kind != "tool_call_update"] == [
        *("user_message_chunk", "agent_message_chunk") * 2,
        *("user_message_chunk", "tool_call", "agent_message_chunk"),
    ]
    assert said(story) == ["I wait.", "I wait.", "About made.txt."]
    assert last_statuses(story) == ["completed"]
    assert (said(live), ends(live)) == (["Here I am."], ["end_turn"])
    assert (desk.work / "made.txt").read_text() == "hello\n"


# -- reading ---------------------------------------------------------------------------------------------------------


def ends(lines: list[Line]) -> list[str]:
    return [value["stopReason"] for kind, value in lines if kind == "end"]


def said(lines: list[Line]) -> list[str]:
    updates = [value for kind, value in lines if kind == "update"]
    return [value["content"]["text"] for value in updates if value["sessionUpdate"] == "agent_message_chunk"]


def last_statuses(lines: list[Line]) -> list[str]:
    """The last state of every tool call."""
    updates = [value for kind, value in lines if kind == "update" and "toolCallId" in value]
    return list({value["toolCallId"]: value["status"] for value in updates}.values())
