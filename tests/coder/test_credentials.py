"""Keys: where they come from, how the file is kept, and that they do not show."""

import os
import pickle
import stat
import threading
import traceback
from pathlib import Path

import pytest

from dragoman.coder.credentials import (
    Credentials,
    CredentialsError,
    Secret,
    check_key,
    forget,
    load,
    save,
    without_secrets,
)

CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "credentials.toml"


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(CANARY)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret, repr({"key": [secret]})]  # noqa: UP031
    shown.append(repr(Credentials({"openai": secret})))
    assert [text for text in shown if "canary" in text] == []
    assert secret.reveal() == CANARY
    assert secret == Secret(CANARY) and secret != Secret("other") and secret != CANARY
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_the_environment_comes_before_the_file() -> None:
    credentials = Credentials({"openai": Secret("of-the-file"), "mine": Secret("mine-of-the-file")})
    environment = {"OPENAI_API_KEY": " of-the-environment\n", "MY_KEY": "mine-of-the-environment", "EMPTY": " "}
    assert credentials.find("openai", environment) == Secret("of-the-environment")
    assert credentials.find("openai", {}) == Secret("of-the-file")
    assert credentials.find("mine", environment) == Secret("mine-of-the-file")
    assert credentials.find("mine", environment, "MY_KEY") == Secret("mine-of-the-environment")
    assert credentials.find("mine", environment, "EMPTY") == Secret("mine-of-the-file")
    assert credentials.find("anthropic", environment) is None
    # Another provider's key is never lent.
    assert credentials.find("ollama", environment) is None


def test_a_saved_key_is_found_again_and_only_we_can_read_it(path: Path) -> None:
    assert load(path) == Credentials()
    save(path, "openai", Secret(CANARY))
    save(path, "anthropic", Secret("second"))
    save(path, "openai", Secret('third"\\'))
    assert load(path) == Credentials({"openai": Secret('third"\\'), "anthropic": Secret("second")})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_forgotten_key_is_gone_and_the_others_stay(path: Path) -> None:
    assert not forget(path, "openai")
    save(path, "openai", Secret(CANARY))
    save(path, "mine", Secret("second"))
    assert forget(path, "openai") and not forget(path, "openai")
    assert load(path) == Credentials({"mine": Secret("second")})
    assert CANARY not in path.read_text()


def test_saving_keeps_what_else_is_in_the_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('[mine]\napi_key = "a"\nnote = "tab\\there \\u007f"\n["odd name"]\napi_key = "b"\n')
    path.chmod(0o600)
    save(path, "openai", Secret("c"))
    assert load(path).keys == {"mine": Secret("a"), "odd name": Secret("b"), "openai": Secret("c")}
    assert "tab\\u0009here \\u007f" in path.read_text()


def test_a_file_that_others_can_read_is_warned_of(path: Path) -> None:
    save(path, "openai", Secret(CANARY))
    path.chmod(0o644)
    assert "chmod 600" in load(path).warning
    save(path, "openai", Secret(CANARY))
    assert load(path).warning == ""


def test_a_file_that_others_can_write_is_not_used(path: Path) -> None:
    save(path, "openai", Secret(CANARY))
    path.chmod(0o620)
    with pytest.raises(CredentialsError, match="chmod 600"):
        load(path)


@pytest.mark.parametrize(
    "content",
    [
        f'[openai]\napi_key = "{CANARY}'.encode(),
        f'api_key = "{CANARY}"'.encode(),
        b"[openai]\napi_key = 12",
        b"\xff\xfe" + CANARY.encode(),
        b"# " + CANARY.encode() * 10_000,
        b"a=" + b"[" * 5000 + CANARY.encode(),
    ],
)
def test_a_bad_file_is_explained_without_quoting_it(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(CredentialsError) as caught:
        load(path)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(CredentialsError):
        save(path, "openai", Secret("new"))
    assert path.read_bytes() == content


def test_a_key_that_is_none_is_explained_without_quoting_it_and_can_be_replaced(path: Path) -> None:
    save(path, "openai", Secret(f"{CANARY} and\nmore"))
    with pytest.raises(CredentialsError) as caught:
        load(path)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    save(path, "openai", Secret("good"))
    assert load(path).keys == {"openai": Secret("good")}


def test_a_pipe_in_the_files_place_does_not_hold_us_up(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path, 0o600)
    with pytest.raises(CredentialsError, match="not a file"):
        load(path)


def test_a_link_is_followed_and_stays(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere.toml")
    save(path, "openai", Secret("a"))
    assert path.is_symlink() and load(tmp_path / "elsewhere.toml").keys == {"openai": Secret("a")}


def test_two_that_save_at_once_lose_nothing(path: Path) -> None:
    threads = [threading.Thread(target=save, args=(path, f"p{number}", Secret("k"))) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(load(path).keys) == 16


@pytest.mark.parametrize("typed", ["", "   ", "two words", "line\nline", "k\x00", "schlüssel", "x" * 9000])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(typed: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        check_key(typed)
    assert not typed.strip() or typed not in str(caught.value)


def test_a_typed_key_is_trimmed() -> None:
    assert check_key(f"  {CANARY}\n") == Secret(CANARY)


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {CANARY}.",
        "Incorrect API key provided: sk-canar***********cdef. Find yours online.",
        "headers: {'Authorization': 'Bearer canary.canary.canary'}",
        "x-api-key: canary-canary",
        'rejected {"api_key": "canary-canary"}',
        "cannot reach https://canary:canary-canary@example.org/v1",
        "cannot reach https://canary@example.org/v1",
        "key=canary1 AIzacanary_canary",
        "the plain one: opaque/canary/123",
    ],
)
def test_what_looks_like_a_secret_is_scrubbed(text: str) -> None:
    clean = without_secrets(text, [Secret(CANARY), Secret("opaque/canary/123"), Secret("a")])
    assert "canar" not in clean
    assert "[hidden]" in clean


def test_scrubbing_leaves_ordinary_sentences_alone() -> None:
    text = "The key is missing; a token was spent at https://example.org/a@b on task-12345678 (risk-free)."
    assert without_secrets(text) == text
