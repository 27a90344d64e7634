"""`--log-level` and `DRAGOMAN_LOG`: what a command does, on stderr; no content, no secret, and nothing on the wire."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.errors import CommandError
from dragoman.cli.log_lines import logging_to_stderr
from tests.support.command import call

SECRET = "sk-ant-this-is-a-key-0123456789"
PROMPT = "the-word-of-the-prompt"
ANSWER = "the-word-of-the-answer"
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) dragoman(\.\w+)+: \S.*")


def messages_of_an_editor(cwd: Path) -> bytes:
    """The messages of an editor: it opens a session and sends a prompt."""
    opened = {"cwd": str(cwd), "mcpServers": []}
    prompt = {"sessionId": "SESSION", "prompt": [{"type": "text", "text": PROMPT}]}
    messages = [("initialize", {"protocolVersion": 1}), ("session/new", opened), ("session/prompt", prompt)]
    lines = [{"jsonrpc": "2.0", "id": at, "method": name, "params": given} for at, (name, given) in enumerate(messages)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def acp(folder: Path, *options: str, **variables: str) -> tuple[list[dict[str, object]], list[str]]:
    """Run a turn of `dragoman acp`; what it wrote on stdout and on stderr."""
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": [{"steps": [{"say": ANSWER}]}]}))
    environment = os.environ | {"DRAGOMAN_HOME": str(folder / "home"), "ANTHROPIC_API_KEY": SECRET} | variables
    line = [sys.executable, "-m", "dragoman.cli.main", "acp", "--model", f"script:{script}", *options]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        hello, opened, prompt = messages_of_an_editor(folder).splitlines(keepends=True)
        received: list[dict[str, object]] = []
        for message in (hello, opened, prompt):
            session = next((one["result"].get("sessionId") for one in received if one.get("id") == 1), "")  # type: ignore[attr-defined]
            child.stdin.write(message.replace(b"SESSION", str(session).encode()))
            child.stdin.flush()
            asked = json.loads(message)["id"]
            while not received or received[-1].get("id") != asked:
                received.append(json.loads(child.stdout.readline()))
        child.stdin.close()
        rest = child.stdout.read()
        logged_lines = child.stderr.read().decode().splitlines()
    assert (child.returncode, rest) == (0, b"")
    return received, logged_lines


@pytest.mark.parametrize(
    ("options", "variables"),
    [((), {"DRAGOMAN_LOG": "debug"}), (("--log-level", "debug"), {})],
    ids=["variable", "option"],
)
def test_a_session_is_seen_in_the_log_and_the_wire_stays_as_it_is(
    options: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    received, logged_lines = acp(tmp_path, *options, **variables)
    assert [one.get("id", one.get("method")) for one in received if one.get("method") != "session/update"] == [0, 1, 2]
    assert [line for line in logged_lines if not LINE.fullmatch(line)] == []
    loggers = {line.split()[2].rstrip(":") for line in logged_lines}
    assert {"dragoman.link.link", "dragoman.coder.session", "dragoman.coder.runtime"} <= loggers
    assert "dragoman.coder.model_calls" in loggers
    written = "\n".join(logged_lines)
    assert [word for word in (SECRET, PROMPT, ANSWER) if word in written] == []


def test_without_a_level_nothing_is_logged(tmp_path: Path) -> None:
    received, logged_lines = acp(tmp_path, DRAGOMAN_LOG="")
    assert (len(received) > 3, logged_lines) == (True, [])


def test_the_lines_go_to_a_file_if_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    _, logged_lines = acp(tmp_path, DRAGOMAN_LOG="info", DRAGOMAN_LOG_FILE=str(file))
    lines = file.read_text().splitlines()
    assert logged_lines == []
    assert lines and all(map(LINE.fullmatch, lines))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_level_that_does_not_exist_is_named_with_those_that_do() -> None:
    sentence = "dragoman: DRAGOMAN_LOG: there is no log level 'loud'; use debug, info, warning or error\n"
    assert call("demo", DRAGOMAN_LOG="loud") == (2, "", sentence)


def test_an_option_with_such_a_level_is_a_mistake_in_the_command_line() -> None:
    done = call("demo", "--log-level", "loud")
    assert (done.code, done.out, "argument --log-level: invalid choice: 'loud'" in done.error) == (2, "", True)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = call("demo", DRAGOMAN_LOG="info", DRAGOMAN_LOG_FILE=str(tmp_path / "no" / "x"))
    why = f"dragoman: DRAGOMAN_LOG_FILE: {tmp_path}/no/x: cannot write the log: No such file or directory\n"
    assert done == (2, "", why)


def logged(tmp_path: Path, *, as_json: bool = False) -> str:
    file = tmp_path / "log"
    environment = {"DRAGOMAN_LOG": "debug", "DRAGOMAN_LOG_FILE": str(file)}
    with logging_to_stderr("demo", None, environment, as_json=as_json):
        logger = logging.getLogger("dragoman.some.module")
        logger.warning("of \x1b[2J\nanother %s", "\u202epart")
        try:
            raise ValueError(PROMPT)
        except ValueError:
            logger.exception("it failed")
        logger.debug("x" * 10_000)
    logging.getLogger("dragoman.some.module").error("after the end")
    return file.read_text()


def test_a_line_cannot_act_on_a_terminal_has_no_text_of_an_exception_and_is_bounded(tmp_path: Path) -> None:
    begin, first, second, third = logged(tmp_path).splitlines()
    assert re.fullmatch(r"\S+ info dragoman.cli.log_lines: dragoman \S+, command demo, process \d+", begin)
    assert first.split(" ", 1)[1] == r"warning dragoman.some.module: of \x1b[2J another \u202epart"
    assert re.fullmatch(r"\S+ error \S+ it failed \[ValueError at test_log_lines.py:\d+ logged\]", second)
    assert (len(third), third[-4:]) == (4095, "x...")


def test_a_server_logs_json_as_its_other_lines_are(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in logged(tmp_path, as_json=True).splitlines()[1:]]
    assert [(one["level"], one["event"], one["logger"]) for one in lines] == [
        (level, "log", "dragoman.some.module") for level in ("warning", "error", "debug")
    ]


def test_a_reader_that_does_not_read_stops_nothing_and_learns_how_much_it_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stderr", stream)
        with logging_to_stderr("demo", "debug", {}, as_json=False):
            logger = logging.getLogger("dragoman.some.module")
            for _ in range(1000):
                logger.debug("x" * 1000)
            pipe.read(100_000)
            logger.debug("read again")
            last = pipe.read(100_000).decode().splitlines()[-1]
    assert re.search(r": read again \[\d{3} lines before this one were lost\]$", last)


def test_a_level_of_the_option_counts_before_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with logging_to_stderr("demo", "error", {"DRAGOMAN_LOG": "debug", "DRAGOMAN_LOG_FILE": str(file)}, as_json=False):
        logging.getLogger("dragoman.x").warning("less than an error")
        logging.getLogger("dragoman.x").error("an error")
    assert [line.split(" ", 1)[1] for line in file.read_text().splitlines()] == ["error dragoman.x: an error"]


def test_a_wrong_level_raises_before_anything_is_changed() -> None:
    with pytest.raises(CommandError), logging_to_stderr("demo", None, {"DRAGOMAN_LOG": "x"}, as_json=False):
        pass
    assert logging.getLogger("dragoman").level == logging.NOTSET
