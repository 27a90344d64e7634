"""`dragoman trace diff`, `replay`, `shrink` and `follow` as a person uses them, with agents that are processes."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.trace.writer import TraceWriter
from tests.support.command import call
from tests.support.editor import Editor, turns
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.rough_command import rough
from tests.support.traces import HELLO, OPENED, chunk, frames_of, prompt, to_agent, to_client, write_trace
from tests.support.waiting import wait_until

every_version = pytest.mark.parametrize("version", [1, 2])
SCRIPT = turns([{"say": "one "}, {"call": "bash", "input": {"command": "echo hi"}}, {"say": "two"}])


def recorded(folder: Path, version: int, script: Any = None) -> Path:
    """A trace of one turn with our own agent, as its client had it."""
    file = folder / f"recorded-{version}.jsonl"
    with Editor(folder, script or SCRIPT, "--mode", "full", "--trace", str(file), version=version) as editor:
        editor.open().prompt("go")
    return file


def ours(folder: Path, script: Any = None) -> list[str]:
    file = folder / "other-script.json"
    file.write_text(json.dumps(script or SCRIPT))
    return [*fork_server().dragoman(), "acp", "--model", f"script:{file}", "--mode", "full"]


# -- diff --------------------------------------------------------------------------------------------------------------


def test_two_runs_of_the_same_conversation_are_equal_and_another_text_is_found(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "a", *OPENED, *prompt(3, "go", chunk("s1", "he"), chunk("s1", "llo")))
    same = write_trace(tmp_path / "b", *OPENED, *prompt("x", "go", chunk("s1", "hello")))  # type: ignore[arg-type]
    other = write_trace(tmp_path / "c", *OPENED, *prompt(3, "go", chunk("s1", "bye")))
    assert call("trace", "diff", str(one), str(same))[:2] == (0, "equal: 7 messages\n")
    code, out, _ = call("trace", "diff", str(one), str(other))
    assert (code, out.count("\n")) == (1, 3)
    assert "params.update.content.text: 'hello' is 'bye'" in out
    code, out, _ = call("trace", "diff", "--json", str(one), str(other))
    assert json.loads(out)["b"] == {"line": 7, "direction": "agent -> client", "method": "session/update"}


def test_a_file_that_is_none_could_not_be_compared(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "a", *OPENED)
    (tmp_path / "b").write_text("nothing")
    assert call("trace", "diff", str(one), str(tmp_path / "b")).code == 3
    assert call("trace", "diff", str(one), str(tmp_path / "missing")).code == 3
    assert call("trace", "diff", str(one)).code == 2


def test_which_of_several_connections_is_meant_has_to_be_said(tmp_path: Path) -> None:
    file = str(tmp_path / "a")
    writer = TraceWriter(file)
    for _ in range(2):
        writer.connect().frame("client -> agent", b"{}")
    writer.close()
    assert "one of 1, 2" in call("trace", "diff", file, file).error
    assert call("trace", "diff", file, file, "--connection", "2").code == 0


# -- replay ------------------------------------------------------------------------------------------------------------


@every_version
@pytest.mark.requirement("TR10")
def test_the_client_of_a_recording_is_played_to_an_agent_that_does_the_same(version: int, tmp_path: Path) -> None:
    file = recorded(tmp_path, version)
    ended = call(
        "trace", "replay", str(file), "--as", "client", "--", *ours(tmp_path), DRAGOMAN_HOME=str(tmp_path / "h")
    )
    assert (ended.code, ended.out.partition(":")[0]) == (0, "equal"), ended


@every_version
@pytest.mark.requirement("TR10")
def test_the_first_difference_of_an_agent_is_named(version: int, tmp_path: Path) -> None:
    file = recorded(tmp_path, version)
    script = turns([{"say": "one "}, {"call": "bash", "input": {"command": "echo hi"}}, {"say": "three"}])
    ended = call(
        "trace", "replay", str(file), "--as", "client", "--", *ours(tmp_path, script), DRAGOMAN_HOME=str(tmp_path / "h")
    )
    assert ended.code == 1
    assert "'two' is 'three'" in ended.out


def test_a_recording_of_one_version_is_played_to_an_agent_of_the_other(tmp_path: Path) -> None:
    file = write_trace(
        tmp_path / "a",
        *HELLO,
        to_agent(id=2, method="session/new", params={"cwd": str(tmp_path), "mcpServers": []}),
        to_client(id=2, result={"sessionId": "s1"}),
        *prompt(3, "go", chunk("s1", "hello")),
    )
    left_out = [
        "agentCapabilities",
        "agentInfo",
        "authMethods",
        "modes",
        "configOptions",
        "messageId",
        "_meta",
        "usage",
    ]
    options = [word for name in left_out for word in ("--ignore-field", name)]
    updates = ["available_commands_update", "usage_update", "session_info_update", "config_option_update"]
    options += [word for name in updates for word in ("--ignore", name)]
    ended = call(
        *("trace", "replay", str(file), "--as", "client", "--protocol", "2", *options, "--"),
        *ours(tmp_path, turns([{"say": "hello"}])),
        DRAGOMAN_HOME=str(tmp_path / "h"),
    )
    assert ended.code == 0, ended


def test_an_agent_that_ends_or_says_nothing_is_a_difference(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a", *OPENED, *prompt(3, "go", chunk("s1", "done")))
    for manner, reason in (("dies", "the other side is gone"), ("silent", "nothing came for 0.5 s")):
        ended = call(
            *(
                "trace",
                "replay",
                str(file),
                "--as",
                "client",
                "--timeout",
                "0.5",
                "--ignore-field",
                "agentCapabilities",
            ),
            *("--", *rough(manner)),
        )
        assert ended.code == 1
        assert reason in ended.out
        assert "missing: line 7: <- update agent_message_chunk done" in ended.out


def test_an_agent_that_cannot_be_started_could_not_be_run(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a", *OPENED)
    assert call("trace", "replay", str(file), "--as", "client", "--", str(tmp_path / "nothing")).code == 3
    assert call("trace", "replay", str(file), "--as", "client").code == 2
    assert call("trace", "replay", str(file), "--as", "agent", "--", "x").code == 2
    assert call("trace", "replay", str(file)).code == 2


@every_version
@pytest.mark.requirement("TR10")
def test_the_agent_of_a_recording_answers_a_live_client(version: int, tmp_path: Path) -> None:
    file = recorded(tmp_path, version)

    class Replayed(Editor):
        command = "trace"

        def thinking(self, folder: Path, script: Any) -> list[str]:
            return []

    with Replayed(tmp_path, None, "replay", str(file), "--as", "agent", version=version) as editor:
        heard = editor.open().prompt("go")
        code, _, told = editor.leave()
    assert (code, told.partition(b":")[0]) == (0, b"dragoman")
    assert b"equal" in told
    assert "two" in json.dumps(heard)
    with Replayed(tmp_path, None, "replay", str(file), "--as", "agent", version=version) as editor:
        params = {"protocolVersion": version, "clientCapabilities": {}}
        editor.send({"id": 1, "method": "initialize", "params": params})
        assert editor.stdout.readline() == b""  # nothing is answered behind the first difference
        code, _, told = editor.leave()
    assert code == 1
    assert b"different after 0 messages" in told


# -- shrink ------------------------------------------------------------------------------------------------------------

CRASHES = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "session/prompt" and "bad" in message["params"]["prompt"][0]["text"]:
        sys.exit(7)
    results = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "live"}}
    result = results.get(method, {"stopReason": "end_turn"})
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"""


@pytest.mark.requirement("TR11")
def test_the_shortest_trace_that_still_kills_an_agent_is_found(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(CRASHES)
    words = "some words and a bad one among them"
    many = [one for number in range(3, 9) for one in prompt(number, f"prompt {number}")]
    file = write_trace(tmp_path / "a", *OPENED, *many, *prompt(9, words), *prompt(10, "x"))
    short = tmp_path / "short"
    agent = [sys.executable, "-S", "-E", str(tmp_path / "agent.py")]
    ended = call("trace", "shrink", str(file), "-o", str(short), "--", *agent)
    assert ended.code == 0, ended
    sent = [json.loads(line["frame"]) for line in frames_of(short) if line["direction"] == "client -> agent"]
    assert [one["params"]["prompt"][0]["text"] for one in sent] == ["bad"]
    assert "the agent has ended" in ended.out


def test_what_does_not_fail_is_not_shortened(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a", *OPENED)
    (tmp_path / "agent.py").write_text(CRASHES)
    agent = [sys.executable, "-S", "-E", str(tmp_path / "agent.py")]
    ended = call("trace", "shrink", str(file), "-o", str(tmp_path / "b"), "--failure", "has ended", "--", *agent)
    assert (ended.code, (tmp_path / "b").exists()) == (1, False)


@pytest.mark.requirement("TR11")
def test_a_test_of_traces_is_run_on_shorter_and_shorter_ones(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a", *OPENED, *prompt(3, "one"), *prompt(4, "two"), *prompt(5, "three"))
    short = tmp_path / "short"
    test = [
        sys.executable,
        "-S",
        "-E",
        "-c",
        "import sys; sys.exit(3 * ('two' in open(sys.argv[1]).read()))",
        "{trace}",
    ]
    assert call("trace", "shrink", str(file), "-o", str(short), "--", *test).code == 0
    assert [json.loads(line["frame"]).get("id") for line in frames_of(short)] == [4, 4]
    # What is there is not written over.
    assert call("trace", "shrink", str(file), "-o", str(short), "--", *test).code == 2


# -- follow ------------------------------------------------------------------------------------------------------------


def test_a_trace_is_shown_while_it_is_written_and_across_its_rotation(tmp_path: Path) -> None:
    file = tmp_path / "growing.jsonl"
    child = fork_server().child(MAIN, "trace", "follow", str(file), "--method", "session/*", cwd=tmp_path)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(lambda: child.stdout.readline().decode(), "")))
    reader.start()
    try:
        assert b"is not there yet" in child.stderr.readline()
        writer = TraceWriter(str(file), max_bytes=8192, older_files=1)
        connection = writer.connect()
        for number in range(12):
            for direction, message in prompt(number, "x" * 1000):
                connection.frame(direction, json.dumps(message).encode())
            wait_until(lambda wanted=2 * (number + 1): len(lines) == wanted)  # type: ignore[misc]
        writer.close()
        assert (tmp_path / "growing.jsonl.1").exists()
    finally:
        child.kill()
        child.wait()
        reader.join()
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
    assert [line.split()[2:5] for line in lines[:2]] == [["->", "session/prompt", "#0"], ["<-", "=", "session/prompt"]]


def test_what_is_no_trace_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nothing\n")
    assert call("trace", "follow", str(tmp_path / "a")).code == 1
