"""What `transports.contract` promises, as far as it goes for transports that move whole messages and come back."""

import asyncio
import inspect
import os
import time
from typing import Any

import pytest
from h2.exceptions import ProtocolError

from dragoman import limits
from dragoman.errors import LinkClosed, UsageError
from dragoman.transports import http as http_module
from dragoman.transports import remote as remote_module
from dragoman.transports.remote import QUEUE_BYTES, transport_for
from tests.support.waiting import settled, until

from .pairs import Recorder
from .remotes import HELLO, REMOTES, HttpServer, OpenRemote, Remote, WebSocketServer

pytestmark = pytest.mark.anyio
LINE = b'{"jsonrpc":"2.0","method":"m","params":{"text":"' + b"x" * 1000 + b'"}}\n'


@pytest.fixture(params=REMOTES)
def open_remote(request: pytest.FixtureRequest) -> OpenRemote:
    return REMOTES[request.param]


def line(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"m","params":{"n":%d}}' % number


def new(remote: Remote) -> list[bytes]:
    """What the server has heard since the greeting."""
    return [message for message in remote.server.heard if message + b"\n" != HELLO]


async def test_messages_arrive_whole_and_in_order_both_ways(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        for number in range(100):
            assert remote.transport.write(line(number) + b"\n") > 0
            await remote.server.say(line(number))
        await until(lambda: len(new(remote)) == 100 and remote.receiver.data.count(b"\n") == 100)
        assert new(remote) == [line(number) for number in range(100)]
        assert bytes(remote.receiver.data) == b"".join(line(number) + b"\n" for number in range(100))


async def test_torn_writes_are_one_message_and_several_in_one_write_are_several(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        for at in range(0, len(LINE), 7):
            remote.transport.write(LINE[at : at + 7])
        remote.transport.write(line(1) + b"\n\n" + line(2) + b"\n")
        await until(lambda: len(new(remote)) == 3)
        assert new(remote) == [LINE[:-1], line(1), line(2)]


async def test_a_peer_that_never_reads_is_written_a_bounded_amount_and_writable_comes_once(
    open_remote: OpenRemote,
) -> None:
    async with open_remote() as remote:
        remote.server.reads.clear()
        large = LINE[:-1] + b" " * 100_000 + b"\n"
        taken = 0
        for _ in range(2000):  # a socket's buffers take their share
            if not remote.transport.write(large):
                break
            taken += 1
            await asyncio.sleep(0)
        assert taken * len(large) < 30_000_000
        assert remote.transport.write(large) == 0
        await settled()
        assert remote.receiver.rooms == 0
        remote.server.reads.set()
        await until(lambda: remote.receiver.rooms, "writable")
        await until(lambda: len(new(remote)) == taken)
        assert remote.receiver.rooms == 1
        assert QUEUE_BYTES < 30_000_000


async def test_nothing_is_received_while_reading_is_paused(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        remote.transport.pause_reading()
        await remote.server.say(line(1))
        await settled()
        assert not remote.receiver.data
        remote.transport.resume_reading()
        await until(lambda: remote.receiver.data == line(1) + b"\n")


async def test_a_dropped_connection_goes_on_and_nothing_is_lost_or_said_twice(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        for number in range(20):
            remote.transport.write(line(number) + b"\n")
            await remote.server.say(line(number))
            if number % 5 == 0:
                await remote.server.drop()
        await until(lambda: len(new(remote)) >= 20 and remote.receiver.data.count(b"\n") >= 20)
        await settled()
        assert new(remote) == [line(number) for number in range(20)]
        assert bytes(remote.receiver.data) == b"".join(line(number) + b"\n" for number in range(20))
        assert remote.receiver.losses == []


async def test_cookies_are_given_back() -> None:
    async with REMOTES["websocket"]() as remote:
        await remote.server.drop()
        await remote.server.say(line(1))
        await until(lambda: remote.receiver.data == line(1) + b"\n")
        assert getattr(remote.server, "cookies", []) == [None, "node=7"]


async def test_a_server_that_has_forgotten_us_is_one_loss_and_writing_is_harmless(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        await remote.server.forget()
        remote.transport.write(line(1) + b"\n")
        await until(lambda: remote.receiver.losses)
        assert isinstance(remote.receiver.losses[0], LinkClosed)
        for _ in range(3):
            assert remote.transport.write(LINE * 5000) == len(LINE * 5000)
        await remote.transport.close()
        assert len(remote.receiver.losses) == 1
        assert not remote.receiver.after_loss


async def test_close_is_quick_and_idempotent_and_says_goodbye(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        remote.transport.write(line(7) + b"\n")
        before = time.monotonic()
        await asyncio.gather(remote.transport.close(), remote.transport.close())
        await remote.transport.close()
        assert time.monotonic() - before < 30
        assert remote.receiver.losses == [None]
        assert remote.transport.write(b"more") == 4
        assert new(remote) == [line(7)]  # what was taken has left
        await until(lambda: getattr(remote.server, "deleted", False) or 1000 in getattr(remote.server, "goodbyes", []))


async def test_what_was_taken_leaves_before_the_connection_ends(
    open_remote: OpenRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 60.0)
    messages = [line(number) + b" " * 20_000 for number in range(40)]  # more than a socket takes at once
    async with open_remote() as remote:
        for message in messages:
            assert remote.transport.write(message + b"\n") == len(message) + 1
        await remote.transport.close()
        await until(lambda: len(new(remote)) == len(messages))
        assert new(remote) == messages


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("tried", [False, True])
async def test_where_no_server_was_reached_closing_waits_for_nothing(
    scheme: str, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLOSE_FLUSH_SECONDS", 600.0)
    told: list[str] = []
    transport, receiver = transport_for(f"{scheme}://127.0.0.1:9", on_trouble=told.append), Recorder()
    transport.start(receiver)
    transport.write(HELLO)
    if tried:
        await until(lambda: told)
    async with asyncio.timeout(30):
        await transport.close()
    assert receiver.losses == [None]


async def test_a_mistake_of_ours_or_of_a_library_ends_the_connection_with_a_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(remote_module.RemoteTransport):
        async def _run(self) -> None:
            raise RuntimeError("what is this")

    transport, receiver = Broken("http://127.0.0.1:9/acp", None), Recorder()
    transport.start(receiver)
    await until(lambda: receiver.losses)
    assert [str(loss) for loss in receiver.losses] == ["the connection to http://127.0.0.1:9 failed: what is this"]
    assert "the connection to http://127.0.0.1:9 failed" in caplog.text
    await transport.close()


def test_what_the_library_of_http2_raises_is_a_broken_connection() -> None:
    assert issubclass(ProtocolError, http_module._http2_errors("https://x.example/acp"))
    assert http_module._http2_errors("http://127.0.0.1:9/acp") == ()


async def test_what_is_written_before_the_server_says_what_it_has_is_sent_once() -> None:
    async with REMOTES["websocket"]() as remote:
        server = remote.server
        assert isinstance(server, WebSocketServer)
        server.resumes.clear()
        before = server._socket
        await server.drop()
        await until(lambda: server._socket not in (None, before), "the client's return")
        await settled()
        remote.transport.write(line(1) + b"\n")
        await settled()
        server.resumes.set()
        remote.transport.write(line(2) + b"\n")
        await until(lambda: line(2) in server.heard)
        await settled()
        assert new(remote) == [line(1), line(2)]


async def test_a_connection_that_is_just_being_made_is_ended_as_well() -> None:
    asked = asyncio.Event()

    class Slow(HttpServer):
        async def _answer(self, *request: Any) -> None:
            asked.set()
            await super()._answer(*request)

    server = Slow()
    server.reads.clear()
    async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        transport, receiver = transport_for(f"http://127.0.0.1:{port}"), Recorder()
        transport.start(receiver)
        transport.write(HELLO)
        await asked.wait()
        closing = asyncio.create_task(transport.close())
        await settled()
        assert not closing.done()
        server.reads.set()
        await closing
        assert server.deleted
        await server.drop()


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_work_that_never_began_is_closed_with_the_transport(scheme: str) -> None:
    """Python would complain of it, at any time later, on a terminal that is not its own."""

    async def listen() -> None:
        raise AssertionError("there was no time")

    work, transport = listen(), transport_for(f"{scheme}://127.0.0.1:9")
    assert isinstance(transport, remote_module.RemoteTransport)
    transport.start(Recorder())
    transport.spawn(work)
    await transport.close()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


async def test_nothing_is_left_behind(open_remote: OpenRemote) -> None:
    async with open_remote():
        pass
    descriptors, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
    async with open_remote() as remote:
        remote.transport.write(line(1) + b"\n")
    await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
    await until(lambda: len(asyncio.all_tasks()) <= tasks)


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_no_server_there_is_a_loss_with_a_sentence(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("websocket", "http"):
        monkeypatch.setattr(f"dragoman.transports.{module}.FIRST_SECONDS", 0.3)
    told: list[str] = []
    transport, receiver = transport_for(f"{scheme}://127.0.0.1:9?key=secret", on_trouble=told.append), Recorder()
    transport.start(receiver)
    transport.write(HELLO)
    await until(lambda: receiver.losses)
    place = f"{scheme}://127.0.0.1:9"
    assert told == [f"{place} cannot be reached (connection refused); trying again"]  # once, at the first failure
    assert str(receiver.losses[0]) == (
        f"{place} cannot be reached: connection refused; is `dragoman serve` running there?"
    )
    await transport.close()


async def test_the_last_attempt_is_made_when_the_time_is_over_and_is_the_last_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_module, "_FIRST_DELAY", 1000.0)
    assert [number async for number in remote_module.attempts(0.05)] == [0, 1]


async def test_a_drop_is_told_and_so_is_its_end(open_remote: OpenRemote) -> None:
    async with open_remote() as remote:
        told: list[str] = []
        assert isinstance(remote.transport, remote_module.RemoteTransport)
        remote.transport.on_trouble = told.append
        remote.transport.on_attempt_failed("gone")
        remote.transport.on_attempt_failed("gone")
        remote.transport.on_reached()
        remote.transport.on_reached()
    assert [sentence.split(" ", 1)[1] for sentence in told] == [
        "cannot be reached (gone); trying again",
        "can be reached now",
    ]


@pytest.mark.parametrize("url", ["ftp://x", "x", "", "http://", "https://user:secret@host", "ws:///acp"])
def test_a_wrong_address_is_a_usage_error_without_the_password(url: str) -> None:
    with pytest.raises(UsageError) as wrong:
        transport_for(url)
    assert "secret" not in str(wrong.value)


def test_a_path_is_acp_unless_it_is_given() -> None:
    assert transport_for("https://host").url == "https://host/acp"  # type: ignore[attr-defined]
    assert transport_for("wss://host/other").url == "wss://host/other"  # type: ignore[attr-defined]
    assert remote_module.RETURN_SECONDS == 600
