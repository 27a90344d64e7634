"""An agent that sends as much as it can, as deep as it can, or asks as often as it can: the client stays small."""

import asyncio
import sys
import tracemalloc
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.client.connect import connect
from dragoman.vocabulary.services import PermissionOption, RequestPermission

pytestmark = pytest.mark.anyio

AGENT = """
import json, sys
def say(**m): sys.stdout.write(json.dumps({"jsonrpc": "2.0", **m}) + "\\n")
def hear():
    sys.stdout.flush()
    return json.loads(sys.stdin.readline())
def update(**u): say(method="session/update", params={"sessionId": "s", "update": u})
say(id=hear()["id"], result={"protocolVersion": 1})
say(id=hear()["id"], result={"sessionId": "s"})
prompt = hear()["id"]
%s
say(id=prompt, result={"stopReason": "end_turn"})
sys.stdout.flush()
sys.stdin.read()
"""
QUESTIONS = """
options = [{"optionId": "y", "kind": "allow_once", "name": "Yes"}]
for n in range(500):
    call = {"toolCallId": str(n), "title": "x"}
    params = {"sessionId": "s", "toolCall": call, "options": options}
    say(id=f"q{n}", method="session/request_permission", params=params)
refused = 0
while refused < 500 - %d:
    refused += hear().get("error", {}).get("code") == -32001
"""
CALLS = """
for n in range(20000):
    update(sessionUpdate="tool_call", toolCallId=str(n), title="x" * 100, kind="read", status="completed")
"""
LONG = """
sys.stdout.write('{"jsonrpc":"2.0","method":"')
for _ in range(80): sys.stdout.write("x" * 1024 * 1024)
sys.stdout.write('"}\\n')
"""
DEEP = """
sys.stdout.write('{"jsonrpc":"2.0","method":"x","params":' + "[" * 500000 + "]" * 500000 + "}\\n")
"""


async def test_of_five_hundred_questions_so_many_are_asked_as_may_be_open(tmp_path: Path) -> None:
    asked: list[str] = []
    enough = asyncio.Event()

    async def never(request: RequestPermission) -> PermissionOption | None:
        asked.append(request.title)
        await enough.wait()
        return None

    program = AGENT % (QUESTIONS % limits.IN_FLIGHT)
    async with connect([sys.executable, "-c", program], permission=never) as client:
        session = await client.new_session(tmp_path)
        async with asyncio.timeout(30):
            assert (await session.ask("go")).stop_reason == "end_turn"
        assert len(asked) == limits.IN_FLIGHT
        enough.set()


async def test_twenty_thousand_calls_in_one_turn_cost_a_bounded_amount(tmp_path: Path) -> None:
    async with connect([sys.executable, "-c", AGENT % CALLS]) as client:
        session = await client.new_session(tmp_path)
        tracemalloc.start()
        try:
            async with asyncio.timeout(60):
                count = [1 async for _ in session.prompt("go")]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(count) >= 20_000
    assert peak < 64 * limits.MIB


@pytest.mark.parametrize("what", [LONG, DEEP], ids=["80 MiB in a line", "500,000 levels"])
async def test_a_line_that_is_too_long_or_too_deep_is_skipped_and_the_turn_goes_on(tmp_path: Path, what: str) -> None:
    async with connect([sys.executable, "-c", AGENT % what]) as client:
        session = await client.new_session(tmp_path)
        async with asyncio.timeout(60):
            assert (await session.ask("go")).stop_reason == "end_turn"
