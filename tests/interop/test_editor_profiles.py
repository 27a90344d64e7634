"""The adapters of Claude and Codex and our agent with the same client and the same turn: what each sends beyond the
schema to Zed, and to JetBrains AIR."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.adapters import COMMAND, Adapter, Message, Wire, claude, codex, ours

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
ZED = {"terminal_output": True, "terminal-auth": True}
# The adapters take a rename from a client that declares `sessionIndex`.
NAMES = [
    "sessionIndex",
    "diffPatch",
    "rawInputRendering",
    "agentFileChangeReport",
    "sessionRename",
    "sessionFailure",
    "loadReplayEnd",
]
AIR = {"terminal_output_delta": True, "jetbrains": {"air": {"version": 1, "capabilities": NAMES}}}
REPORT = {"jetbrains": {"air": {"agentFileChangeReportRequest": {"version": 1, "requestId": "r"}}}}
each_adapter = pytest.mark.parametrize("adapter", [claude, codex], ids=["claude", "codex"])


def logins(hello: Message) -> list[Any]:
    return [line for method in hello["authMethods"] if (line := method.get("_meta", {}).get("terminal-auth"))]


def terminal(wire: Wire) -> list[tuple[str, Any]]:
    """What is said of the terminal of the command, in order, with the id of the call taken out."""
    (call,) = {one["toolCallId"] for one in wire.updates if one.get("title") == COMMAND and "toolCallId" in one}
    found: list[tuple[str, Any]] = []
    for update in wire.updates:
        if update.get("toolCallId") == call:
            meta = {key: value for key, value in update.get("_meta", {}).items() if key.startswith("terminal_")}
            found += [(key, json.loads(json.dumps(value).replace(call, "CALL"))) for key, value in meta.items()]
            shown = [item for item in update.get("content", ()) if item["type"] == "terminal"]
            found += [("content", item["terminalId"].replace(call, "CALL")) for item in shown]
    return found


class Zed(NamedTuple):
    """What an editor that declares Zed's extensions is sent."""

    login_keys: set[tuple[str, ...]]
    first: str
    said: dict[str, Any]
    steering: Any
    steered: Any


async def seen_by_zed(adapter: Adapter, folder: Path) -> Zed:
    async with adapter(folder) as wire:
        hello = await wire.open(ZED)
        assert (await wire.prompt())["stopReason"] == "end_turn"
        said = terminal(wire)
        required = {**wire.words(), "_meta": {"steering": {"idleBehavior": "promptRequired"}}}
        steered = await wire.ask("_session/steering", required)
        terminals = json.loads(json.dumps(dict(said)).replace(str(wire.folder), "FOLDER"))
        keys = {tuple(sorted(login)) for login in logins(hello)}
        return Zed(keys, said[0][0], terminals, hello["_meta"]["steering"], steered)


@pytest.mark.requirement("ED1", "ED3", "ED5")
async def test_zed_is_sent_the_terminal_the_login_and_the_steering_of_claudes_adapter(tmp_path: Path) -> None:
    theirs, mine = await seen_by_zed(claude, tmp_path / "claude"), await seen_by_zed(ours, tmp_path / "ours")
    # Claude's tool reports its output without the newline at its end, and its adapter names no folder.
    theirs.said["terminal_output"]["data"] += "\n"
    theirs.said["terminal_info"]["cwd"] = "FOLDER"
    assert mine == theirs


@pytest.mark.requirement("ED1", "ED5")
async def test_zed_is_sent_the_terminal_and_the_steering_of_codexs_adapter(tmp_path: Path) -> None:
    theirs, mine = await seen_by_zed(codex, tmp_path / "codex"), await seen_by_zed(ours, tmp_path / "ours")
    assert theirs.login_keys == set()  # it has no login that runs in a terminal
    assert mine._replace(login_keys=set()) == theirs


class Air(NamedTuple):
    """What JetBrains AIR is sent."""

    output_key: set[str]
    patches: dict[str, Any]
    input_with_text: list[Any]
    copies: list[Any]
    report: Any
    renamed: Any
    title: str
    stop_reason: str
    failure: Any


async def seen_by_air(adapter: Adapter, folder: Path) -> tuple[Air, list[str], bool]:
    """What AIR is sent, what the agent says it can, and whether it says when a replay is over."""
    async with adapter(folder) as wire:
        hello = await wire.open(AIR)
        await wire.prompt(REPORT)
        items = list(diffs(wire))
        copies = [text for call in calls(wire) for item in call.get("content") or () if (text := copied(item))]
        report = air_of(wire.updates[-1])["agentFileChangeReport"]
        patches = {name: shown(item, wire) for item in items if (name := Path(item["path"]).name)}
        keys = {key for key, _ in terminal(wire) if key.startswith("terminal_output")}
        inputs = [call["rawInput"] for call in calls(wire) if holds_text(call)]
        renamed = await wire.ask("_session/rename", {"sessionId": wire.session, "title": "Another\nname"})
        failed = await wire.prompt()
        titles = [
            update["title"]
            for update in wire.updates
            if update["sessionUpdate"] == "session_info_update" and "title" in update
        ]
        await wire.ask("session/close", {"sessionId": wire.session})
        wire.updates.clear()
        await wire.ask("session/load", {"sessionId": wire.session, "cwd": str(wire.folder), "mcpServers": []})
        seen = Air(
            keys,
            patches,
            inputs,
            copies,
            without_folder({key: value for key, value in report.items() if key != "uncertainty"}, wire),
            renamed,
            titles[-1],
            failed["stopReason"],
            failure_of(air_of(failed)["sessionFailure"]),
        )
        return seen, air_of(hello)["capabilities"], air_of(wire.updates[-1]).get("loadReplayEnd") is True


def air_of(message: Message) -> Any:
    return message.get("_meta", {}).get("jetbrains", {}).get("air", {})


def calls(wire: Wire) -> Iterator[Message]:
    """Every form in which a call was sent: announced, updated, asked about."""
    yield from (update for update in wire.updates if update["sessionUpdate"].startswith("tool_call"))
    yield from (question["toolCall"] for question in wire.questions)


def diffs(wire: Wire) -> Iterator[Message]:
    """Every diff that has a patch. An agent may show the words of an edit before it has looked at the file."""
    for call in calls(wire):
        yield from (
            item for item in call.get("content") or () if item["type"] == "diff" and "diffPatch" in air_of(item)
        )


def shown(item: Message, wire: Wire) -> Any:
    return without_folder([item["oldText"], item["newText"], air_of(item)], wire)


def without_folder(value: Any, wire: Wire) -> Any:
    return json.loads(json.dumps(value).replace(str(wire.folder), "FOLDER").replace(str(wire.folder)[1:], "FOLDER"))


def holds_text(call: Message) -> bool:
    """Whether the input of a call has the text of a file, which is in its diff."""
    raw = json.dumps(call.get("rawInput", ""))
    return "new\\n" in raw or '"two"' in raw


def copied(item: Message) -> Any:
    """The text of an item that stands in the input already."""
    text = item["content"].get("text", "") if item["type"] == "content" else ""
    return text if COMMAND in text else None


def failure_of(record: Message) -> Any:
    """A record with what is the agent's own taken out."""
    assert record["id"].endswith(":error")
    assert record["title"]
    return {key: value for key, value in record.items() if key not in ("id", "title")}, sorted(record)


@each_adapter
@pytest.mark.requirement("ED2", "ED7", "ED9", "ED10", "ED11", "ED12")
async def test_air_is_sent_patches_reports_names_and_failures_as_by_the_adapters(
    adapter: Adapter, tmp_path: Path
) -> None:
    theirs, offered, _ = await seen_by_air(adapter, tmp_path / "theirs")
    mine, ours_offered, says_end = await seen_by_air(ours, tmp_path / "ours")
    assert sorted(mine.patches) == ["new.txt", "old.txt"]
    assert mine == theirs
    # Claude's adapter renders input so without saying that it can.
    assert set(ours_offered) - {"rawInputRendering"} <= set(offered)
    assert says_end


@pytest.mark.requirement("ED8")
async def test_claudes_adapter_says_when_a_replay_is_over_and_codexs_does_not(tmp_path: Path) -> None:
    assert [(await seen_by_air(one, tmp_path / one.__name__))[2] for one in (claude, codex)] == [True, False]
