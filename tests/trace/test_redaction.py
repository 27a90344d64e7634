"""What of a frame is a secret, and what is written as it passed."""

import json
from typing import Any

import pytest

from dragoman.trace.redaction import redact, redact_frame, secrets_of
from tests.support.variables import HARMLESS, SECRETS

CANARY = "canary-0123456789"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"totalTokens": 7, "name": "x"}, {"totalTokens": 7, "name": "x"}),
        ({"auth": {"logout": {}}, "authMethods": []}, {"auth": {"logout": {}}, "authMethods": []}),
        ({"key": "a", "text": "the password is short"}, {"key": "[redacted]", "text": "the password is short"}),
        ({"Set-Cookie": "a=b"}, {"Set-Cookie": "[redacted]"}),
        ({"api_keys": ["a", "b"]}, {"api_keys": ["[redacted]", "[redacted]"]}),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": "[redacted]"}),
        ({"name": "EDITOR", "value": "vi"}, {"name": "EDITOR", "value": "vi"}),
        ({"name": "PWD", "value": "/x"}, {"name": "PWD", "value": "/x"}),
        ({"name": "DB_PASS", "value": "x"}, {"name": "DB_PASS", "value": "[redacted]"}),
        ({"pwd": "/x", "db_pwd": "x"}, {"pwd": "/x", "db_pwd": "[redacted]"}),
        (["--token=abc", "--verbose"], ["--token=[redacted]", "--verbose"]),
        (["--password", "abc", "def"], ["--password", "[redacted]", "def"]),
        ("key sk-abcdefghijklmnop1234 end", "key [redacted] end"),
        ("ghp_abcdefghijklmnop1234", "[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- after", "[redacted] after"),
        ("curl -H 'Authorization: Bearer abcdefgh12'", "curl -H 'Authorization: Bearer [redacted]'"),
        ("git clone https://me:abc@host/x", "git clone https://[redacted]@host/x"),
        ("GITHUB_TOKEN=abc make", "GITHUB_TOKEN=[redacted] make"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        (7, 7),
        (None, None),
    ],
)
def test_what_is_a_secret_and_what_is_not(given: Any, written: Any) -> None:
    assert redact(json.dumps(given).encode()) == written


def test_the_secrets_of_our_own_environment_are_known_by_value() -> None:
    environment = {"MY_SECRET": "0123456789", "API_KEY": "0123456789abc", "TOKEN": "short", "HOME": "/home/somebody"}
    known = secrets_of(environment)
    assert known == ["0123456789abc", "0123456789"]
    assert redact(b'"x0123456789abc 0123456789x"', known) == "x[redacted] [redacted]x"


def test_an_ordinary_environment_has_no_secrets() -> None:
    assert secrets_of(HARMLESS) == []


@pytest.mark.parametrize("name", SECRETS)
def test_a_variable_that_is_kept_from_children_is_kept_from_traces(name: str) -> None:
    assert secrets_of({name: CANARY}) == [CANARY]


def test_a_common_word_is_not_hidden_wherever_it_stands() -> None:
    assert secrets_of({"DB_PASSWORD": "password", "PGPASSWORD": "postgres", "REDIS_PASS": "changeme"}) == []


@pytest.mark.parametrize("frame", [b'{"a": 1,\t"b":[1.50, "\\u00e9"]}', b'{"text":"no secret"}', b"no JSON", b"[[["])
def test_a_frame_without_a_secret_is_written_as_it_passed(frame: bytes) -> None:
    assert redact_frame(frame) == (frame.decode(), False)


@pytest.mark.requirement("TR2")
@pytest.mark.parametrize(
    "frame",
    [
        b'{"password":"hunter2","password":null}',
        b'{"a":{"token":"hunter2","token":1}}',
        b'{"te\\u0078t":"sk-hunter2\\u0061aaaaaaaaaaaaaaaa"}',
        b'{"apiKey": "hunter2", "broken',
    ],
)
def test_a_secret_is_not_written_however_it_is_spelled(frame: bytes) -> None:
    text, is_changed = redact_frame(frame)
    assert "hunter2" not in text
    assert is_changed
