"""The gateway under load: clients with open streams, turns that stream at once, and how long a chunk is on its way.

    python -m bench.gateway [--quick]

A chunk is the time at which the agent said it, on a clock that both processes share. The server is a process of its
own; its CPU time and memory are read from /proc.
"""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.gateway_client import Client
from bench.lines import Line, told
from bench.roster import PEERS
from tests.support.gateway import free_port

HERE: Final = Path(__file__).parent
CLIENTS: Final = 1000
STORED: Final = 10_000
TURNS: Final = 50
CHUNKS: Final = 200
PAUSE: Final = 0.02
"""Seconds between two chunks of a turn: fifty tokens a second, as hosted models say them."""
DEAF: Final = 1000
P99_MS: Final = 20.0
"""From the agent's mouth to the client's ear, 99 times of 100, with 1,000 clients connected."""
DEAF_SHARE: Final = 1.1
"""What a healthy client's p99 may grow to when 1,000 others stop reading."""
PAIRS: Final = 7
"""With and without deaf clients, in turn: one pair is off by half on a machine that does anything else."""
START_SECONDS: Final = 180.0
"""Ten thousand sessions are made before the server listens."""
SHARE: Final = 1 / 3
"""What the servers of the official SDKs may pass on in a second of CPU, of what ours does."""
EACH_KIB: Final = 100.0
"""What a client takes that has two streams open and a session, with its agent in the same process."""
IDLE: Final = 10_000
"""Clients that are connected, read and say nothing. Each is a socket: `ulimit -n` must be half as much again."""


@dataclass(frozen=True)
class Load:
    """How many of what."""

    clients: int
    turns: int = TURNS
    chunks: int = CHUNKS
    deaf: int = 0
    stored: int = 0


@dataclass(frozen=True)
class Borne:
    """How a server bore it."""

    p50: float
    p99: float
    per_cpu_second: float
    start_mib: int
    each_kib: float
    most_mib: int


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.gateway", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    share = 10 if parser.parse_args(arguments).quick else 1
    return told(lines(share))


def lines(share: int) -> Iterator[Line]:
    beside = Load(CLIENTS // 5 // share, TURNS // min(share, 5))
    bore = {name: _measured(name, beside) for name in ("ours", "py", "ts")}
    for name, borne in bore.items():
        yield Line(f"{PEERS[name].title}: {beside.clients:,} clients, {beside.turns} turns, p99", borne.p99, "ms")
        yield Line("  chunks for a second of CPU", borne.per_cpu_second, "")
    for name in ("py", "ts"):
        times = bore[name].per_cpu_second / bore["ours"].per_cpu_second
        yield Line(f"  {PEERS[name].title}'s share of ours", times, "", SHARE)
    best = min(bore[name].p99 for name in ("py", "ts"))
    yield Line("  our p99, beside the better of theirs", bore["ours"].p99 / best, "", 1.0)
    many = Load(CLIENTS // share, TURNS // min(share, 5), stored=STORED // share)
    borne = _measured("ours", many)
    yield Line(f"{many.clients:,} clients, {many.stored:,} sessions stored, {many.turns} turns: p50", borne.p50, "ms")
    yield Line("  p99", borne.p99, "ms", P99_MS)
    yield Line("  memory, from", borne.start_mib, "MiB")
    yield Line("  memory, to", borne.most_mib, "MiB")
    yield Line("  memory of each client before its turn", borne.each_kib, "KiB", EACH_KIB)
    held, mib = asyncio.run(_idle(IDLE // share))
    yield Line(f"{IDLE // share:,} idle connections: lost", IDLE // share - held, "", 0.0)
    yield Line("  memory", mib, "MiB")
    healthy, bothered = Load(20, 20), Load(20, 20, deaf=DEAF // share)
    pairs = [(_measured("ours", healthy).p99, _measured("ours", bothered).p99) for _ in range(PAIRS)]
    alone, among = (median(column) for column in zip(*pairs, strict=True))
    yield Line("20 healthy clients: p99", alone, "ms")
    yield Line(f"  among {DEAF // share:,} that have stopped reading", among, "ms")
    yield Line("  times slower", among / alone, "", DEAF_SHARE)


def _measured(peer: str, load: Load) -> Borne:
    return asyncio.run(_measure(peer, load))


async def _measure(peer: str, load: Load) -> Borne:
    port = free_port()
    server = subprocess.Popen(_command(peer, port, load), env={**os.environ, **PEERS[peer].environment})
    try:
        await _until_open(port)
        before = _memory_kib(server.pid)
        clients = [Client(port) for _ in range(load.clients)]
        deaf = [Client(port) for _ in range(load.deaf)]
        for at in range(0, len(clients), 20):
            await asyncio.gather(*(client.start() for client in clients[at : at + 20]))
        for client in deaf:
            await client.start(deaf=True)
            await client.turn(wait=False)
        if deaf:
            # They have stopped reading, and their turns have ended: what is left is what they hold.
            await asyncio.sleep(load.chunks * PAUSE + 2)
        each = (_memory_kib(server.pid) - before) / max(len(clients) + len(deaf), 1)
        cpu = _cpu(server.pid)
        await asyncio.gather(*(client.turn() for client in clients[: load.turns]))
        cpu = _cpu(server.pid) - cpu
        latencies = sorted(latency for client in clients for latency in client.latencies)
        assert len(latencies) == load.turns * load.chunks, len(latencies)
        for client in (*clients, *deaf):
            await client.close()
        return Borne(
            latencies[len(latencies) // 2],
            latencies[len(latencies) * 99 // 100],
            len(latencies) / max(cpu, 0.01),
            before // 1024,
            each,
            _memory_kib(server.pid) // 1024,
        )
    finally:
        server.kill()
        server.wait()


async def _idle(count: int) -> tuple[int, int]:
    """How many of so many connections are still there after two sweeps, and the memory of the server in MiB."""
    port = free_port()
    server = subprocess.Popen(_command("ours", port, Load(1, 1)), env={**os.environ, **PEERS["ours"].environment})
    clients = [Client(port) for _ in range(count)]
    try:
        await _until_open(port)
        for at in range(0, count, 50):
            await asyncio.gather(*(client.connect() for client in clients[at : at + 50]))
        await asyncio.sleep(12)
        return sum(client.is_connected for client in clients), _memory_kib(server.pid) // 1024
    finally:
        server.kill()
        server.wait()
        for client in clients:
            await client.close()


def _command(peer: str, port: int, load: Load) -> Sequence[str]:
    given = [str(port), str(load.chunks), str(PAUSE)]
    if peer == "ours":
        return [sys.executable, "-m", "bench.peers.gateway_ours", *given, str(load.stored)]
    program, *_ = PEERS[peer].agent
    file = HERE / "peers" / ("gateway_py.py" if peer == "py" else "gateway_ts.mjs")
    return [program, str(file), *given]


async def _until_open(port: int) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_kib(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


if __name__ == "__main__":
    sys.exit(main())
