"""`"id": null` is a request in version 1 and a mistake in version 2, however the bytes come and Python is started."""

import json
import subprocess
import sys

import pytest

from dragoman.link import Link
from dragoman.transports.memory import memory_pair
from tests.support.links import Above, client_link
from tests.support.messages import Message, hello
from tests.support.raw_peer import PIPE, RawPeer

LIST: Message = {"id": None, "method": "session/list", "params": {}}
LAST: Message = {"id": 9, "method": "session/list", "params": {}}
AGENT = """
from dragoman import Agent
agent = Agent("x")
@agent.prompt
async def work(session, prompt): ...
agent.run()
"""


def line(message: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def answers(lines: bytes) -> list[tuple[object, int | None]]:
    messages = [json.loads(each) for each in lines.splitlines()]
    return [(message["id"], message.get("error", {}).get("code")) for message in messages]


@pytest.mark.parametrize("optimised", [[], ["-O"]], ids=["", "-O"])
@pytest.mark.parametrize("reads", ["one", "two"])
@pytest.mark.parametrize(("version", "code"), [(1, None), (2, -32600)])
def test_a_process_answers_a_null_id_as_its_version_says(
    optimised: list[str], reads: str, version: int, code: int | None
) -> None:
    with subprocess.Popen(
        [sys.executable, *optimised, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout
        heard = b""
        rest = line(LIST) + line(LAST)
        if reads == "one":
            rest = line(hello(version)) + rest
        else:
            process.stdin.write(line(hello(version)))
            process.stdin.flush()
            heard = process.stdout.readline()
        process.stdin.write(rest)
        process.stdin.close()
        assert sorted(answers(heard + process.stdout.read()), key=str) == [(0, None), (9, None), (None, code)]
    assert process.returncode == 0


async def test_an_initialize_without_an_id_of_its_own_is_refused_in_version_2_and_another_may_follow() -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say({**hello(2), "id": None}, hello(2))
    assert "result" in await wire.answer(0)
    assert (await wire.answer(None))["error"]["code"] == -32600
    await link.close()


async def test_an_initialize_with_a_null_id_is_answered_in_version_1() -> None:
    ours, theirs = memory_pair(PIPE)
    link = Link(ours, Above(), "agent")
    link.start()
    wire = RawPeer(theirs)
    wire.say({**hello(1), "id": None})
    assert (await wire.answer(None))["result"]["protocolVersion"] == 1
    await link.close()


@pytest.mark.parametrize(("version", "code"), [(1, None), (2, -32600)])
async def test_a_client_is_asked_with_a_null_id_only_in_version_1(version: int, code: int | None) -> None:
    async with client_link(version) as end:
        end.wire.say({"id": None, "method": "_ping", "params": {}})
        assert (await end.wire.answer(None)).get("error", {}).get("code") == code
