"""Whom a client believes, and a certificate that is renewed while the server runs, on real sockets."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import connect
from dragoman.agent.agent import Agent
from dragoman.errors import LinkClosed, UsageError
from dragoman.gateway.certificate_files import CertificateFiles
from dragoman.vocabulary.events import AgentMessageChunk
from tests.support.certificates import certificate_files
from tests.support.gateway import Served, gateway
from tests.support.gateway_process import words
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
both_transports = pytest.mark.parametrize("scheme", ["https", "wss"])


def talking(go_on: asyncio.Event | None = None) -> Agent:
    """An agent that waits in the middle of a turn, where it is told to."""
    agent = Agent("talking")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        if prompt.text == "wait" and go_on is not None:
            await session.say("I wait. ")
            await go_on.wait()
        await session.say(f"You said {prompt.text}.")

    return agent


@asynccontextmanager
async def secured(
    folder: Path, certificate: tuple[Path, Path], go_on: asyncio.Event | None = None
) -> AsyncIterator[Served]:
    async with gateway(talking(go_on), folder, host="localhost", certificate=certificate) as running:
        yield running


def url_of(served: Served, scheme: str = "https") -> str:
    return f"{scheme}://localhost:{served.server.port}"


@pytest.mark.requirement("K22")
@both_transports
async def test_a_client_believes_the_authorities_in_its_file_and_no_others(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.transports.http.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("dragoman.transports.websocket.FIRST_SECONDS", 0.0)
    pair = certificate_files(tmp_path / "own")
    stranger, _ = certificate_files(tmp_path / "stranger")
    async with secured(tmp_path, pair) as served:
        url = url_of(served, scheme)
        async with connect(url, token=served.token, ca_file=pair[0]) as client:
            session = await client.new_session(tmp_path)
            assert (await session.ask("hello")).text == "You said hello."
        for trusted in (None, stranger):
            with pytest.raises(LinkClosed, match="its certificate is not trusted"):
                async with connect(url, token=served.token, ca_file=trusted):
                    pass


@pytest.mark.requirement("K22")
async def test_a_certificate_of_another_host_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.http.FIRST_SECONDS", 0.0)
    pair = certificate_files(tmp_path / "other", "other.example")
    async with secured(tmp_path, pair) as served:
        with pytest.raises(LinkClosed, match="its certificate is not trusted"):
            async with connect(url_of(served), token=served.token, ca_file=pair[0]):
                pass


@pytest.mark.requirement("K22")
@pytest.mark.parametrize(
    ("url", "file", "complaint"),
    [
        ("https://x.example", "nowhere.pem", "nowhere.pem: no such file or directory"),
        ("https://x.example", "text.pem", "text.pem has no certificate in PEM"),
        ("http://x.example", "cert.pem", "goes with https:// or wss://, not with http://"),
        ("agent --acp", "cert.pem", "ca_file is for an agent behind an address"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_before_anything_is_sent(
    url: str, file: str, complaint: str, tmp_path: Path
) -> None:
    certificate_files(tmp_path)
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(UsageError, match=complaint):
        connect(url, ca_file=tmp_path / file)


async def presented(served: Served) -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        _, writer = await asyncio.open_connection("localhost", served.server.port, ssl=context)
    except ConnectionError:  # it was accepted by what just stops
        return b""
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    assert isinstance(shown, bytes)
    return shown


def content(certificate: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


@pytest.mark.requirement("K23")
@both_transports
async def test_a_renewed_certificate_is_served_and_turns_go_on(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.server.CERTIFICATE_SECONDS", 0.02)
    monkeypatch.setattr("dragoman.gateway.server._TAKE_OVER_SECONDS", 0.05)
    first, second = tmp_path / "first", tmp_path / "second"
    certificate_files(first)
    certificate_files(second)
    live = tmp_path / "live"
    live.symlink_to(first)  # as programs that renew certificates have it
    go_on = asyncio.Event()
    async with secured(tmp_path, (live / "cert.pem", live / "key.pem"), go_on) as served:
        assert await presented(served) == content(first / "cert.pem")
        trusted = tmp_path / "authorities.pem"
        trusted.write_text((first / "cert.pem").read_text() + (second / "cert.pem").read_text())
        async with connect(url_of(served, scheme), token=served.token, ca_file=trusted) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("wait")
            async for event in turn:
                if isinstance(event, AgentMessageChunk):
                    break
            (tmp_path / "next").symlink_to(second)
            (tmp_path / "next").rename(live)
            renewed = content(second / "cert.pem")
            seen: list[bytes] = []
            while seen[-5:] != [renewed] * 5:  # the former one accepts no more
                seen.append(await presented(served))
            go_on.set()
            assert words([event async for event in turn]) == "You said wait."
            assert (await session.ask("hello")).text == "You said hello."
        async with connect(url_of(served, scheme), token=served.token, ca_file=second / "cert.pem") as client:
            assert client.agent.info is not None


@pytest.mark.requirement("K23")
def test_files_that_do_not_fit_yet_do_not_count(tmp_path: Path) -> None:
    certificate, key = certificate_files(tmp_path / "one")
    other_certificate, other_key = certificate_files(tmp_path / "two")
    files = CertificateFiles(certificate, key)
    assert files.renewed() is None
    shutil.copy(other_certificate, certificate)
    assert files.renewed() == files.renewed() == "KEY_VALUES_MISMATCH"
    shutil.copy(other_key, key)
    assert files.renewed() == ""
    assert files.renewed() is None
    key.unlink()
    assert files.renewed() == "No such file or directory"


@pytest.mark.requirement("K23")
async def test_a_pair_that_does_not_fit_is_logged_once_and_the_former_one_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.server.CERTIFICATE_SECONDS", 0.01)
    certificate, key = certificate_files(tmp_path / "one")
    other, _ = certificate_files(tmp_path / "two")
    before = content(certificate)
    looks = 0
    look = CertificateFiles.renewed

    def counted(files: CertificateFiles) -> str | None:
        nonlocal looks
        looks += 1
        return look(files)

    monkeypatch.setattr(CertificateFiles, "renewed", counted)
    async with secured(tmp_path, (certificate, key)) as served:
        errors: list[dict[str, object]] = []
        monkeypatch.setattr(served.hub.monitor.log, "error", lambda event, **fields: errors.append({event: fields}))
        Path(shutil.copy(other, tmp_path / "next.pem")).replace(certificate)
        await until(lambda: bool(errors), "the error")
        at = looks
        await until(lambda: looks > at + 2, "more looks")
        assert errors == [{"certificate": {"reason": "KEY_VALUES_MISMATCH"}}]
        assert await presented(served) == before
