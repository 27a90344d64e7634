"""A token for a server elsewhere is not sent in the clear without a word."""

import json
from pathlib import Path

import pytest

from dragoman.client.targets import is_readable_on_the_way
from tests.support import command as called
from tests.support.certificates import certificate_files

FAR = "http://192.0.2.7:9"


@pytest.mark.parametrize("url", [FAR, "ws://agents.example.org", "http://[2001:db8::1]/acp", "http://0.0.0.0:1"])
def test_plain_http_to_another_host_can_be_read_on_the_way(url: str) -> None:
    assert is_readable_on_the_way(url)


@pytest.mark.parametrize(
    "url", ["https://a.example", "wss://a.example", "http://127.0.0.9:1", "ws://[::1]:1", "http://x.localhost"]
)
def test_tls_and_this_machine_cannot(url: str) -> None:
    assert not is_readable_on_the_way(url)


@pytest.mark.requirement("K24")
@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (("connect", FAR), True),
        (("connect", "http://127.0.0.1:9"), False),
        (("run", "hi", "--agent", FAR), True),
        (("run", "hi", "--agent", "http://127.0.0.1:9"), False),
        (("run", "hi", "--agent", "far"), True),
        (("chat", "--agent", FAR), True),
    ],
)
def test_a_command_that_sends_a_token_there_warns_on_stderr(
    words: tuple[str, ...], warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.transports.remote.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("dragoman.transports.remote.OPEN_SECONDS", 0.1)
    (tmp_path / "acp.json").write_text(json.dumps({"servers": {"far": {"url": FAR, "token": "$FAR_TOKEN"}}}))
    token = "t" * 43
    done = called.call(*words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path), DRAGOMAN_TOKEN=token, FAR_TOKEN=token)
    assert ("is not encrypted" in done.error) is warned
    assert token not in done.error


@pytest.mark.requirement("K24")
@pytest.mark.parametrize("words", [("connect", FAR), ("run", "hi", "--agent", FAR), ("run", "hi", "--agent", "far")])
def test_insecure_silences_the_warning(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.remote.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("dragoman.transports.remote.OPEN_SECONDS", 0.1)
    (tmp_path / "acp.json").write_text(json.dumps({"servers": {"far": {"url": FAR, "token": "$FAR_TOKEN"}}}))
    token = "t" * 43
    more = (*words, "--insecure")
    done = called.call(*more, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path), DRAGOMAN_TOKEN=token, FAR_TOKEN=token)
    assert "is not encrypted" not in done.error


@pytest.mark.requirement("K24")
@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (("--host", "192.0.2.7"), True),
        (("--host", "192.0.2.7", "--insecure"), False),
        (("--host", "192.0.2.7", "--certificate", "cert.pem", "--key", "key.pem"), False),
    ],
)
def test_a_server_for_others_without_tls_warns_on_stderr(words: tuple[str, ...], warned: bool, tmp_path: Path) -> None:
    certificate_files(tmp_path)
    assert called.call("tokens", "create", "me", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path)).code == 0
    done = called.call("serve", "--model", "demo", *words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path))
    assert ("can read tokens" in done.error) is warned
    assert "192.0.2.7" in done.error  # an address that is none of this machine


@pytest.mark.parametrize("words", [("run", "hi"), ("run", "hi", "--agent", "far"), ("agents", "add", "x", "y")])
def test_authorities_go_with_an_address(words: tuple[str, ...], tmp_path: Path) -> None:
    done = called.call(*words, "--ca-file", "x.pem", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith("dragoman: --ca-file goes with an address, such as ")


@pytest.mark.parametrize("command", ["connect", "run"])
def test_authorities_that_cannot_be_read_are_named(command: str, tmp_path: Path) -> None:
    words = ("connect", "https://x.example") if command == "connect" else ("run", "hi", "--agent", "https://x.example")
    done = called.call(*words, "--ca-file", "nowhere.pem", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path))
    assert done.code == 2
    assert "nowhere.pem: no such file or directory" in done.error


def test_authorities_are_kept_with_an_agent_that_is_added(tmp_path: Path) -> None:
    certificate_files(tmp_path)
    words = ("agents", "add", "far", "--ca-file", "cert.pem", "https://x.example")
    assert called.call(*words, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path)).code == 0
    kept = {"url": "https://x.example", "caFile": str(tmp_path / "cert.pem")}
    assert json.loads((tmp_path / "acp.json").read_text()) == {"servers": {"far": kept}}


def test_without_a_token_there_is_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.remote.OPEN_SECONDS", 0.1)
    done = called.call("connect", FAR, cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path), DRAGOMAN_TOKEN=None)
    assert "is not encrypted" not in done.error
