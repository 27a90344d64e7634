"""The pipes of a server: what it writes is held to a bound while the client does not read, and nothing is lost."""

import sys
from pathlib import Path

import pytest

from dragoman import limits
from tests.support.waiting import until
from tests.support.whole_agent import one_guardian

pytestmark = pytest.mark.anyio

COUNT = 300
# Lines of 100,000 bytes: 30 MB in all. Between two of them one that is empty, and one that is no message.
FLOOD = f"""
for number in range({COUNT}):
    message = '{{"jsonrpc": "2.0", "method": "%d", "params": {{"x": "%s"}}}}' % (number, "x" * 100_000)
    print(message, "", "noise", sep="\\n")
"""


async def test_a_server_that_writes_more_than_is_read_waits_and_loses_nothing() -> None:
    from dragoman.coder.mcp.sdk.lines import MESSAGE_BYTES, Lines

    guardian = one_guardian()
    child = guardian.start([sys.executable, "-I", "-S", "-c", FLOOD], cwd=str(Path.cwd()), env={})
    lines = Lines(child)
    try:
        await until(lambda: lines._reader._paused, "reading pauses")
        assert MESSAGE_BYTES < len(lines._bytes._buffer) <= 2 * MESSAGE_BYTES + limits.READ_BYTES  # type: ignore[attr-defined]
        methods = [message.message.method async for message in lines.read]  # type: ignore[union-attr]
        assert methods == [str(number) for number in range(COUNT)]
        assert (lines.ended, lines.noise) == (True, "noise")
    finally:
        lines.close()
        await child.stop()
        guardian.leave(child.pid)
