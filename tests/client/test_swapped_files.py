"""A yes covers what was shown: files that are swapped and calls that change meanwhile."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.errors import RequestFailed
from dragoman.vocabulary.services import RequestPermission, WriteTextFile
from tests.client.raw_agent import connected, new_session
from tests.support.files import swapper

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("swapped", ["folder", "file"])
async def test_what_is_swapped_between_the_question_and_the_yes_leads_nowhere(swapped: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "a.txt").write_text("theirs")

    async def swap_and_say_yes(request: RequestPermission) -> str:
        if swapped == "folder":
            (root / "sub").rename(root / "was")
            (root / "sub").symlink_to(outside)
        else:
            (root / "sub" / "a.txt").symlink_to(outside / "a.txt")
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(), [root], ask=swap_and_say_yes)
    async with Workspace([root], environment={}, permissions=permissions) as workspace:
        try:
            await workspace.write_text_file(WriteTextFile("s", str(root / "sub" / "a.txt"), "ours"))
        except RequestFailed:
            pass  # refused is as good
    assert (outside / "a.txt").read_text() == "theirs"
    assert os.listdir(outside) == ["a.txt"]


@pytest.mark.requirement("F8")
@pytest.mark.parametrize(("writes", "least"), [(30, 300), pytest.param(3_000, 30_000, marks=pytest.mark.slow)])
async def test_a_thread_that_swaps_all_the_time_finds_no_gap(tmp_path: Path, writes: int, least: int) -> None:
    """The host's own tests try far more often."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", outside):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(outside)
    written = 0
    permissions = PermissionHandler(PermissionPolicy("edit"), [root])
    with swapper(root / "sub", root / "link") as swaps:
        async with Workspace([root], environment={}, permissions=permissions) as workspace:
            while written < writes or swaps[0] < least:
                try:
                    await workspace.write_text_file(WriteTextFile("s", str(root / "sub" / "a.txt"), "ours"))
                    written += 1
                except RequestFailed:
                    pass
    assert os.listdir(outside) == []


@pytest.mark.requirement("F9")
async def test_a_yes_to_a_call_does_not_cover_what_the_call_becomes(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("edit"), [tmp_path])
    options = [
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ]

    async with connected(1, permission=permissions) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()

        def tell(**update: Any) -> None:
            body = {"toolCallId": "c", **update}
            agent.say({"method": "session/update", "params": {"sessionId": "s", "update": body}})

        async def ask(id: str) -> Any:
            params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options}
            agent.say({"id": id, "method": "session/request_permission", "params": params})
            return (await agent.answer(id))["result"]["outcome"]["optionId"]

        place = [{"path": str(tmp_path / "a.txt")}]
        tell(sessionUpdate="tool_call", title="Edit", kind="edit", status="pending", locations=place)
        assert await ask("q1") == "y"
        tell(sessionUpdate="tool_call_update", rawInput={"command": "rm -rf ."})
        assert await ask("q2") == "n"
        agent.finish(number)
        await turn.read()
    assert [denial.reason.partition(",")[0] for denial in permissions.denials] == ["it runs a command"]
