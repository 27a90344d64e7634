"""The file of tokens, and whose sessions are whose."""

from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.gateway import tokens as tokens_module
from dragoman.gateway.guard import Guard, Pass, is_loopback, scopes_of
from dragoman.gateway.owners import Owners
from dragoman.gateway.tokens import Tokens, read_token


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "_LOOK_SECONDS", 0.0)


def test_a_token_is_kept_as_its_hash_in_a_file_of_its_owner(tmp_path: Path) -> None:
    kept = Tokens(tmp_path / "new" / "tokens.json")
    first, second = kept.make("one"), kept.make("two", ("read",), principal="one")
    text = kept.path.read_text()
    assert first not in text and second not in text
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    again = Tokens(kept.path)
    assert [(token.name, token.principal, token.scopes) for token in again.valid()] == [
        ("one", "one", ("read", "prompt", "admin")),
        ("two", "one", ("read",)),
    ]
    assert [file.name for file in kept.path.parent.iterdir()] == ["tokens.json"]


def test_revoking_counts_for_a_server_that_runs(tmp_path: Path) -> None:
    running, other = Tokens(tmp_path / "t"), Tokens(tmp_path / "t")
    token = other.make("phone")
    guard = Guard(running.valid, ["localhost"], 1, lambda: 0.0)
    shown = [(b"authorization", f"Bearer {token}".encode())]
    assert isinstance(guard.enter(shown, ""), Pass)
    assert other.revoke("phone")
    assert not isinstance(guard.enter(shown, ""), Pass)
    assert not guard.is_valid("phone")
    assert not other.revoke("phone")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tokens": [1]}', b"\xff"])
def test_a_file_that_cannot_be_read_lets_nobody_in_and_is_not_overwritten(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    path.chmod(0o600)
    assert Tokens(path).valid() == ()
    with pytest.raises(UsageError, match="no file of tokens"):
        Tokens(path).make("new")
    assert path.read_bytes() == content


def test_a_file_that_others_can_read_lets_nobody_in(tmp_path: Path) -> None:
    kept = Tokens(tmp_path / "t")
    token = kept.make("one")
    kept.path.chmod(0o640)
    assert Tokens(kept.path).valid() == ()
    (tmp_path / "token").write_text(token)
    (tmp_path / "token").chmod(0o604)
    with pytest.raises(UsageError, match="chmod 600"):
        read_token(tmp_path / "token")
    (tmp_path / "token").chmod(0o600)
    assert read_token(tmp_path / "token") == token


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 65])
def test_a_name_nobody_can_say_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Tokens(tmp_path / "t").make(name)


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


def test_owners_survive_a_restart_and_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "gateway" / "owners.jsonl"
    Owners(file).add("s1", "alice")
    with file.open("ab") as opened:
        opened.write(b'\n["s2", "bo')  # the machine went down here
    owners = Owners(file)
    owners.add("s3", "carol")
    owners.add("s1", "mallory")  # it has an owner already
    again = Owners(file)
    assert [again.of(name) for name in ("s1", "s2", "s3")] == ["alice", None, "carol"]
    assert file.stat().st_mode & 0o777 == 0o600
