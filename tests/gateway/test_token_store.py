"""The file of tokens."""

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.gateway import token_store as tokens_module
from dragoman.gateway.host_check import is_loopback
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import Token, TokenIdentity, Unsure, scopes_of
from dragoman.transports.token import TokenFile, read_token
from tests.support.guards import ImmediateGuard


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "_CHECK_SECONDS", 0.0)


def test_a_token_is_kept_as_its_hash_in_a_file_of_its_owner(tmp_path: Path) -> None:
    kept = TokenStore(tmp_path / "new" / "tokens.json")
    first, second = kept.make("one"), kept.make("two", ("read",), principal="one")
    text = kept.path.read_text()
    assert first not in text and second not in text
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    again = TokenStore(kept.path)
    assert [(token.name, token.principal, token.scopes) for token in again.valid()] == [
        ("one", "one", ("read", "prompt", "admin")),
        ("two", "one", ("read",)),
    ]
    assert [file.name for file in kept.path.parent.iterdir()] == ["tokens.json"]


def test_revoking_counts_for_a_server_that_runs(tmp_path: Path) -> None:
    running, other = TokenStore(tmp_path / "t"), TokenStore(tmp_path / "t")
    token = other.make("phone")
    guard = ImmediateGuard(running.valid, ["localhost"], 1, lambda: 0.0)
    shown = [(b"authorization", f"Bearer {token}".encode())]
    token_identity = guard.authenticate(shown, "")
    assert isinstance(token_identity, TokenIdentity)
    assert other.revoke("phone")
    assert not isinstance(guard.authenticate(shown, ""), TokenIdentity)
    assert not guard.is_valid(token_identity)
    assert not other.revoke("phone")
    other.make("phone", ("read",))
    assert not guard.is_valid(token_identity)


def test_a_token_that_expires_ends_what_came_in_by_it(tmp_path: Path) -> None:
    now = [1000.0]
    running = TokenStore(tmp_path / "t", clock=lambda: now[0])
    token = running.make("phone", expires=1060)
    guard = ImmediateGuard(running.valid, ["localhost"], 1, lambda: 0.0)
    shown = [(b"authorization", f"Bearer {token}".encode())]
    token_identity = guard.authenticate(shown, "")
    assert isinstance(token_identity, TokenIdentity)
    assert guard.is_valid(token_identity)
    now[0] = 1060.0
    assert not isinstance(guard.authenticate(shown, ""), TokenIdentity)
    assert not guard.is_valid(token_identity)


def test_a_change_waits_for_the_one_that_is_being_made_and_undoes_nothing(tmp_path: Path) -> None:
    """Between a process's look and its writing another one cannot write."""
    first, second = TokenStore(tmp_path / "t"), TokenStore(tmp_path / "t")
    first.make("stolen")
    write = first._write
    revoked: list[bool] = []
    revoking = threading.Thread(target=lambda: revoked.append(second.revoke("stolen")))

    def slowly(tokens: list[Token]) -> None:
        revoking.start()
        revoking.join(0.2)
        assert not revoked
        write(tokens)

    first._write = slowly  # type: ignore[method-assign]
    first.make("new")
    revoking.join(10)
    assert revoked == [True]
    assert [token.name for token in TokenStore(tmp_path / "t").valid()] == ["new"]


def test_a_process_that_holds_the_file_for_ever_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "_WAIT_SECONDS", 0.05)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process changes the tokens"):
            TokenStore(tmp_path / "t").make("new")
    finally:
        os.close(held)


def test_a_file_that_cannot_be_read_for_a_moment_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = TokenStore(tmp_path / "t")
    kept.make("one")
    stat = Path.stat

    def broken(path: Path, **more: bool) -> os.stat_result:
        if path == kept.path:
            raise OSError(errno.EIO, "Input/output error")
        return stat(path, **more)

    with monkeypatch.context() as now:
        now.setattr(Path, "stat", broken)
        with pytest.raises(Unsure, match="input/output error"):
            kept.valid()
    assert [token.name for token in kept.valid()] == ["one"]


def test_a_server_that_runs_sees_that_others_may_read_its_file(tmp_path: Path) -> None:
    kept = TokenStore(tmp_path / "t")
    kept.make("one")
    kept.valid()
    kept.path.chmod(0o640)
    with pytest.raises(Unsure, match="chmod 600"):
        kept.valid()


def test_a_file_from_which_every_token_was_revoked_is_not_a_new_one(tmp_path: Path) -> None:
    assert TokenStore(tmp_path / "t").never_made
    kept = TokenStore(tmp_path / "t")
    kept.make("one")
    assert kept.revoke("one")
    assert not kept.never_made
    assert not TokenStore(tmp_path / "t").never_made
    assert kept.valid() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tokens": [1]}', b"\xff"])
def test_a_file_that_cannot_be_read_admits_no_token_and_is_not_overwritten(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    path.chmod(0o600)
    for use in (TokenStore(path).valid, lambda: TokenStore(path).make("new"), lambda: TokenStore(path).never_made):
        with pytest.raises(Unsure, match="no file of tokens"):
            use()
    assert path.read_bytes() == content


def test_a_file_that_others_can_read_admits_no_token(tmp_path: Path) -> None:
    kept = TokenStore(tmp_path / "t")
    token = kept.make("one")
    kept.path.chmod(0o640)
    with pytest.raises(Unsure, match="chmod 600"):
        TokenStore(kept.path).valid()
    (tmp_path / "token").write_text(token)
    (tmp_path / "token").chmod(0o604)
    with pytest.raises(UsageError, match="chmod 600"):
        read_token(tmp_path / "token")
    (tmp_path / "token").chmod(0o600)
    assert read_token(tmp_path / "token") == token


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 65])
def test_a_name_that_cannot_be_typed_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        TokenStore(tmp_path / "t").make(name)


def test_scopes_are_named(tmp_path: Path) -> None:
    assert scopes_of("read, prompt,read") == ("read", "prompt")
    for wrong in ("", "all", "read,write"):
        with pytest.raises(ValueError, match="scope"):
            scopes_of(wrong)


@pytest.mark.parametrize(
    ("host", "loops"),
    [
        *[("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)],
        *[("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil", False), ("", False)],
    ],
)
def test_what_only_this_machine_reaches(host: str, loops: bool) -> None:
    assert is_loopback(host) is loops


def test_a_file_of_a_token_is_read_anew_and_the_last_one_counts_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    file.chmod(0o600)
    renewed = TokenFile(file)
    assert renewed.current() == "first"
    file.write_text("second\n")
    assert renewed.current() == "second"
    file.write_text("")
    assert renewed.current() == "second"
    file.unlink()
    assert renewed.current() == "second"
    assert "second" not in repr(renewed)


def test_a_file_that_could_not_be_read_again_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = TokenStore(tmp_path / "t")
    kept.make("first")
    monkeypatch.setattr(tokens_module, "_FILE_BYTES", kept.path.stat().st_size + 10)
    with pytest.raises(UsageError, match="revoke some"):
        kept.make("second")
    assert [token.name for token in TokenStore(kept.path).valid()] == ["first"]
    assert kept.revoke("first")
