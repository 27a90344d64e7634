"""The database of a campaign: a primary and a synchronous standby, each on a machine of its own, and a pooler.

A server is one process tree that the campaign starts, so it can be killed as a whole. After a promotion the other one
is made anew from it, as a standby: what a failed primary has beyond its standby was told to no client, and goes.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import asyncpg

from chaos.network import Machine
from dragoman.host.process_tree import living
from tests.support.postgres import OTHER_USER, readable_programs

USER: Final = "dragoman"
PORT: Final = 5432
_DISK_MIB: Final = 384
_BALLAST: Final = "ballast"
_READY_SECONDS: Final = 60.0
# fsync is the disk's matter, and no disk loses its power here. The bounds on dead peers are short, as leases are.
_SETTINGS: Final = {
    "listen_addresses": "*",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "200",
    "wal_level": "replica",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "wal_keep_size": "32MB",
    "hot_standby": "on",
    "shared_buffers": "32MB",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "4s",
    "wal_receiver_timeout": "3s",
    "wal_sender_timeout": "3s",
    "wal_retrieve_retry_interval": "200ms",
}


class Server:
    """One PostgreSQL server, with its files on a disk of its own, which can be filled."""

    def __init__(self, machine: Machine, folder: Path, installed: Path) -> None:
        self.machine: Final = machine
        self._bin: Final = installed
        self._disk: Final = folder / f"disk-{machine.name}"
        self._data: Final = self._disk / "data"
        self._log: Final = folder / f"{machine.name}.log"
        self._disk.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m,mode=0755", "chaos", str(self._disk)], check=True
        )
        os.chown(self._disk, OTHER_USER, OTHER_USER)
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<Server {self.machine.name} {'runs' if self.runs else 'is down'}>"

    @property
    def runs(self) -> bool:
        """Whether its first process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql://{USER}@{self.machine.address}:{PORT}/postgres"

    def make(self) -> None:
        """Make an empty database."""
        self._call("initdb", "-D", str(self._data), "-U", USER, "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\nhost replication all 10.77.0.0/24 trust\n")

    def copy(self, primary: "Server") -> None:
        """Become a standby of another server, with its data."""
        shutil.rmtree(self._data, ignore_errors=True)
        source = f"host={primary.machine.address} port={PORT} user={USER} application_name={self.machine.name}"
        self._call("pg_basebackup", "-D", str(self._data), "-d", source, "-R", "-X", "stream", "-c", "fast", "-N")

    def start(self) -> None:
        """Start it; do not wait."""
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = self.machine.run(
                [str(self._bin / "postgres"), "-D", str(self._data), *settings], output=log, user=OTHER_USER
            )

    def kill(self) -> None:
        """Kill every process of it, as a lost machine would."""
        if self._process is None:
            return
        tree = _tree(self._process.pid)
        # The first one stopped before the others are looked for: it starts no more of them.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in tree:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            tree |= _tree(self._process.pid)
        self._process.wait()
        while any(one.pid in tree and one.state not in "ZX" for one in living()):
            time.sleep(0.01)

    async def promote(self) -> None:
        """Make a standby the primary, which waits for no standby until there is one."""
        connection = await self.connect()
        try:
            await connection.fetchval("SELECT pg_promote(true, 30)")
            await connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            await connection.fetchval("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    async def wait_for_standby(self, standby: "Server") -> None:
        """Have every commit wait for a standby from now on, once that has caught up."""
        connection = await self.connect()
        try:
            await connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({standby.machine.name})'")
            await connection.fetchval("SELECT pg_reload_conf()")
            query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
            async with asyncio.timeout(_READY_SECONDS):
                while not await connection.fetchval(query):
                    await asyncio.sleep(0.05)
        finally:
            await connection.close()

    async def ready(self) -> None:
        """Wait until it answers."""
        connection = await self.connect()
        await connection.close()

    async def connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Return a connection, as soon as the server takes one."""
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                try:
                    return await asyncpg.connect(self.url, timeout=5)
                except (OSError, asyncpg.PostgresError, TimeoutError):
                    await asyncio.sleep(0.05)

    def fill_disk(self) -> None:
        """Leave no byte free on its disk."""
        with (self._disk / _BALLAST).open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 20))

    def free_disk(self) -> None:
        """Undo `fill_disk`."""
        (self._disk / _BALLAST).unlink(missing_ok=True)

    def _call(self, program: str, *words: str) -> None:
        done = subprocess.run(
            self.machine.command([str(self._bin / program), *words], OTHER_USER),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            cwd="/",
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout.decode()}")


class Pooler:
    """pgbouncer on a machine of its own, which lends a server for one transaction."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine: Final = machine
        self._settings: Final = folder / "pgbouncer.ini"
        self._users: Final = folder / "users.txt"
        self._users.write_text(f'"{USER}" ""\n')
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<Pooler {self.machine.name}>"

    @property
    def url(self) -> str:
        """The address of the database behind it."""
        return f"postgresql://{USER}@{self.machine.address}:{PORT}/postgres"

    def start(self, server: Server) -> None:
        """Start it in front of a server; do not wait."""
        lines = [
            *("[databases]", f"* = host={server.machine.address} port={PORT}", "[pgbouncer]"),
            *("listen_addr = *", f"listen_port = {PORT}", "auth_type = trust", f"auth_file = {self._users}"),
            *("pool_mode = transaction", "unix_socket_dir =", "server_login_retry = 0.5", "server_connect_timeout = 2"),
            *("tcp_keepidle = 2", "tcp_keepintvl = 1", "tcp_keepcnt = 2", "max_client_conn = 500"),
        ]
        self._settings.write_text("\n".join(lines) + "\n")
        for file in (self._settings, self._users):
            file.chmod(0o644)
        self._process = self.machine.run(["pgbouncer", "--quiet", str(self._settings)], user=OTHER_USER)

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Pair:
    """A primary and its synchronous standby, in changing roles. Both are made by `start`."""

    def __init__(self, machines: tuple[Machine, Machine], folder: Path, installed: Path | None = None) -> None:
        binaries = installed or readable_programs(folder)
        self.primary, self.standby = (Server(machine, folder, binaries) for machine in machines)

    def __repr__(self) -> str:
        return f"<Pair primary={self.primary.machine.name}>"

    @property
    def url(self) -> str:
        """The address of whichever is the primary."""
        hosts = ",".join(sorted(f"{one.machine.address}:{PORT}" for one in (self.primary, self.standby)))
        return f"postgresql://{USER}@{hosts}/postgres?target_session_attrs=read-write"

    async def start(self) -> None:
        """Make both, and wait until commits wait for the standby."""
        await asyncio.to_thread(self.primary.make)
        self.primary.start()
        await self.primary.ready()
        await self.renew_standby()

    async def renew_standby(self) -> None:
        """Make the standby anew from the primary."""
        self.standby.kill()
        await asyncio.to_thread(self.standby.copy, self.primary)
        self.standby.start()
        await self.primary.wait_for_standby(self.standby)

    async def fail_over(self) -> None:
        """Let the standby be the primary. The old one must be out of reach by now."""
        await self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def close(self) -> None:
        """Kill both."""
        for server in (self.primary, self.standby):
            server.kill()


def _tree(first: int) -> set[int]:
    processes = living()
    found, grown = {first}, True
    while grown:
        children = {one.pid for one in processes if one.parent in found} - found
        found |= children
        grown = bool(children)
    return found
