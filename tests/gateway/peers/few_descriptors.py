"""A gateway in a process that may open 256 descriptors; it writes its port, and stops at the end of its stdin.

python -m tests.gateway.peers.few_descriptors FOLDER
"""

import asyncio
import resource
import sys
from pathlib import Path

from dragoman.gateway import idle_sockets
from tests.support.gateway import counting, gateway


async def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    idle_sockets.CHECK_SECONDS = 0.05  # type: ignore[misc]
    idle_sockets.SILENT = 20  # type: ignore[misc]
    async with gateway(counting(1), Path(sys.argv[1])) as served:
        print(served.server.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
