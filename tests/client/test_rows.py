"""Hostile and broken agents as a client meets them: lifecycle, pressure, and files that are swapped."""

import asyncio
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dragoman import limits
from dragoman.client.connect import connect
from dragoman.client.policy import PermissionHandler, PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.errors import DragomanError, RequestFailed, UsageError
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.hello import AgentCapabilities
from dragoman.vocabulary.services import RequestPermission, WriteTextFile
from tests.client.raw_agent import RawAgent, both_versions, connected, new_session
from tests.client.test_robustness import SCRIPT
from tests.support.raw_peer import PIPE, Message, greeting
from tests.support.scripted_turns import swapper
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


# -- C: the life of a connection and of a turn -----------------------------------------------------------------------


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {"sessionId": "s", "path": "/etc/passwd"}),
        ("terminal/create", {"sessionId": "s", "command": "id"}),
        ("session/request_permission", {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}),
        ("elicitation/create", {"sessionId": "s", "mode": "form", "message": "Who?", "requestedSchema": {}}),
        ("_agentao.cn/ask_user", {"sessionId": "s", "question": "Who?"}),
    ],
)
async def test_an_agent_that_asks_before_it_has_answered_initialize_gets_nothing(
    method: str, params: Message, tmp_path: Path
) -> None:
    asked: list[object] = []

    async def ask(request: object) -> None:
        asked.append(request)

    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, 1)
    async with Workspace([tmp_path], environment=os.environ) as workspace:
        client = connect(ours, permission=ask, elicitation=ask, ask_user=ask, **workspace.callbacks())
        entering = asyncio.ensure_future(client.__aenter__())
        number = (await agent.request("initialize"))["id"]
        agent.say({"id": "early", "method": method, "params": params})
        assert (await agent.answer("early"))["error"]["code"] < 0
        agent.say({"id": number, "result": greeting(1)})
        await entering
        await client.close()
        await agent.leave()
    assert asked == []


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("body", [1, 2])
@pytest.mark.parametrize("version", [0, 99, "1", -1, None, 1.5, True, [], 2**70])
async def test_whatever_version_an_agent_claims_it_is_talked_to_or_left_with_a_reason(version: Any, body: int) -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, body)
    client = connect(ours)
    entering = asyncio.ensure_future(client.__aenter__())
    number = (await agent.request("initialize"))["id"]
    agent.say({"id": number, "result": greeting(body) | {"protocolVersion": version}})
    refused = await asyncio.gather(entering, return_exceptions=True)
    if isinstance(refused[0], BaseException):
        assert isinstance(refused[0], DragomanError)
        assert client.state == "failed"
    else:
        await new_session(client, agent)
    async with asyncio.timeout(30):
        await client.close()
        await agent.leave()


@pytest.mark.requirement("C3")
@both_versions
@pytest.mark.parametrize("odd", [None, [], "yes", 7, {"session": 1, "sessionCapabilities": "x", "loadSession": "y"}])
async def test_capabilities_that_are_none_are_absent_and_unknown_ones_are_ignored(version: int, odd: Any) -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, version)
    client = connect(ours)
    entering = asyncio.ensure_future(client.__aenter__())
    number = (await agent.request("initialize"))["id"]
    key = "agentCapabilities" if version == 1 else "capabilities"
    agent.say({"id": number, "result": greeting(version) | {key: odd, "unheardOf": {"deep": [1]}}})
    await entering
    able = client.agent.capabilities
    assert [able.load, able.resume, able.list, able.close, able.fork] == [False] * 5
    assert able.mcp_http is AgentCapabilities().mcp_http
    await client.close()
    await agent.leave()


@pytest.mark.requirement("C5")
@both_versions
async def test_a_second_prompt_is_refused_and_the_first_is_unharmed(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("one")
        number = await agent.accept()
        for _ in range(100):
            with pytest.raises(UsageError, match="still running"):
                session.prompt("two")
        agent.tell("one")
        agent.finish(number)
        assert (await turn.read()).text == "one"
        assert sum(message.get("method") == "session/prompt" for message in agent.heard) == 1


@pytest.mark.requirement("C6", "C7")
@both_versions
@pytest.mark.parametrize("phase", ["before", "model", "permission", "after"])
async def test_a_thousand_cancels_in_any_phase_have_one_outcome(version: int, phase: str) -> None:
    async def never(request: RequestPermission) -> None:
        await asyncio.get_running_loop().create_future()

    async with connected(version, permission=never) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        if phase != "before":
            number = await agent.accept()
            agent.tell("so far")
        if phase == "permission":
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            about: Message = {"toolCall": {"toolCallId": "c"}}
            if version == 2:
                about = {"title": "May I?", "subject": {"type": "tool_call", **about}}
            asking = {"sessionId": "s", "options": options, **about}
            agent.say({"id": "q", "method": "session/request_permission", "params": asking})
            await until(lambda: client.state == "waiting for you")
        if phase == "after":
            agent.finish(number)
            await turn.read()
        for _ in range(1000):
            await turn.cancel()
            await session.cancel()
        if phase == "permission":
            assert (await agent.answer("q"))["result"]["outcome"] == {"outcome": "cancelled"}
        if phase in ("model", "permission"):
            await agent.request("session/cancel")
            agent.finish(number, "cancelled")
        answer = await turn.read()
        await settled()
        told = sum(message.get("method") == "session/cancel" for message in agent.heard)
        assert told == (1 if phase in ("model", "permission") else 0)
        assert turn.stop_reason == ("end_turn" if phase == "after" else "cancelled")
        assert answer.text in ("", "so far")


@pytest.mark.requirement("C12")
@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_session_that_is_open_and_idle_costs_little(count: int) -> None:
    async with connected(1) as (client, agent):
        await new_session(client, agent, "first")
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        sessions = [await new_session(client, agent, f"s{number}") for number in range(count)]
        agent.heard.clear()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (after - before) / count < 64 * limits.KIB / 4
        assert len(sessions) == count


# -- D: pressure -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("version", [2, pytest.param(1, marks=pytest.mark.slow)])
async def test_an_agent_that_never_reads_makes_the_sender_wait_and_costs_a_bounded_amount(version: int) -> None:
    """10⁶ messages in the row; here as many as make several times the bound."""
    count, text = 12_000, "x" * 1000
    async with connected(version) as (client, agent):
        agent.pause()
        sent = 0

        async def send() -> None:
            nonlocal sent
            for number in range(count):
                await client.notify("_flood", {"number": number, "text": text})
                sent += 1

        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        sending = asyncio.ensure_future(send())
        await settled()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0 < sent < count / 2
        assert sent * len(text) < limits.OUTBOX_BYTES + limits.MIB
        assert after - before < 2 * limits.OUTBOX_BYTES
        agent.resume()
        async with asyncio.timeout(30):
            await sending
            await until(lambda: len(flood(agent)) == count)
        assert [message["params"]["number"] for message in flood(agent)] == list(range(count))


def flood(agent: RawAgent) -> list[Message]:
    return [message for message in agent.heard if message.get("method") == "_flood"]


@pytest.mark.requirement("D4")
@both_versions
async def test_both_sides_write_before_they_read_and_go_on(version: int) -> None:
    """The agent answers nothing before it has said everything; we ask meanwhile more than any pipe takes."""
    count = 100
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.pause()
        agent.tell(*["x" * 20_000] * count)
        asking = [asyncio.ensure_future(client.request("_big", {"text": "y" * 20_000})) for _ in range(count)]
        async with asyncio.timeout(30):
            read = 0
            while read < count * 20_000:
                event = await anext(turn)
                read += len(getattr(event, "text", ""))
            agent.resume()
            for _ in range(count):
                agent.say({"id": (await agent.request("_big"))["id"], "result": {}})
            await asyncio.gather(*asking)
            agent.finish(number)
            assert [type(event).__name__ async for event in turn] == ["Idle"]


DESCRIPTORS = """
import asyncio, resource, sys
from dragoman import connect
from dragoman.errors import DragomanError

resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
AGENT = [sys.executable, "-S", "-E", sys.argv[1]]

async def main():
    open_ones, refused = [], ""
    while not refused and len(open_ones) < 48:
        client = connect(AGENT)
        try:
            await client.__aenter__()
        except DragomanError as error:
            refused = str(error)
        else:
            open_ones.append(client)
    for client in open_ones[len(open_ones) // 2 :]:
        await client.close()
    async with connect(AGENT) as client:
        session = await client.new_session("/")
        print((await session.ask("go")).text, len(open_ones) > 3, bool(refused), flush=True)
    sessions = [await client.new_session("/") for client in open_ones[: len(open_ones) // 2]]
    print({(await session.ask("go")).text for session in sessions}, flush=True)
    for client in open_ones:
        await client.close()

asyncio.run(main())
"""


@pytest.mark.requirement("D13")
async def test_without_descriptors_a_start_fails_in_words_and_the_others_go_on() -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", DESCRIPTORS, str(SCRIPT)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done True True\n{'done'}\n", "")


# -- F: permissions --------------------------------------------------------------------------------------------------


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
    """10⁶ tries in the row; the host's own tests go deeper."""
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
