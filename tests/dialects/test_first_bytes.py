"""`initialize` answered from bytes alone, where that is all there is to answer."""

import json

import pytest

from dragoman.dialects.handshake.first_bytes import answer_initialize
from dragoman.vocabulary.hello import AgentHello
from tests.dialects.joined_dialects import AGENT

HELLO = b'{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":1}}'
NEXT = b'{"jsonrpc":"2.0","id":4,"method":"_next","params":{}}'


def never() -> AgentHello:
    raise AssertionError("nobody was greeted")


def test_the_answer_is_framed_as_the_question_was() -> None:
    line = answer_initialize(HELLO + b"\n", (1, 2), lambda: AGENT)
    block = answer_initialize(b"Content-Length: %d\r\n\r\n%b" % (len(HELLO), HELLO), (1, 2), lambda: AGENT)
    assert line is not None and block is not None
    head, _, body = block.sent.partition(b"\r\n\r\n")
    assert line.sent == body + b"\n"
    assert head == b"Content-Length: %d" % len(body)
    answer = json.loads(body)
    assert (answer["id"], answer["result"]["agentInfo"]["name"]) == (3, "agent")
    assert (line.version, line.agent) == (1, AGENT)


def test_what_came_behind_it_is_not_lost() -> None:
    greeted = answer_initialize(HELLO + b"\n" + NEXT[:10], (1, 2), lambda: AGENT)
    assert greeted is not None
    assert greeted.framer.feed(NEXT[10:] + b"\n") == [NEXT]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        HELLO,
        HELLO + b"\n" + NEXT + b"\n",
        NEXT + b"\n",
        b"hello?\n",
        b"[" * 300 + b"\n",
        HELLO.replace(b'"id":3,', b"") + b"\n",
        HELLO.replace(b"1}", b"0}") + b"\n",
        HELLO.replace(b"1}", b'"1"}') + b"\n",
        b"Content-Length: nothing\r\n\r\n",
        b"\xff\n",
    ],
)
def test_everything_else_is_left_to_the_link(data: bytes) -> None:
    assert answer_initialize(data, (1, 2), never) is None
