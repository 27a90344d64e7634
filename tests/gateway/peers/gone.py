"""Run in a network of its own: a client on a WebSocket whose network goes away; says whether it was found.

python -m tests.gateway.peers.gone FOLDER
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from dragoman.gateway import dead_peers
from tests.support.gateway import counting, gateway
from tests.support.waiting import until

from ..sockets import opening, session


def link(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


async def main() -> None:
    # Seconds instead of a minute; what is proved is that it is asked at all.
    dead_peers._OPTIONS.update(TCP_KEEPIDLE=2, TCP_KEEPINTVL=1, TCP_KEEPCNT=2, TCP_USER_TIMEOUT=3000)
    link("up")
    async with gateway(counting(1), Path(sys.argv[1])) as served, opening(served) as peer:
        connection, _ = await session(peer, 1)
        client_side = served.hub.connections[connection]
        link("down")
        await until(lambda: not client_side.connection.readers)  # it gives up after ten seconds
        print(f"{client_side.connection.readers} left; kept: {connection in served.hub.connections}")
        link("up")
        peer.transport.abort()


if __name__ == "__main__":
    asyncio.run(main())
