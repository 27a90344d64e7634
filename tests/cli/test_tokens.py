"""`dragoman tokens`: create, list and revoke, as people and programs read it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.token_fields import expiry_of
from dragoman.errors import UsageError
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import Token, TokenLimits, Unsure, digest_of
from tests.support.command import Called, call


def tokens(folder: Path, *words: str) -> Called:
    return call("tokens", *words, DRAGOMAN_HOME=str(folder / "home"))


def listed(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tokens(folder, "list", "--json").out)
    return found


def kept(folder: Path) -> TokenStore:
    return TokenStore(folder / "home" / "gateway" / "tokens.json")


def test_a_token_is_created_with_all_its_fields_and_shown_once(tmp_path: Path) -> None:
    (tmp_path / "bob").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "bob")
    made = tokens(
        *(tmp_path, "create", "bob", "--scopes", "read,prompt", "--principal", "robert", "--max-mode", "safe"),
        *("--workspace", str(tmp_path / "way"), "--expires", "30d", "--json"),
    )
    assert (made.code, made.error) == (0, "")
    shown = json.loads(made.out)
    secret = shown.pop("token")
    (row,) = listed(tmp_path)
    assert row == shown
    created, expires = row.pop("created"), row.pop("expires")
    assert created < expires
    assert row == {
        "name": "bob",
        "principal": "robert",
        "scopes": ["read", "prompt"],
        "maxMode": "safe",
        "workspaces": [os.path.realpath(tmp_path / "bob")],
        "allowUnconfined": False,
        "allowMcpPrograms": False,
        "expired": False,
    }
    assert secret not in kept(tmp_path).path.read_text()
    (token,) = kept(tmp_path).valid()
    assert token.digest == digest_of(secret.encode())
    assert abs(token.expires - token.created - 30 * 86_400) <= 1  # both are whole seconds


def test_the_plain_output_is_the_token_and_nothing_else(tmp_path: Path) -> None:
    made = tokens(tmp_path, "create", "phone")
    (token,) = kept(tmp_path).valid()
    hint = "dragoman: without --workspace DIR this token works in every folder that the server's user can write\n"
    assert (made.code, made.error) == (0, hint)
    assert token.digest == digest_of(made.out.strip().encode())
    assert (token.principal, token.scopes, token.limits) == ("phone", ("read", "prompt"), TokenLimits())


def test_the_list_shows_no_token_and_no_hash(tmp_path: Path) -> None:
    secret = tokens(tmp_path, "create", "phone", "--allow-unconfined").out.strip()
    (token,) = kept(tmp_path).valid()
    for words in (("list",), ("list", "--json")):
        shown = tokens(tmp_path, *words)
        assert shown.code == 0
        assert "phone" in shown.out
        assert secret not in shown.out
        assert token.digest not in shown.out
    assert "+unconfined" in tokens(tmp_path, "list").out


def test_a_revoked_token_is_gone_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    tokens(tmp_path, "create", "phone")
    assert tokens(tmp_path, "revoke", "phone", "--json") == Called(0, '{"revoked": "phone"}\n', "")
    assert listed(tmp_path) == []
    again = tokens(tmp_path, "revoke", "phone")
    assert again == Called(1, "", "dragoman: there is no token 'phone'; see: dragoman tokens list\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--scopes", "write"], "--scopes: there is no scope 'write'; there are read, prompt, admin"),
        (["--max-mode", "root"], "unknown mode 'root'; there are read-only, plan"),
        (["--workspace", "/nowhere/at/all"], "--workspace /nowhere/at/all: there is no such folder"),
        (["--expires", "soon"], "--expires soon: write 30d, 12h, or a date as 2027-01-31"),
        (["--expires", "2001-01-01"], "--expires 2001-01-01: that is not in the next hundred years"),
        (["--max-mode", ""], "unknown mode ''; there are read-only, plan"),
        (["--workspace", ""], "--workspace : there is no such folder"),
        (["--expires", ""], "--expires : write 30d, 12h, or a date as 2027-01-31"),
        (["--principal", "two\nlines"], "a principal has 1 to 64 printable characters"),
        (["--principal", "\udcff"], "a principal has 1 to 64 printable characters"),
        (["--principal", " "], "a principal has 1 to 64 printable characters"),
    ],
)
def test_what_is_wrong_is_said_and_makes_no_token(words: list[str], sentence: str, tmp_path: Path) -> None:
    done = tokens(tmp_path, "create", "bob", *words)
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith(f"dragoman: {sentence}")
    assert listed(tmp_path) == []


def test_a_folder_that_no_file_of_ours_can_name_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    done = tokens(tmp_path, "create", "bob", "--workspace", str(folder))
    assert (done.code, done.out) == (2, "")
    assert done.error == "dragoman: --workspace: the name of this folder is not UTF-8; rename it\n"
    assert listed(tmp_path) == []


def test_a_file_of_another_user_is_neither_believed_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that could put it there could admit any client."""
    tokens(tmp_path, "create", "bob")
    before = kept(tmp_path).path.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(Unsure, match="it belongs to another user"):
        kept(tmp_path).valid()
    done = tokens(tmp_path, "create", "eve")
    assert (done.code, done.out) == (2, "")
    assert kept(tmp_path).path.read_bytes() == before


def test_a_token_file_of_its_own_is_used(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "t.json"
    assert tokens(tmp_path, "create", "a", "--token-file", str(file)).code == 0
    assert [token.name for token in TokenStore(file).valid()] == ["a"]
    assert listed(tmp_path) == []


def test_files_of_earlier_releases_are_read_and_written_anew(tmp_path: Path) -> None:
    file = kept(tmp_path).path
    file.parent.mkdir(parents=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps({"tokens": [["old", "ada", ["read", "prompt"], "ab" * 32]]}))
    assert list(kept(tmp_path).valid()) == [Token("old", "ada", ("read", "prompt"), "ab" * 32)]
    tokens(tmp_path, "create", "new")
    old, new = json.loads(file.read_text())["tokens"]
    assert old == {"name": "old", "principal": "ada", "scopes": ["read", "prompt"], "digest": "ab" * 32}
    assert new["name"] == "new"
    assert new["created"] > 0
    assert [row["created"] is None for row in listed(tmp_path)] == [True, False]


def test_an_expired_token_counts_as_revoked_and_frees_its_name(tmp_path: Path) -> None:
    now = [1000.0]
    found = TokenStore(tmp_path / "tokens.json", clock=lambda: now[0])
    found.make("phone", expires=1060)
    assert [token.name for token in found.valid()] == ["phone"]
    now[0] = 1060.0
    assert list(found.valid()) == []
    assert [token.name for token in found.all()] == ["phone"]
    found.make("phone")
    assert [token.expires for token in found.all()] == [0]


@pytest.mark.parametrize(
    ("text", "end"),
    [("12h", 43_200), ("30d", 2_592_000), ("90m", 5_400), ("2w", 1_209_600), ("1970-01-03T00:00:00Z", 172_800)],
)
def test_an_end_is_a_span_or_a_date(text: str, end: int) -> None:
    assert expiry_of(text, 0.0) == end


def test_a_span_of_nothing_is_no_end() -> None:
    with pytest.raises(UsageError):
        expiry_of("0d", 1000.0)


def test_the_options_of_serve_point_to_the_new_command(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    made = call("serve", "--new-token", "phone", "--scopes", "read", DRAGOMAN_HOME=home)
    word = "dragoman: this option goes with the next release; use: dragoman tokens"
    assert (made.code, made.error) == (0, f"{word} create NAME\n")
    assert digest_of(made.out.strip().encode()) == kept(tmp_path).valid()[0].digest
    gone = call("serve", "--revoke-token", "phone", DRAGOMAN_HOME=home)
    assert (gone.code, gone.error) == (0, f"{word} revoke NAME\n")
    assert listed(tmp_path) == []


def test_tab_offers_the_tokens_to_revoke(tmp_path: Path) -> None:
    tokens(tmp_path, "create", "phone", "--principal", "ada")
    home = str(tmp_path / "home")
    assert call("completion", "--words", "tokens", "revoke", "", DRAGOMAN_HOME=home).out.splitlines()[0] == "phone\tada"
    assert (
        "workspace-write"
        in call("completion", "--words", "tokens", "create", "--max-mode", "w", DRAGOMAN_HOME=home).out
    )
