"""The peer of `dragoman check` as a program: `python check_peer.py VERSION [SWITCH]`. Its disk is its memory."""

import asyncio
import sys

from dragoman.conformance.peer.agent import PeerAgent
from dragoman.conformance.peer.state import PeerDisk
from dragoman.conformance.peer.wire_end import PeerWire
from dragoman.transports.opening import take_stdio
from dragoman.transports.stdio import StdioTransport


async def serve(version: int, switch: str) -> None:
    transport = StdioTransport(*take_stdio())
    wire = PeerWire(transport, switch)
    over = asyncio.Event()
    agent = PeerAgent(wire, PeerDisk(), version)
    end = wire.on_end

    def on_end() -> None:
        end()
        over.set()

    wire.on_end = on_end
    wire.start()
    await over.wait()
    await transport.close()
    assert agent.version == version


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
