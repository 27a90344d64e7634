"""A child learns nothing secret from its environment, and everything it needs."""

import os
import subprocess
import sys

import pytest

from dragoman.host import environment as environment_module
from dragoman.host.environment import child_environment, keep_back
from dragoman.host.secrets import confined_environment
from tests.support.variables import HARMLESS, SECRETS

CANARY = "canary-5f1c"


# Under a name that says nothing.
SECRET_VALUES = [
    "sk-ant-api03-0123456789abcdef0123",
    "sk-proj-0123456789abcdef0123",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_0123456789abcdefghij_0123456789",
    "glpat-0123456789abcdefghij",
    "xoxb-0123456789-abcdefghij",
    "AKIAABCDEFGHIJKLMNOP",
    "AIza0123456789abcdefghij0123456789abcde",
    "hf_0123456789abcdefghijABCDEF",
    "npm_0123456789abcdefghijABCDEF0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    "Authorization: Bearer 0123456789abcdef",
    "https://0123456789abcdef0123@git.example.org/x.git",
    "jdbc:postgresql://host/db?user=me&password=hunter2",
    "Server=db;User Id=me;Password=hunter2;",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_does_not_reach_a_child(name: str) -> None:
    assert child_environment({name: CANARY, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_does_not_reach_a_confined_command(name: str) -> None:
    assert confined_environment({name: CANARY, "PATH": "/usr/bin"}, network=True) == {"PATH": "/usr/bin"}


def test_what_is_no_secret_reaches_it_unchanged() -> None:
    assert child_environment(HARMLESS) == HARMLESS


def test_a_word_that_only_looks_like_a_secret_reaches_a_confined_command() -> None:
    words = {
        "KEYBOARD_LAYOUT": "de",
        "TOKENIZERS_PARALLELISM": "true",
        "AUTHOR": "Someone",
        "HOTKEY": "F1",
        "PWD": "/x",
    }
    assert confined_environment(words) == words
    assert confined_environment({"AUTHORIZATION": CANARY, "KEYS": CANARY, "AUTH_TOKENIZED": CANARY}) == {}


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_value_that_is_a_credential_does_not_reach_a_child(value: str) -> None:
    assert child_environment({"LOGIN": value, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}
    assert confined_environment({"LOGIN": value, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (f"http://user:{CANARY}@proxy:3128", "http://proxy:3128"),
        (f"http://user:{CANARY}/{CANARY}@proxy:3128/", "http://proxy:3128/"),
        (f"user:{CANARY}@proxy:3128", "proxy:3128"),
        (f"socks5h://{CANARY}@proxy", "socks5h://proxy"),
    ],
)
def test_a_proxy_reaches_a_child_without_its_password(given: str, passed: str) -> None:
    assert child_environment({"HTTPS_PROXY": given, "all_proxy": given}) == {"HTTPS_PROXY": passed, "all_proxy": passed}
    assert CANARY not in str(confined_environment({"HTTPS_PROXY": given}))


def test_a_name_that_the_configuration_calls_a_key_does_not_reach_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_module, "_configured", set())
    base = {"LAB_ACCESS": CANARY, "PATH": "/usr/bin"}
    assert child_environment(base) == base
    keep_back(["LAB_ACCESS", ""])
    assert child_environment(base) == {"PATH": "/usr/bin"}
    assert confined_environment(base) == {"PATH": "/usr/bin"}
    assert child_environment(base, {"LAB_ACCESS": "named"}) == {"PATH": "/usr/bin", "LAB_ACCESS": "named"}


@pytest.mark.parametrize(
    "url", [f"postgres://user:{CANARY}@host/db", f"redis://:{CANARY}@host", f"amqp://u:{CANARY}@h/"]
)
def test_a_password_inside_a_url_does_not_reach_a_child(url: str) -> None:
    assert child_environment({"DATABASE_URL": url}) == {}


@pytest.mark.parametrize("url", ["postgres://host:5432/db", "https://user@host/", "https://host/a:b@c", "a:b@c"])
def test_a_url_without_a_password_does(url: str) -> None:
    assert child_environment({"DATABASE_URL": url}) == {"DATABASE_URL": url}


def test_a_secret_that_was_asked_for_by_name_is_given() -> None:
    base = {"OPENAI_API_KEY": "old", "GITHUB_TOKEN": "hidden", "LANG": "C"}
    given = child_environment(base, {"OPENAI_API_KEY": "new", "LANG": "de"})
    assert given == {"OPENAI_API_KEY": "new", "LANG": "de"}
    assert base == {"OPENAI_API_KEY": "old", "GITHUB_TOKEN": "hidden", "LANG": "C"}


def test_no_canary_is_seen_by_a_real_child() -> None:
    environment = child_environment(dict(os.environ) | dict.fromkeys(SECRETS, CANARY) | {"MARKER": "seen"})
    code = "import os; print(dict(os.environ))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "seen" in done.stdout
    assert CANARY not in done.stdout
