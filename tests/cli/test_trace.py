"""`--trace FILE`: every frame, for the user's eyes alone, no secrets."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from dragoman.client.connect import connect
from tests.support.command import call
from tests.support.editor import HELLO, Editor, turns
from tests.support.fork_server.client import fork_server
from tests.support.gateway import free_port
from tests.support.gateway_process import serving
from tests.support.traces import OPENED, chunk, frames_of, lines_of, prompt, to_agent, write_trace
from tests.support.versions import both_versions
from tests.support.waiting import wait_until


@both_versions
def test_every_frame_is_written_in_order_with_its_direction(version: int, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with Editor(tmp_path, None, "--trace", str(file), version=version) as editor:
        heard = editor.open().prompt()
        editor.write(b"no JSON\n")
        editor.read()
    header, *traced = lines_of(file)
    assert (header["format"], header["version"], header["frames"]) == ("acp-inspector-trace", 1, len(traced))
    directions = "".join("<" if line["direction"] == "client -> agent" else ">" for line in traced)
    # v1 tells the commands behind the answer that opens the session; v2 answers a prompt first.
    opened = "<><>>" if version == 1 else "<><>"
    assert directions == opened + "<" + ">" * (len(heard) + version - 1) + "<>"
    assert json.loads(traced[0]["frame"])["params"] == HELLO[version]
    assert traced[-2]["frame"] == "no JSON"
    assert json.loads(traced[-1]["frame"])["error"]["code"] == -32700
    times = [line["elapsed"] for line in traced]
    assert times == sorted(times)


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
    assert r"\"seen\"" in text
    assert "/bin/x" in text


def test_a_trace_shows_the_working_folder_though_the_shell_says_it_too(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    variables = {"PWD": str(tmp_path), "OLDPWD": str(tmp_path), "STORE_KEY": str(tmp_path)}
    with Editor(tmp_path, None, "--trace", str(file), env=variables) as editor:
        editor.result("initialize", HELLO[1])
        editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    opened = next(found for line in frames_of(file) if "session/new" in (found := json.loads(line["frame"])).values())
    assert opened["params"]["cwd"] == str(tmp_path)


def started(file: Path, *words: str) -> "subprocess.Popen[bytes]":
    """`trace record`, started as an editor does."""
    recorder = [*fork_server().dragoman(), "trace", "record", "-o", str(file), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(recorder, stdin=pipe, stdout=pipe, stderr=pipe)


def ask(process: "subprocess.Popen[bytes]", id: int, method: str, params: object) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.mark.requirement("TR1")
def test_a_recorder_passes_everything_on_as_it_is_and_writes_it_down(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    echo = "import sys; print('to stderr', file=sys.stderr)\nfor line in sys.stdin: print(line, end='', flush=True)"
    with started(file, "--", "python3", "-c", echo + "\nsys.exit(7)") as process:
        sent = b'{"jsonrpc":"2.0",  "id":1, "method":"a"}\nno JSON at all\n{"x":"\xc3\xa9"}\n'
        out, error = process.communicate(sent)
    assert (out, error, process.returncode) == (sent, b"to stderr\n", 7)
    frames = frames_of(file)
    assert [one["frame"] for one in frames if one["direction"] == "client -> agent"] == sent.decode().splitlines()
    assert [one["frame"] for one in frames if one["direction"] == "agent -> client"] == sent.decode().splitlines()
    notes = [one for one in lines_of(file) if one["type"] in ("process", "stderr")]
    assert [one.get("event") or one["text"] for one in notes] == ["started", "to stderr\n", "exited"]
    assert notes[-1]["code"] == 7


@pytest.mark.requirement("TR3")
def test_a_recorder_that_is_killed_leaves_a_readable_trace_and_no_agent(tmp_path: Path) -> None:
    file, pid = tmp_path / "t.jsonl", tmp_path / "pid"
    echo = (
        "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()))\nfor line in sys.stdin: print(line, flush=True)"
    )
    with started(file, "--", "python3", "-c", echo, str(pid)) as process:
        ask(process, 1, "initialize", {})
        process.send_signal(signal.SIGKILL)
    assert len(frames_of(file)) == 2
    assert call("trace", "view", str(file)).code == 0
    wait_until(lambda: not Path("/proc", pid.read_text()).exists(), "the agent is gone")


def test_an_agent_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with started(tmp_path / "t", "--", "no-such-agent") as process:
        _, error = process.communicate()
    assert process.returncode == 1
    assert b"no-such-agent" in error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "which agent?"),
        (("--",), "which command?"),
        (("http://127.0.0.1:1", "--", "x"), "which agent?"),
    ],
)
def test_a_recorder_without_an_agent_says_what_to_write(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    called = call("trace", "record", "-o", str(tmp_path / "t"), *words)
    assert called.code == 2
    assert sentence in called.error


TURN = prompt(3, "Say hello", chunk("s1", "Hel"), chunk("s1", "lo"))


@pytest.mark.requirement("TR4")
def test_a_trace_is_shown_as_a_timeline_with_requests_joined_to_their_answers(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *OPENED, *TURN, to_agent(id=9, method="session/prompt", params={}))
    called = call("trace", "view", str(file))
    assert called.code == 0
    shown = [line[10:].partition(" ms")[0] for line in called.out.splitlines()]
    assert shown[0].startswith(" 1 -> initialize #1 (")
    assert shown[1] == " 1 <- = initialize #1 version 1"
    assert shown[5] == " 1 <- update x2 agent_message_chunk Hello"
    assert shown[6] == " 1 <- = session/prompt #3 end_turn"
    assert shown[7] == " 1 -> session/prompt #9 (no answer)"


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        (["--method", "session/*", "--from", "client"], ["session/new", "session/prompt"]),
        (["--session", "s"], ["session/new", "session/prompt", "session/update", "session/prompt"]),
        (["--connection", "2"], []),
        (["--slow", "100"], []),
        (["--errors"], [""]),
        (["--method", "agent_message_chunk"], ["session/update"]),
    ],
)
def test_a_filter_leaves_what_was_asked_for(words: list[str], methods: list[str], tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *OPENED, *TURN, ("agent -> client", b"broken {"))
    called = call("trace", "view", "--json", *words, str(file))
    assert [json.loads(line).get("method", "") for line in called.out.splitlines()] == methods


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


@pytest.mark.requirement("TR5")
def test_a_page_has_no_script_and_nothing_that_its_content_could_do(tmp_path: Path) -> None:
    file, page = tmp_path / "t", tmp_path / "t.html"
    write_trace(file, *OPENED, *prompt(3, HOSTILE, chunk("s1", HOSTILE)), to_agent(method=HOSTILE))
    assert call("trace", "view", "--html", str(page), str(file)).code == 0
    text = page.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "default-src &#x27;none&#x27;" in text
    assert call("trace", "view", "--wire", str(file)).out.isprintable() is False  # line ends
    assert "\x1b" not in call("trace", "view", "--wire", str(file)).out


@pytest.mark.requirement("TR6")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b'{"time": 1, "direction": "in", "frame": {}}\n', "not-a-trace"),
        (b"\x00\xff\n", "not-a-trace"),
        (b'{"type":"header","format":"acp-inspector-trace","version":2}\n', "unknown-version"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_a_code(content: bytes, code: str, tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_bytes(content)
    called = call("trace", "view", str(file))
    assert called.code == 1
    assert f"({code})" in called.error


def test_a_trace_that_was_cut_off_is_shown_up_to_there(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *OPENED)
    file.write_bytes(file.read_bytes()[:-20])
    called = call("trace", "view", "--no-findings", str(file))
    assert called.code == 0
    assert len(called.out.splitlines()) == 3
    assert "line 5 is cut off (cut-line)" in called.error


def test_a_redacted_copy_has_neither_secrets_nor_content(tmp_path: Path) -> None:
    file = tmp_path / "t"
    recorded = [json.dumps(message).encode() if isinstance(message, dict) else message for _, message in TURN]
    echo = f"for line in {[one.decode() for one in recorded]!r}: print(line)"
    with started(file, "--no-redact", "--", "python3", "-c", echo) as process:
        process.communicate()
    copy = tmp_path / "copy"
    called = call("trace", "redact", "--content", "-o", str(copy), str(file))
    assert called.code == 0
    assert "Hel" not in "".join(one["frame"] for one in frames_of(copy))
    assert "session/prompt" in frames_of(copy)[0]["frame"]
    assert lines_of(copy)[0]["redacted"] is True
    again = call("trace", "redact", "-o", str(copy), str(file))
    assert (again.code, "is there already" in again.error) == (2, True)


@pytest.mark.anyio
async def test_a_server_writes_what_passes_between_it_and_its_agents(tmp_path: Path) -> None:
    file, port = tmp_path / "t.jsonl", free_port()
    async with serving(tmp_path / "home", port, turns([{"say": "Hello."}]), "--trace", str(file)) as server:
        through = tmp_path / "connect.jsonl"
        command = [*fork_server().dragoman(), "connect", f"http://127.0.0.1:{port}", "--trace", str(through)]
        environment = {"DRAGOMAN_TOKEN": server.token, "DRAGOMAN_HOME": str(tmp_path / "editor")}
        async with connect(command, env=environment) as client:
            async for _ in (await client.new_session(tmp_path)).prompt("go"):
                pass
    for trace in (file, through):
        asked = [json.loads(frame["frame"]) for frame in frames_of(trace) if frame["direction"] == "client -> agent"]
        assert [one["method"] for one in asked][:3] == ["initialize", "session/new", "session/prompt"]
        assert server.token not in trace.read_text()
