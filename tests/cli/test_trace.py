"""`--trace FILE`: every frame, for the user's eyes alone, no secrets."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.trace import open_trace, redact, secrets_of
from tests.support.editor import HELLO, Editor
from tests.support.variables import HARMLESS, SECRETS
from tests.support.versions import both_versions


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@both_versions
def test_every_frame_is_written_in_order_with_its_direction(version: int, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with Editor(tmp_path, None, "--trace", str(file), version=version) as editor:
        heard = editor.open().prompt()
        editor.write(b"no JSON\n")
        editor.read()
    traced = lines(file)
    directions = "".join("<" if line["direction"] == "in" else ">" for line in traced)
    # v1 tells the commands behind the answer that opens the session; v2 answers a prompt first.
    opened = "<><>>" if version == 1 else "<><>"
    assert directions == opened + "<" + ">" * (len(heard) + version - 1) + "<>"
    assert traced[0]["frame"]["params"] == HELLO[version]
    assert traced[-2]["frame"] == "no JSON"
    assert traced[-1]["frame"]["error"]["code"] == -32700
    times = [line["time"] for line in traced]
    assert times == sorted(times)


def test_the_file_is_for_its_owner_alone_and_is_appended_to(tmp_path: Path) -> None:
    fresh, old = tmp_path / "fresh", tmp_path / "old"
    old.write_text('{"older": "line"}\n')
    old.chmod(0o644)
    for file in (fresh, old):
        open_trace(str(file))("in", b"{}")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert lines(old)[0] == {"older": "line"}
    assert (len(lines(fresh)), len(lines(old))) == (1, 2)


def test_a_full_disk_does_not_stop_the_conversation(tmp_path: Path) -> None:
    with Editor(tmp_path, None, "--trace", "/dev/full") as editor:
        assert editor.open().prompt()[-1] == {"result": {"stopReason": "end_turn"}}


CANARY = "canary-0123456789"


def test_no_secret_of_a_session_is_written(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    env = [{"name": "OPENAI_API_KEY", "value": CANARY}]
    headers = [{"name": "Authorization", "value": f"Bearer {CANARY}"}, {"name": "X-Plain", "value": "seen"}]
    url = f"https://somebody:{CANARY}@host/?access_token={CANARY}"
    servers = [
        {"name": "one", "command": "/bin/x", "args": ["--api-key", CANARY], "env": env},
        {"type": "http", "name": "two", "url": url, "headers": headers},
    ]
    with Editor(
        tmp_path, None, "--trace", str(file), env={"GITHUB_TOKEN": "other-" + CANARY, "DB_PASS": "hunter2-hunter2"}
    ) as editor:
        editor.result("initialize", {**HELLO[1], "_meta": {"apiKey": CANARY, "password": CANARY}})
        editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": servers})
        editor.ask("_x", {"token": CANARY, "secrets": [CANARY], "text": f"it is other-{CANARY} or hunter2-hunter2"})
        editor.write(b'{"broken, Authorization: Bearer %b\n' % CANARY.encode())
        editor.read()
    text = file.read_text(encoding="utf-8")
    assert CANARY not in text
    assert "hunter2" not in text
    assert '"seen"' in text
    assert "/bin/x" in text


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


def test_a_trace_shows_the_working_folder_though_the_shell_says_it_too(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    variables = {"PWD": str(tmp_path), "OLDPWD": str(tmp_path), "STORE_KEY": str(tmp_path)}
    with Editor(tmp_path, None, "--trace", str(file), env=variables) as editor:
        editor.result("initialize", HELLO[1])
        editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    opened = next(line["frame"] for line in lines(file) if line["frame"].get("method") == "session/new")
    assert opened["params"]["cwd"] == str(tmp_path)


def test_an_ordinary_environment_has_no_secrets() -> None:
    assert secrets_of(HARMLESS) == []


@pytest.mark.parametrize("name", SECRETS)
def test_a_variable_that_is_kept_from_children_is_kept_from_traces(name: str) -> None:
    assert secrets_of({name: CANARY}) == [CANARY]


def test_a_common_word_is_not_hidden_wherever_it_stands() -> None:
    assert secrets_of({"DB_PASSWORD": "password", "PGPASSWORD": "postgres", "REDIS_PASS": "changeme"}) == []


@pytest.mark.parametrize("frame", [b"\xff\xfe", b"{", b"[" * 100_000, b'"\\ud800"', b""])
def test_a_frame_that_is_no_json_is_written_as_text(frame: bytes, tmp_path: Path) -> None:
    open_trace(str(tmp_path / "trace"))("in", frame)
    (line,) = lines(tmp_path / "trace")
    assert isinstance(line["frame"], str)
