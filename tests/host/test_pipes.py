"""What the contract of the transports does not reach: the corners of a `ReadEnd`."""

import os
from collections.abc import Iterator

import pytest

from dragoman.host import pipes
from dragoman.host.pipes import PolledReadEnd

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    yield read_fd, write_fd
    os.close(read_fd)
    os.close(write_fd)


async def test_finish_hands_over_what_has_arrived_and_ends_before_it_returns(pipe: tuple[int, int]) -> None:
    events: list[object] = []
    end = PolledReadEnd(pipe[0], events.append, events.append)
    end.resume()
    os.write(pipe[1], b"arrived")
    end.finish()
    os.write(pipe[1], b"too late")
    end.finish()
    assert events == [b"arrived", None]


async def test_finish_ends_also_if_another_reader_was_faster(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    end = PolledReadEnd(pipe[0], events.append, events.append)
    end.resume()
    monkeypatch.setattr(pipes, "_arrived", lambda fd: 5)
    end.finish()
    assert events == [None]


async def test_a_closed_end_says_nothing(pipe: tuple[int, int]) -> None:
    events: list[object] = []
    end = PolledReadEnd(pipe[0], events.append, events.append)
    end.resume()
    os.write(pipe[1], b"arrived")
    end.close()
    end.close()
    end.resume()
    end.finish()
    assert events == []


async def test_an_end_that_is_closed_while_it_hands_over_says_nothing_more(pipe: tuple[int, int]) -> None:
    events: list[object] = []

    def take(data: bytes) -> None:
        events.append(data)
        end.close()

    end = PolledReadEnd(pipe[0], take, events.append)
    end.resume()
    os.write(pipe[1], bytes(60_000))
    end.finish()
    assert events == [bytes(60_000)]
