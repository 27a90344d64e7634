"""What is particular to a child as the peer: how it ends, what it said, and that it is gone."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.errors import ChildExited, LinkClosed
from dragoman.host.process import Child
from dragoman.link import Link
from dragoman.link.state import LinkState
from dragoman.transports.child import ChildTransport
from dragoman.vocabulary.hello import ClientHello
from tests.support.links import Above
from tests.support.waiting import settled, until

from .pairs import Recorder

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(*argv: str) -> AsyncIterator[tuple[ChildTransport, Recorder, Child]]:
    child = Child.start(argv, cwd="/", env={"PATH": os.environ["PATH"]})
    transport, receiver = ChildTransport(child), Recorder()
    transport.start(receiver)
    try:
        yield transport, receiver, child
    finally:
        await transport.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child gets less time to go by itself; how much it gets is not the point."""
    monkeypatch.setattr(limits, "CHILD_EXIT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "CHILD_TERM_SECONDS", 0.1)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


async def test_a_child_that_dies_says_how_and_why() -> None:
    command = "echo half an answer; echo 'no model configured' >&2; exit 3"
    async with connected("sh", "-c", command) as (_, receiver, _):
        await until(lambda: receiver.losses)
        [error] = receiver.losses
        assert isinstance(error, ChildExited)
        assert isinstance(error, LinkClosed)
        assert (error.exit_code, error.stderr_tail) == (3, "no model configured\n")
        assert str(error) == "sh exited with code 3. It last wrote to stderr:\nno model configured"
        assert receiver.data == b"half an answer\n"


async def test_an_exit_is_logged_with_its_code_and_without_what_was_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    async with connected("sh", "-c", "echo private; echo secret >&2; exit 3") as (_, receiver, _):
        await until(lambda: receiver.losses)
    said = [record.getMessage() for record in caplog.records if record.name == "dragoman.transports.child"]
    assert said == ["process sh exited with code 3"]


@pytest.mark.parametrize(
    ("command", "message"),
    [("exit 0", "sh exited with code 0."), ("kill -9 $$", "sh was killed by SIGKILL."), ("kill -40 $$", "signal 40.")],
)
async def test_every_unasked_end_is_an_error(command: str, message: str) -> None:
    async with connected("sh", "-c", command) as (_, receiver, _):
        await until(lambda: receiver.losses)
        assert str(receiver.losses[0]).endswith(message)


async def test_a_child_that_exits_at_once_leaves_a_usable_transport() -> None:
    async with connected("true") as (transport, receiver, _):
        await until(lambda: receiver.losses)
        assert transport.write(bytes(1_000_000)) == 1_000_000


async def test_a_flood_on_stderr_before_it_reads_blocks_nothing() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); print(sys.stdin.readline())"
    async with connected(*python(code)) as (transport, receiver, _):
        transport.write(b"hello\n")
        await until(lambda: b"hello" in receiver.data)


async def test_its_last_words_are_heard_though_a_grandchild_holds_its_stdout_open() -> None:
    command = "sleep 1000 & head -c 50000 /dev/zero; exit 1"
    async with connected("sh", "-c", command) as (_, receiver, _):
        await until(lambda: receiver.losses)
        assert len(receiver.data) == 50_000
        assert str(receiver.losses[0]) == "sh exited with code 1."


async def test_a_grandchild_that_floods_stdout_cannot_keep_the_link_of_a_dead_child_open() -> None:
    async with connected("sh", "-c", "yes & sleep 0.1; exit 1") as (_, receiver, _):
        await until(lambda: receiver.losses)
        assert str(receiver.losses[0]) == "sh exited with code 1."


async def test_its_last_words_wait_behind_a_pause_and_the_loss_behind_them() -> None:
    async with connected("sh", "-c", "echo the answer; exit 1") as (transport, receiver, child):
        transport.pause_reading()
        await child.wait()
        assert transport.write(b"anybody there?") == 14
        await settled()
        assert not receiver.data
        assert not receiver.losses
        transport.resume_reading()
        await until(lambda: receiver.losses)
        assert receiver.data == b"the answer\n"


@pytest.mark.usefixtures("hasty")
async def test_a_child_that_closes_its_output_but_lives_is_a_loss_and_dies_in_close() -> None:
    async with connected("sh", "-c", "echo why >&2; exec >&-; sleep 1000") as (transport, receiver, child):
        await until(lambda: receiver.losses)
        error = receiver.losses[0]
        assert isinstance(error, ChildExited)
        assert error.exit_code is None
        assert str(error) == "sh closed the connection, but still runs. It last wrote to stderr:\nwhy"
        assert not child.has_exited
        await transport.close()
        assert child.has_exited


@pytest.mark.usefixtures("hasty")
async def test_a_child_that_closes_its_input_but_lives_is_a_loss() -> None:
    async with connected("sh", "-c", "exec <&-; echo ready; sleep 1000") as (transport, receiver, _):
        await until(lambda: receiver.data)
        assert transport.write(b"anybody there?") == 14
        await until(lambda: receiver.losses)
        assert isinstance(receiver.losses[0], ChildExited)


@pytest.mark.usefixtures("hasty")
async def test_a_child_that_ignores_the_end_and_sigterm_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"
    async with connected(*python(code)) as (transport, receiver, child):
        await until(lambda: receiver.data)
        await transport.close()
        assert child.exit_code == -9


async def test_a_child_that_has_much_to_say_at_the_end_can_finish(tmp_path: Path) -> None:
    code = f"""
import sys
sys.stdin.read()
sys.stdout.write("x" * 1_000_000)
sys.stdout.flush()
open({str(tmp_path / "done")!r}, "w").close()
"""
    async with connected(*python(code)) as (transport, receiver, child):
        transport.pause_reading()
        await transport.close()
        assert child.exit_code == 0
        assert (tmp_path / "done").exists()
        assert not receiver.data
        assert receiver.losses == [None]


async def test_waiting_calls_are_told_at_the_beginning_of_close_not_at_its_end() -> None:
    async with connected("sleep", "1000") as (transport, receiver, child):
        closing = asyncio.ensure_future(transport.close())
        await settled()
        assert receiver.losses == [None]
        assert not child.has_exited
        await closing


@pytest.mark.usefixtures("hasty")
async def test_a_transport_that_was_never_started_can_be_closed() -> None:
    child = Child.start(["sleep", "1000"], cwd="/", env={"PATH": os.environ["PATH"]})
    await ChildTransport(child).close()
    assert child.exit_code == -15


@pytest.mark.slow
async def test_a_client_leaves_a_child_that_neither_reads_nor_ends_within_two_seconds() -> None:
    """It ignores signals, reads nothing, and has more in front of it than its pipe holds."""
    source = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(60)"
    )
    child = Child.start([sys.executable, "-c", source], cwd="/", env=dict(os.environ))
    above = Above()
    link = Link(ChildTransport(child), above, "client")
    link.start()
    hello = asyncio.ensure_future(link.initialize(ClientHello()))
    link.outbox.put(b" " * limits.MIB)
    await until(lambda: link.state is LinkState.GREETING)
    began = time.monotonic()
    await link.close()
    assert time.monotonic() - began < 2.5  # the promise, and half a second for a busy machine
    assert child.has_exited
    with pytest.raises(LinkClosed):
        await hello
