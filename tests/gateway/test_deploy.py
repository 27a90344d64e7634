"""What stands in `deploy/`: the unit, the image and the proxies' files fit the command, and tell no lies."""

import asyncio
import configparser
import json
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect as websocket

from dragoman.cli import serve
from dragoman.client.connect import connect
from dragoman.errors import LinkClosed
from dragoman.gateway import (
    agent_source,
    connections,
    dead_peers,
    endpoint,
    guard,
    host_check,
    http_replies,
    hub,
    idle_sockets,
    open_questions,
    precheck,
    replay_buffer,
    server,
    session_streams,
    turn_buffer,
)
from dragoman.transports import http
from dragoman.transports.remote import transport_for
from tests.support.gateway import counting, free_port, gateway
from tests.support.gateway_process import SLOW, serving
from tests.support.needs import ROOT, need

pytestmark = pytest.mark.anyio
DEPLOY = ROOT / "deploy"


def parsed(words: list[str]) -> object:
    """A command line of ours, as the command reads it; what it does not know ends the test."""
    commands = ArgumentParser().add_subparsers()
    serve.add(commands)
    assert words[0] == "serve"
    return commands.choices["serve"].parse_args(words[1:])


def unit(name: str = "dragoman.service") -> configparser.ConfigParser:
    class Unit(configparser.ConfigParser):
        def optionxform(self, optionstr: str) -> str:
            return optionstr

    read = Unit(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    read.read_string((DEPLOY / name).read_text())
    return read


# -- systemd ---------------------------------------------------------------------------------------------------------


def test_the_unit_starts_the_command_and_leaves_it_time_to_stop() -> None:
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/dragoman")
    given = parsed(words)
    assert given.host == "127.0.0.1"  # type: ignore[attr-defined]
    longest = given.grace + hub._CANCEL_SECONDS + server._REPLY_SECONDS + server._STOP_SECONDS  # type: ignore[attr-defined]
    assert int(service["TimeoutStopSec"]) > longest
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")


def test_the_unit_has_a_user_of_its_own_and_may_write_little() -> None:
    service = unit()["Service"]
    assert service["User"] == "dragoman"
    assert service["CapabilityBoundingSet"] == ""
    wanted = {"ProtectSystem": "strict", "ProtectHome": "yes", "NoNewPrivileges": "yes", "PrivateTmp": "yes"}
    assert {name: service[name] for name in wanted} == wanted
    assert set(unit("sandbox.conf")["Service"]) <= set(service)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    assert unit().sections() == ["Unit", "Service", "Install"]
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # where there is no systemd, it is enough that it can be read
    copy = tmp_path / "dragoman.service"
    # The program is not where it will be.
    copy.write_text((DEPLOY / "dragoman.service").read_text().replace("/opt/dragoman/bin/dragoman", sys.executable))
    verified = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, timeout=50, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = [analyze, "security", "--offline=true", "--threshold=25", str(copy)]
    judged = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert judged.returncode == 0, judged.stdout[-300:]


# -- the image -------------------------------------------------------------------------------------------------------


def steps() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_not_root_and_names_no_registry() -> None:
    (user,) = [rest for word, rest in steps() if word == "USER"]
    assert int(user.partition(":")[0]) >= 1000
    (base,) = [rest.partition("=")[2] for word, rest in steps() if word == "ARG"]
    assert "/" not in base
    assert {rest.split()[0] for word, rest in steps() if word == "FROM"} == {"${BASE}"}
    copied = [rest.split()[:-1] for word, rest in steps() if word == "COPY" and not rest.startswith("--from")]
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists()


def test_the_image_has_a_base_of_one_version() -> None:
    (base,) = [rest.partition("=")[2] for word, rest in steps() if word == "ARG"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)


def test_the_image_fetches_nothing_but_what_has_a_hash_and_builds_nothing_that_fetches() -> None:
    commands = [command.split() for word, rest in steps() if word == "RUN" for command in rest.split("&&")]
    pip = [words for words in commands if words[0].endswith("/pip")]
    fetching = [words for words in pip if words[1] in ("install", "wheel", "download") and "--no-index" not in words]
    files = []
    for words in fetching:
        assert {"--require-hashes", "--no-deps", "--only-binary", ":all:"} <= set(words)
        assert words[-2] == "-r"
        files.append(words[-1])
    assert files == ["requirements/build.txt", "requirements/console.txt", "requirements/runtime.txt"]
    here = [words for words in pip if "--no-index" in words]
    assert [words[1] for words in here] == ["wheel", "install"]
    assert "--no-build-isolation" in here[0]  # or pip would fetch what builds it
    assert all("--no-deps" in words for words in here)
    # The console is built by what was installed so, and npm by the hashes of its own lock.
    others = {words[0] for words in commands if words not in pip}
    assert others == {"python", "/build/tools/bin/python", "/opt/dragoman/bin/python", "mkdir", "chown"}
    assert ["/build/tools/bin/python", "-m", "tools.console"] in commands


def test_the_image_starts_the_command() -> None:
    (entry,) = [json.loads(rest) for word, rest in steps() if word == "ENTRYPOINT"]
    given = parsed(entry[1:])
    (port,) = [int(rest) for word, rest in steps() if word == "EXPOSE"]
    assert (entry[0], given.port, given.host) == ("dragoman", port, "0.0.0.0")  # type: ignore[attr-defined]


@pytest.mark.parametrize("healthy", [True, False])
async def test_the_health_check_knows_a_server_that_lives(healthy: bool, tmp_path: Path) -> None:
    (check,) = [rest for word, rest in steps() if word == "HEALTHCHECK"]
    python, *words = json.loads(check.partition("CMD ")[2])
    assert python == "python"
    async with gateway(counting(1), tmp_path) as served:
        port = served.server.port if healthy else free_port()
        words = [word.replace(":8790", f":{port}") for word in words]
        checking = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.DEVNULL)
        assert (await checking.wait() == 0) is healthy


# -- what the page says ----------------------------------------------------------------------------------------------


def test_the_limits_that_are_told_are_the_limits() -> None:
    table = (DEPLOY / "README.md").read_text().partition("## Limits")[2].partition("## Logs")[0]
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", table, flags=re.MULTILINE))
    mib = 1024 * 1024
    probing = dead_peers.IDLE_SECONDS + dead_peers.PROBES * dead_peers.INTERVAL_SECONDS
    expected = {
        "body of a request": f"{endpoint.BODY_BYTES // mib} MiB, within 30 s",
        "bodies that are read or worked on at once": f"{http_replies.BODIES_EACH_BYTES // mib} MiB of one principal, "
        f"{http_replies.BODIES_ALL_BYTES // mib} MiB of all",
        "values in a message": f"{precheck.VALUES}, names and commas among them",
        "messages of a principal on WebSockets": f"{guard.MESSAGE_RATE:g} a second, {guard.MESSAGE_BURST:g} at once",
        "a connection that asks nothing": f"{idle_sockets.FIRST_SECONDS:g} s at first, "
        f"{idle_sockets.BETWEEN_SECONDS:g} s between requests; {idle_sockets.SILENT} at once",
        "sockets at once": f"{server._AT_ONCE}, and three quarters of the descriptors that the process may open, "
        "or two fifths with our own agent",
        "held for all streams": f"{replay_buffer.HELD_EACH_BYTES // mib} MiB of one principal, "
        f"{replay_buffer.HELD_ALL_BYTES // mib} MiB of all; up to twice that, if many are new",
        "tokens that cannot be read": f"503 at once; who is in stays for {guard.UNSURE_SECONDS:g} s",
        "headers": f"{host_check.HEADER_COUNT}, {host_check.HEADER_BYTES // 1024} KiB, within 10 s",
        "requests of a principal": f"{guard.RATE:g} a second, {guard.BURST:g} at once",
        "wrong tokens from an address": f"{guard._WRONG_RATE:g} a second, {guard._WRONG_BURST:g} at once",
        "connections": f"{connections.CONNECTIONS}, {connections.CONNECTIONS_EACH} of one principal",
        "streams of a connection": f"{session_streams.STREAMS}",
        "held for a stream, read or not": f"{replay_buffer.BUFFER_BYTES // mib} MiB; "
        f"{session_streams.HELD_BYTES // mib} MiB for all of a connection",
        "held of a turn for clients that join it": f"{turn_buffer.TURN_BYTES // mib} MiB",
        "a reader that stops": f"{replay_buffer.STALL_SECONDS:g} s",
        "a peer that is gone without a word": f"about {probing} s, by TCP keep-alive",
        "a connection whose client does not come back": f"{connections.KEPT_SECONDS / 60:g} minutes",
        "a question without a client that may answer it": f"{open_questions.ALONE_SECONDS / 60:g} minutes",
        "processes of a registry agent": f"{agent_source.PROCESSES}",
        "a stop": f"`--grace`, {server.GRACE_SECONDS:g} s; then turns are cancelled, {hub._CANCEL_SECONDS:g} s",
    }
    assert {name: rows.get(name) for name in expected} == expected


def test_every_event_of_the_log_is_told_of() -> None:
    told = (DEPLOY / "README.md").read_text().partition("## Logs")[2].partition("## Metrics")[0]
    sources = [*(ROOT / "src" / "dragoman" / "gateway").glob("*.py"), ROOT / "src" / "dragoman" / "cli" / "serve.py"]
    said = {
        name for file in sources for name in re.findall(r"log\.(?:info|error|debug)\(\s*\"(\w+)\"", file.read_text())
    }
    assert len(said) >= 10
    assert {name for name in said if f"`{name}`" not in told} == set()


def test_the_proxies_point_to_where_the_unit_listens() -> None:
    given = parsed(shlex.split(unit()["Service"]["ExecStart"])[1:])
    for name in ("nginx.conf", "Caddyfile"):
        text = (DEPLOY / name).read_text()
        assert f"{given.host}:{given.port}" in text  # type: ignore[attr-defined]
        for allowed in given.allowed_host:  # type: ignore[attr-defined]
            assert allowed in text


# -- TLS -------------------------------------------------------------------------------------------------------------


async def greeted(url: str, token: str) -> None:
    """Our own client says hello."""
    async with connect(transport_for(url, token)) as client:
        assert client.agent.info is not None


@pytest.mark.timeout(120)
async def test_tls_with_both_versions_of_http_and_a_websocket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = need("openssl")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate), "-keyout", str(key)]
    made = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    assert await made.wait() == 0
    port = free_port()
    async with serving(tmp_path / "home", port, SLOW, "--certificate", str(certificate), "--key", str(key)) as running:
        for protocol in ("h2", "http/1.1"):
            context = ssl.create_default_context(cafile=str(certificate))
            context.set_alpn_protocols([protocol])
            _, writer = await asyncio.open_connection("localhost", port, ssl=context)
            secured = writer.get_extra_info("ssl_object")
            assert (secured.selected_alpn_protocol(), secured.version()) == (protocol, "TLSv1.3")
            writer.close()
        context = ssl.create_default_context(cafile=str(certificate))
        async with httpx2.AsyncClient(verify=context) as client:
            assert (await client.get(f"https://localhost:{port}/health")).json() == {"status": "ok"}
        command = [need("curl"), "-sS", "--http2", "--cacert", str(certificate), "-w", " %{http_version}"]
        asked = await asyncio.create_subprocess_exec(
            *command, f"https://localhost:{port}/health", stdout=asyncio.subprocess.PIPE
        )
        assert (await asked.communicate())[0] == b'{"status":"ok"} 2'
        monkeypatch.setattr(http, "FIRST_SECONDS", 0.0)
        with pytest.raises(LinkClosed, match="its certificate is not trusted"):
            await greeted(f"https://localhost:{port}", running.token)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await greeted(f"https://localhost:{port}", running.token)
        headers = {"Authorization": f"Bearer {running.token}"}
        async with websocket(
            f"wss://localhost:{port}/acp", additional_headers=headers, ssl=context, proxy=None
        ) as peer:
            await peer.send('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}')
            assert json.loads(await peer.recv())["result"]["protocolVersion"] == 1
        old = ssl.create_default_context(cafile=str(certificate))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("localhost", port, ssl=old)
