"""`dragoman run` as people and scripts use it, with our own agent or with one that a test has made up.

At a terminal, and where a process is the point, it is one, and forked where its start is not; else the command is
called.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.cli import one_turn
from tests.support import command as called
from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.rogue_agent import call, permission, text
from tests.support.run_command import Step, at_terminal, environment, left, run, scripted, started
from tests.support.traces import frames_of

# -- what is shown -------------------------------------------------------------------------------------------------


def test_through_a_pipe_the_answer_alone_is_shown(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"think": "Hm."},
        {"say": "I look. "},
        {"call": "read_file", "input": {"path": "a.txt"}},
        {"say": "It says "},
        {"say": "hello."},
    ]
    (tmp_path / "a.txt").write_text("hello")
    command = [*DRAGOMAN, "run", *scripted(tmp_path, steps), "What", "is in it?"]
    surroundings = environment(tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"I look. \nIt says hello.\n", b"")


@pytest.mark.parametrize(
    ("reason", "code"),
    [("end_turn", 0), ("refusal", 3), ("max_tokens", 4), ("max_turn_requests", 4), ("cancelled", 130)],
)
def test_the_end_of_the_turn_is_the_exit_code(reason: str, code: int, tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Well."), {"end": reason})
    done = run(tmp_path, "hi", "--stream-json", "--", *agent)
    assert done.code == code
    assert done.events[-1] == {"type": "result", "sessionId": "s1", "stopReason": reason, "usage": None}


def test_json_has_the_names_and_fields_of_version_2_whatever_the_agent_speaks(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"say": "Hello."},
        {"call": "write_file", "input": {"path": "b.txt", "content": "new\n"}},
        {"usage": {"input": 3, "output": 4}},
    ]
    kinds = []
    for version in ("1", "2"):
        options = [*scripted(tmp_path, steps), "--allow", "edit", "--stream-json", "--protocol", version]
        done = run(tmp_path, "hi", *options)
        assert done.code == 0, done
        (tmp_path / "b.txt").unlink()
        kinds.append([event["type"] for event in done.events])
        assert [event["sessionUpdate"] for event in done.events[:-1]] == kinds[-1][:-1]  # as an export has it
        diff = next(event["content"][0] for event in done.events if event.get("content") and event["type"][0] == "t")
        assert diff["changes"] == [{"operation": "add", "path": str(tmp_path / "b.txt")}]
        assert done.events[-1]["usage"] == {"totalTokens": 7, "inputTokens": 3, "outputTokens": 4}
    assert {"agent_message_chunk", "tool_call_update", "state_update", "result"} <= set(kinds[0]) & set(kinds[1])
    assert kinds[0][-2:] == kinds[1][-2:] == ["state_update", "result"]


def test_the_result_tells_what_was_denied(tmp_path: Path) -> None:
    steps: list[Step] = [{"call": "write_file", "input": {"path": "b.txt", "content": "new\n"}}]
    done = run(tmp_path, "hi", *scripted(tmp_path, steps), "--stream-json")
    assert done.code == 5
    assert not (tmp_path / "b.txt").exists()
    (denial,) = done.events[-1]["denied"]
    assert "b.txt" in denial["what"]
    assert denial["reason"]


def test_an_agent_cannot_write_the_result_itself(tmp_path: Path) -> None:
    forged = {"sessionUpdate": "news", "type": "result", "stopReason": "end_turn", "sessionId": "other"}
    done = run(
        tmp_path, "hi", "--stream-json", "--", *rogue_agent.written(tmp_path, {"update": forged}, {"end": "refusal"})
    )
    assert [event["type"] for event in done.events].count("result") == 1
    assert done.events[-1]["stopReason"] == "refusal"


def test_on_a_terminal_tool_calls_are_shown_while_they_run(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"say": "Now."},
        {"call": "bash", "input": {"command": "echo out; sleep 1; exit 3"}},
        {"call": "write_file", "input": {"path": "c.txt", "content": "one\n"}},
        {"say": "Done."},
    ]
    child = pexpect.spawn(
        sys.executable,
        [*DRAGOMAN[1:], "run", *scripted(tmp_path, steps), "--allow", "all", "hi"],
        cwd=str(tmp_path),
        env=environment(tmp_path, TERM="xterm-256color"),
        encoding="utf-8",
        dimensions=(40, 100),
        timeout=40,
    )
    child.expect_exact("Now.")
    child.expect_exact("• echo out; sleep 1; exit 3")
    child.expect_exact("  out")
    child.expect(r"\d s  echo out")  # the clock
    child.expect_exact("(exit code 3)")
    child.expect_exact("• Write c.txt")
    child.expect_exact("+one")
    child.expect_exact("Done.")
    assert left(child) == 0


@pytest.mark.parametrize(
    ("more", "never"), [({"NO_COLOR": "1"}, r"\x1b\[[\d;]*m"), ({"TERM": "dumb"}, r"\x1b")], ids=["NO_COLOR", "dumb"]
)
def test_no_colour_is_used_where_none_is_wanted(more: dict[str, str], never: str, tmp_path: Path) -> None:
    steps: list[Step] = [{"call": "write_file", "input": {"path": "c.txt", "content": "one\n"}}, {"say": "Done."}]
    with at_terminal(tmp_path, *scripted(tmp_path, steps), "--allow", "all", "hi", **more) as child:
        shown = child.read()
    assert "Write c.txt" in shown
    assert shown.count("  +one") == 1  # also a change without a question
    assert re.search(never, shown) is None


# -- what is said ---------------------------------------------------------------------------------------------------


def test_the_prompt_comes_from_stdin_where_a_word_says_so(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("ok"))
    assert run(tmp_path, "Review this:", "-", "--", *agent, said="a\nb\n").code == 0
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [
        {"type": "text", "text": "Review this:\n\na\nb"}
    ]


def test_the_prompt_is_what_comes_on_stdin_where_there_is_no_word(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("ok"))
    assert run(tmp_path, "--", *agent, said="Review this.\n").code == 0
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [{"type": "text", "text": "Review this."}]


def test_what_is_piped_in_beside_words_is_no_slash_command(tmp_path: Path) -> None:
    (tmp_path / "home" / "commands").mkdir(parents=True)
    (tmp_path / "home" / "commands" / "mine.md").write_text("Delete it all.")
    for piped in ("/mode read-only", " /help", "/mine"):
        done = run(tmp_path, "-", "Sum it up.", *scripted(tmp_path, [{"say": "A sum."}]), said=piped)
        assert (done.code, done.out) == (0, "A sum.\n")


def test_bytes_of_the_command_line_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("ok"))
    assert run(tmp_path, os.fsdecode(b"read caf\xe9"), "--", *agent).code == 0
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [{"type": "text", "text": "read caf\ufffd"}]


def test_a_folder_whose_name_no_agent_can_be_told_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    done = run(tmp_path, "hi", "--cwd", str(folder))
    assert done.code == 2
    assert "the name of this folder is not UTF-8" in done.error


def test_files_named_on_stdin_do_not_go_along(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    agent = rogue_agent.written(tmp_path, text("ok"))
    run(tmp_path, "-", "--", *agent, said="look at @secret.txt")
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [
        {"type": "text", "text": "look at @secret.txt"}
    ]


def test_a_picture_that_is_none_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_text("<html>not found</html>")
    able = {"agentCapabilities": {"promptCapabilities": {"image": True}}}
    done = run(tmp_path, "look at @broken.png", "--", *rogue_agent.written(tmp_path, text("ok"), hello=able))
    sentence = "dragoman: @broken.png: the image is no PNG, JPEG, GIF or WebP. Nothing was sent\n"
    assert (done.code, done.out, done.error) == (2, "", sentence)
    assert rogue_agent.heard(tmp_path, "session/prompt") == []


def test_a_binary_file_on_stdin_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("ok"))
    done = run(tmp_path, "what is this?", "-", "--", *agent, said=b"\x89PNG\r\n\x1a\n\0\0")
    sentence = "dragoman: stdin is not text: PNG image, 10 bytes; name a file with @path instead\n"
    assert (done.code, done.out, done.error) == (2, "", sentence)


def test_a_file_goes_along_whole_where_the_agent_takes_that(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "b c.bin").write_bytes(b"\xff\x00")
    able = {"agentCapabilities": {"promptCapabilities": {"embeddedContext": True}}}
    agent = rogue_agent.written(tmp_path, text("ok"), hello=able)
    words = 'Compare @a.txt, and @"b c.bin" by @nobody of @no/such.file'
    done = run(tmp_path, words, "--", *agent)
    blocks = rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"]
    assert blocks == [
        {"type": "text", "text": words},
        {"type": "resource", "resource": {"text": "hello", "uri": (tmp_path / "a.txt").as_uri()}},
        {"type": "resource_link", "name": "b c.bin", "uri": (tmp_path / "b c.bin").as_uri()},
    ]
    assert done.error == "dragoman: @no/such.file is no file here; it is sent as a word\n"


def test_a_file_goes_along_as_a_link_where_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    run(tmp_path, "Read @a.txt", "--", *rogue_agent.written(tmp_path, text("ok")))
    block = rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"][1]
    assert block == {"type": "resource_link", "name": "a.txt", "uri": (tmp_path / "a.txt").as_uri()}


def test_a_run_goes_on_with_a_session(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "one"}], [{"say": "two"}])
    first = run(tmp_path, "hi", *options, "--stream-json").events[-1]["sessionId"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    second = run(tmp_path, "again", *options, "--stream-json", "--resume", first[:20], cwd=elsewhere)
    assert second.events[-1]["sessionId"] == first, second
    unknown = run(tmp_path, "hi", *options, "--resume", "sess_nobody")
    assert (unknown.code, unknown.out) == (2, "")
    assert "there is no session 'sess_nobody'" in unknown.error


def test_an_agent_of_the_fleet_is_found_by_its_name(tmp_path: Path) -> None:
    command = rogue_agent.written(tmp_path, permission("Do it"), text("Hello from the fleet."))
    entry = {"command": command[0], "args": command[1:], "permissionPolicy": "auto-approve"}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    done = run(tmp_path, "hi", "--agent", "mine")
    assert (done.code, done.out) == (0, "Hello from the fleet.\n"), done
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]


def test_a_mistake_in_one_agent_stops_that_one_alone(tmp_path: Path) -> None:
    command = rogue_agent.written(tmp_path, text("Hello."))
    good = {"command": command[0], "args": command[1:]}
    servers = {"good": good, "bad": {**good, "permissions": {"allow": [{"command": "touch *"}]}}, "gemini": {"arg": []}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": servers}))
    done = run(tmp_path, "hi", "--agent", "good")
    assert (done.code, done.out) == (0, "Hello.\n")
    assert [line.split(": ")[-1] for line in done.error.splitlines()][1].startswith("unknown key 'arg'")
    for name in ("bad", "gemini"):  # not even the built-in one in its place
        wrong = run(tmp_path, "hi", "--agent", name)
        assert (wrong.code, wrong.out) == (2, "")
        assert f"(servers.{name}." in wrong.error


def test_a_reject_rule_with_a_wildcard_holds_under_allow_all(tmp_path: Path) -> None:
    asking = permission("Touch", kind="execute", rawInput={"command": "touch x"})
    command = rogue_agent.written(tmp_path, asking, text("ok"))
    entry = {"command": command[0], "args": command[1:], "permissions": {"reject": [{"command": "touch *"}]}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    assert run(tmp_path, "hi", "--agent", "mine", "--allow", "all").code == 5
    assert rogue_agent.answers(tmp_path)[0]["outcome"] == {"outcome": "selected", "optionId": "no"}


def test_what_passes_is_traced(tmp_path: Path) -> None:
    run(tmp_path, "hi", "--trace", "trace.jsonl", "--", *rogue_agent.written(tmp_path, text("Hello.")))
    sent = [line["frame"] for line in frames_of(tmp_path / "trace.jsonl") if line["direction"] == "client -> agent"]
    assert [json.loads(frame)["method"] for frame in sent] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]
    wrong = run(tmp_path, "hi", "--trace", "no/such/folder", "--", "true")
    assert (wrong.code, wrong.error.count("cannot write the trace")) == (2, 1)


def test_modules_in_the_folder_are_not_loaded(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "Safe."}])
    for name in ("msgspec.py", "asyncio.py", "dragoman.py", "sitecustomize.py"):
        (tmp_path / name).write_text("open('taken', 'w')")
    program = [str(Path(sys.executable).parent / "dragoman"), "run", *options, "hi"]
    done = subprocess.run(
        program, cwd=tmp_path, env=environment(tmp_path), capture_output=True, timeout=40, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"Safe.\n"), done.stderr
    assert not (tmp_path / "taken").exists()


def test_mode_and_model_are_set_where_the_agent_has_them(tmp_path: Path) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "yolo", "name": "Yolo"}]}
    agent = rogue_agent.written(tmp_path, text("ok"), opened={"modes": modes})
    assert run(tmp_path, "hi", "--mode", "yolo", "--", *agent).code == 0
    assert rogue_agent.heard(tmp_path, "session/set_mode") == [{"sessionId": "s1", "modeId": "yolo"}]
    done = run(tmp_path, "hi", "--model", "gpt", "--", *agent)
    assert (done.code, done.error) == (2, "dragoman: the agent offers no model to set in this session\n")


# -- what is wrong on the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], 'there is no prompt; write dragoman run "PROMPT"'),
        (["--worktree", "fix it"], "there is no prompt: 'fix it' was taken as the worktree's name"),
        ([" "], "the prompt is empty"),
        (["-"], "the prompt is empty"),
        (["hi", "--"], "which command? Write it after the --"),
        (["hi", "--agent", "gemini", "--", "true"], "--agent NAME or -- CMD, not both"),
        (["hi", "--agent", "nobody-we-know"], "there is no agent 'nobody-we-know'"),
        (["hi", "--cwd", "no/such/folder"], "no/such/folder: there is no such folder"),
        (["hi", "--timeout", "0"], "'0' is no number of seconds above 0"),
        (["hi", "--allow", "some"], "invalid choice: 'some'"),
        (["hi", "--mode", "reckless"], "unknown mode 'reckless'"),
        (["hi", "--model", "script:/no/such.json"], "cannot read the script"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_2(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = run(tmp_path, *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.error
    assert "Traceback" not in done.error


@pytest.mark.parametrize("command", ["run", "chat"])
def test_help_fits_a_terminal(command: str, tmp_path: Path) -> None:
    shown = called.call(command, "--help", DRAGOMAN_HOME=str(tmp_path), COLUMNS="80").out
    assert shown.startswith(f"usage: dragoman {command} [options]")
    assert "[-- CMD ...]" in shown
    assert max(map(len, shown.splitlines())) <= 80


# -- what is allowed ------------------------------------------------------------------------------------------------

WRITES: list[Step] = [{"call": "write_file", "input": {"path": "new.txt", "content": "x"}}, {"say": "Done."}]
RUNS: Step = {"call": "bash", "input": {"command": "touch ran"}}


@pytest.mark.parametrize(
    ("allow", "code", "made"), [("read", 5, []), ("edit", 5, ["new.txt"]), ("all", 0, ["new.txt", "ran"])]
)
def test_with_no_user_to_ask_only_what_was_allowed_happens(
    allow: str, code: int, made: list[str], tmp_path: Path
) -> None:
    done = run(tmp_path, *scripted(tmp_path, [RUNS, *WRITES]), "--allow", allow, "hi")
    assert (done.code, done.out) == (code, "Done.\n"), done
    assert [name for name in ("new.txt", "ran") if (tmp_path / name).exists()] == made
    assert ("dragoman: not allowed: " in done.error) == (code == 5)


def test_a_command_of_a_foreign_agent_runs_here_if_allowed_and_is_shown_live(tmp_path: Path) -> None:
    # The id of the terminal is known only when it runs, so this agent asks for it by the name that a test gives it.
    program = """
import json, sys
def say(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def hear(): return json.loads(sys.stdin.readline())
def ask(id, method, **p):
    say(id=id, method=method, params={"sessionId": "s", **p})
    while (m := hear()).get("id") != id: pass
    return m["result"]
say(id=hear()["id"], result={"protocolVersion": 1})
say(id=hear()["id"], result={"sessionId": "s"})
prompt = hear()["id"]
t = ask("a", "terminal/create", command="sh", args=["-c", "echo early; read x < pipe; echo late"])["terminalId"]
shown = [{"type": "terminal", "terminalId": t}]
call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Build", "content": shown}
say(method="session/update", params={"sessionId": "s", "update": call})
ask("b", "terminal/wait_for_exit", terminalId=t)
ask("c", "terminal/release", terminalId=t)
say(id=prompt, result={"stopReason": "end_turn"})
sys.stdin.read()
"""
    os.mkfifo(tmp_path / "pipe")
    child = at_terminal(tmp_path, "hi", "--allow", "all", "--", sys.executable, "-c", program)
    child.expect_exact("• Build")
    child.expect_exact("  early")  # while the command waits
    (tmp_path / "pipe").write_text("go\n")
    child.expect_exact("  late")
    assert left(child) == 0


def test_at_a_terminal_the_user_is_asked(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, *scripted(tmp_path, WRITES), "hi")
    child.expect_exact("╔═ dragoman asks · ")
    child.expect_exact("new.txt")
    child.expect_exact("║ 1-4, y or n: ")
    child.sendline("perhaps")
    child.expect_exact("║ 1-4, y or n: ")
    child.sendline("y")
    assert left(child) == 0
    assert (tmp_path / "new.txt").exists()


def test_changes_and_a_refusal_are_shown_once(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, *scripted(tmp_path, WRITES), "hi", TERM="dumb")
    child.expect_exact("║ 1-4, y or n: ")
    shown = child.before
    child.sendline("n")
    assert left(child) == 5
    assert not (tmp_path / "new.txt").exists()
    assert (shown + child.before).count("  +x") == 1
    assert (shown + child.before).count("Permission denied") == 1


def test_what_was_typed_before_the_question_is_no_answer_to_it(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Wait."), {"wait": "go"}, permission("Do it"), text("Done."))
    child = at_terminal(tmp_path, "hi", "--", *agent)
    child.expect_exact("Wait.")
    child.sendline("y")
    child.expect_exact("y")  # the terminal has it
    (tmp_path / "plan.json.go").touch()
    child.expect_exact("║ 1-2, y or n: ")
    child.sendline("n")
    child.expect_exact("Done.")
    assert left(child) == 5
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "no"}}]


def test_nothing_is_written_under_a_question(tmp_path: Path) -> None:
    asked = {**permission("Do it"), "then": [text("\n║ 1-2, y or n: y\nYou said yes."), call(title="Later")]}
    child = at_terminal(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, text("Before."), asked, text("After.")))
    child.expect_exact("Before.")
    child.expect_exact("║ 1-2, y or n: ")
    (tmp_path / "plan.json.go").touch()
    with pytest.raises(pexpect.TIMEOUT):
        child.expect(".+", timeout=0.5)
    child.sendline("n")
    child.expect_exact("You said yes.")
    child.expect_exact("• Later")
    child.expect_exact("After.")
    assert left(child) == 5


def test_the_end_of_input_is_a_no(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, permission("Do it")))
    child.expect_exact("║ 1-2, y or n: ")
    child.sendeof()
    assert left(child) == 5
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "no"}}]


def test_a_question_of_the_agent_is_asked_at_a_terminal(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"call": "ask_user", "input": {"question": "Which?", "options": ["red", "blue"]}},
        {"say": "."},
    ]
    child = at_terminal(tmp_path, *scripted(tmp_path, steps), "--stream-json", "hi")
    child.expect_exact("2  blue")
    child.expect_exact("1-2: ")
    child.sendline("2")
    child.expect('"answer":"blue"')
    assert left(child) == 0


# -- how it ends ----------------------------------------------------------------------------------------------------


def test_a_failed_turn_is_exit_6_with_the_agents_words(tmp_path: Path) -> None:
    agent = rogue_agent.written(
        tmp_path, {"fail": {"code": -32603, "message": "Out of \x1b[31mluck", "data": {"n": 1}}}
    )
    done = run(tmp_path, "hi", "--stream-json", "--", *agent)
    assert (done.code, done.error) == (6, "dragoman: Out of \\x1b[31mluck\n")
    assert done.events[-1] == {
        "type": "result",
        "sessionId": "s1",
        "stopReason": "error",
        "usage": None,
        "error": {"code": -32603, "message": "Out of \x1b[31mluck", "data": {"n": 1}},
    }


def test_the_last_lines_of_an_agent_that_dies_are_shown_inert(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Well,"), {"stderr": "Panic!\n\x1b]0;evil\x07 at line 3\n"}, {"exit": 7})
    done = run(tmp_path, "hi", "--", *agent)
    assert (done.code, done.out) == (6, "Well,\n")
    assert "exited with code 7" in done.error
    assert "Panic!\n\\x1b]0;evil\\x07 at line 3" in done.error


@pytest.mark.parametrize("command", [["/no/such/agent"], ["true"]])
def test_an_agent_that_does_not_start_is_exit_6(command: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--stream-json", "--", *command)
    assert done.code == 6
    assert done.error.startswith("dragoman: ")
    assert done.events[-1]["stopReason"] == "error"
    assert done.events[-1]["sessionId"] is None


def test_a_timeout_cancels_politely_and_is_exit_124(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Hm."), {"wait": "cancel"}, text(" Bye."), {"end": "cancelled"})
    done = run(tmp_path, "hi", "--timeout", "1.5", "--", *agent)
    assert (done.code, done.out) == (124, "Hm. Bye.\n")
    assert done.error == "dragoman: not done after 1.5 s: cancelled\n"


def test_a_timeout_ends_an_agent_that_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_turn, "CANCEL_SECONDS", 0.1)
    agent = rogue_agent.written(tmp_path, text("Hm."), {"wait": "for ever"})
    done = run(tmp_path, "hi", "--timeout", "1.5", "--stream-json", "--", *agent)
    assert done.code == 124
    assert done.events[-1]["stopReason"] == "cancelled"
    assert done.events[-1]["error"] == {"message": "not done after 1.5 s: cancelled"}
    assert rogue_agent.is_gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_turn_politely(number: signal.Signals, tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Hm."), {"wait": "cancel"}, text(" Bye."), {"end": "cancelled"})
    process = started(tmp_path, *agent)
    process.send_signal(number)
    out, error = process.communicate(timeout=40)
    assert (process.returncode, out, error) == (130, b" Bye.\n", b"")
    assert rogue_agent.is_gone(tmp_path)


# Waits so long for a turn that was cancelled that it could not be taken for leaving at once.
PATIENT = """
import sys
from dragoman.cli import one_turn
from dragoman.cli.main import main
one_turn.CANCEL_SECONDS = 1000
sys.exit(main())
"""


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Hm."), {"wait": "cancel"}, {"wait": "for ever"})
    process = started(tmp_path, *agent, program=PATIENT)
    process.send_signal(signal.SIGINT)
    while '"session/cancel"' not in (tmp_path / "plan.json.heard").read_text():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    assert process.returncode == 130
    assert rogue_agent.is_gone(tmp_path)


def test_ctrl_c_at_a_question_cancels_the_turn_and_invents_no_answer(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it"), {"end": "cancelled"})
    child = at_terminal(tmp_path, "hi", "--", *agent)
    child.expect_exact("║ 1-2, y or n: ")
    child.sendintr()
    assert left(child) == 130
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "cancelled"}}]


def test_ctrl_c_at_a_question_about_a_file_answers_it_as_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "new.txt"
    writing = {"ask": "fs/write_text_file", "params": {"path": str(file), "content": "x"}}
    child = at_terminal(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, writing, writing, {"end": "cancelled"}))
    child.expect_exact("║ 1-2, y or n: ")
    child.sendintr()
    assert left(child) == 130
    assert [answer["code"] for answer in rogue_agent.answers(tmp_path)] == [-32800, -32800]
    assert not file.exists()


def test_noise_of_an_agent_is_reported_and_skipped(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, {"raw": "Loading \x1b[2J model…"}, text("Hello."))
    done = run(tmp_path, "hi", "--", *agent)
    assert (done.code, done.out) == (0, "Hello.\n")
    assert "dragoman: skipped what the agent wrote" in done.error
    assert "\x1b" not in done.error


def test_a_reader_that_has_seen_enough_may_close_the_pipe(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, *[text("line\n")] * 5000)  # more than any pipe holds
    program = " ".join([*DRAGOMAN, "run", "hi", "--", *agent])
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", f"{program} | head -1"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"line\n", b"")
    assert rogue_agent.is_gone(tmp_path)


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Hello."))
    with open("/dev/full", "wb") as full:
        process = fork_server().child(
            MAIN, "run", "hi", "--", *agent, stdout=full, cwd=tmp_path, env=environment(tmp_path)
        )
    _, error = process.communicate(timeout=50)
    assert (process.returncode, error) == (1, b"dragoman: stdout: cannot write there: No space left on device\n")
    assert rogue_agent.is_gone(tmp_path)


def test_through_a_pipe_nothing_is_loaded_that_only_a_terminal_needs(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Hello."))
    program = (
        "import sys\nfrom dragoman.cli.main import main\nmain(sys.argv[1:])\n"
        "print([name for name in ('rich', 'prompt_toolkit', 'dragoman.client.permission_handler', 'dragoman.wire.v2',"
        " 'dragoman.coder', 'sqlite3') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "hi", "--", *agent],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(tmp_path, DRAGOMAN_RECORD_SESSIONS="false"),
        timeout=40,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Hello.\n[]\n", "")


# -- what an agent sends is inert ---------------------------------------------------------------------------

ATTACKS = {
    "csi": "\x1b[2J\x1b[31m",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "link": "\x1b]8;;http://evil\x1b\\safe\x1b]8;;\x1b\\",
    "dcs": "\x1bP1;2q\x1b\\",
    "paste": "\x1b[200~rm\x1b[201~",
    "c1": "\x9b31m\x9d0;x\x9c",
    "return": "good\rbad",
    "backspace": "good\b\b\b\bevil",
    "bidi": "abc\u202egpj.exe\u2066x\u2069",
    "zero width": "pay\u200bload\u2060\ufeff",
    "separator": "a\u2028b\u2029c\x0b\x0cd",
}
ACTING = "".join(chr(code) for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t") + (
    "\u200b\u202e\u2066\u2069\u2060\ufeff\u2028\u2029"
)


def acts(shown: str) -> set[str]:
    return set(shown) & set(ACTING)


@pytest.mark.requirement("M1")
def test_agent_text_is_printed_inert(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, *[text(f"<{name}>{attack}</{name}>\n") for name, attack in ATTACKS.items()])
    done = run(tmp_path, "hi", "--", *agent)
    assert [name for name in ATTACKS if f"<{name}>" not in done.out or f"</{name}>" not in done.out] == []
    assert acts(done.out) == set()


@pytest.mark.requirement("M1")
def test_an_attack_cut_in_pieces_is_inert_too(tmp_path: Path) -> None:
    everything = "".join(ATTACKS.values())
    done = run(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, *[text(character) for character in everything]))
    assert acts(done.out) == set()


@pytest.mark.requirement("M1")
def test_json_is_valid_and_its_controls_are_escaped(tmp_path: Path) -> None:
    everything = "".join(ATTACKS.values())
    done = run(tmp_path, "hi", "--stream-json", "--", *rogue_agent.written(tmp_path, text(everything)))
    assert acts(done.out) == set()
    told = [event["content"]["text"] for event in done.events if event["type"] == "agent_message_chunk"]
    assert told == [everything]


@pytest.mark.requirement("M1")
def test_titles_files_output_and_plans_are_inert_on_a_terminal(tmp_path: Path) -> None:
    bad = "".join(ATTACKS.values())
    diff = {"type": "diff", "path": f"/tmp/{bad}", "oldText": bad, "newText": f"{bad}\nnew {bad}"}
    output = {"type": "content", "content": {"type": "text", "text": f"out {bad}\n"}}
    plan = {"sessionUpdate": "plan", "entries": [{"content": bad, "priority": "high", "status": "pending"}]}
    agent = rogue_agent.written(
        tmp_path,
        call(title=f"Do {bad}", kind="execute", content=[output], locations=[{"path": bad}]),
        call("c2", title=f"Edit {bad}", kind="edit", content=[diff]),
        {"update": plan},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}},
        permission(f"May I {bad}", rawInput={bad: bad, "command": bad}, locations=[{"path": bad}], content=[diff]),
        text("over"),
    )
    child = at_terminal(tmp_path, "hi", "--", *agent, TERM="dumb")
    child.expect_exact("║ 2, v or n: ")  # it is taller than the screen
    shown = child.before
    child.sendline("v")
    child.expect_exact("n: no: ")
    shown += child.before
    child.sendline("a")
    child.expect_exact("║ 1-2, v, y or n: ")
    shown += child.before
    child.sendline("n")
    child.expect_exact("over")
    assert "May I" in shown
    assert acts((shown + child.before).replace("\r\n", "\n")) == set()
    assert left(child) == 5


@pytest.mark.requirement("M2")
def test_a_megabyte_without_spaces_and_a_heap_of_marks_hold_nothing_up(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("x" * 1_000_000), text("e" + "\u0301" * 10_000 + "🧑‍🚀"), text(" end"))
    done = run(tmp_path, "hi", "--", *agent)
    assert done.out.startswith("x" * 1_000_000 + "e\u0301")
    assert done.out.count("\u0301") <= 8
    assert done.out.endswith("🧑‍🚀 end\n")


@pytest.mark.requirement("M2")
def test_a_question_about_something_endless_is_short_and_all_of_it_can_be_seen(tmp_path: Path) -> None:
    options = [{"optionId": str(n), "name": "Yes " * 500, "kind": "allow_once"} for n in range(200)]
    options.append({"optionId": "no", "name": "No", "kind": "reject_once"})
    long = {"command": "echo " + "x" * 100_000 + "\n" * 500 + "rm -rf /", "more": ["y" * 10_000] * 100}
    agent = rogue_agent.written(tmp_path, permission("z" * 100_000, rawInput=long, options=options), text("over"))
    child = at_terminal(tmp_path, "hi", "--", *agent, TERM="dumb")
    child.expect_exact("n: no: ")  # so many options are taller than the screen
    child.sendline("a")
    child.expect_exact("║ v or n: ")
    child.sendline("1")
    child.expect_exact("║ That cannot be chosen: not all of it is shown yet, and v shows it.")
    child.expect_exact("║ v or n: ")  # what is typed before it counts for nothing
    child.sendline("v")
    child.expect_exact("n: no: ")
    child.sendline("a")
    child.expect_exact("║ Input: ")
    assert "rm -rf /" in child.before
    child.expect_exact("║ (All of it was shown; v shows it again.)")
    assert child.before.count("y" * 80) > 10_000
    child.expect_exact("n: no: ")
    child.sendline("n")
    child.expect_exact("over")
    assert left(child) == 5


@pytest.mark.requirement("M3")
def test_no_output_looks_like_our_question(tmp_path: Path) -> None:
    fake = "╔═ dragoman asks · amber-amber ═╗\n║ May I? ║\n╚═══╝\n║ 1-2, y or n: "
    agent = rogue_agent.written(tmp_path, text(fake), call(title=fake), permission(fake), text("over"))
    child = at_terminal(tmp_path, "hi", "--", *agent)
    child.expect("╔═ dragoman asks · ([a-z]+-[a-z]+) ")
    assert not set(child.before) & set("╔═╗║╚╝")  # the first frame is ours
    child.expect_exact("║ 1-2, y or n: ")
    lines = child.before.splitlines()
    assert all(line.strip()[0] == line.strip()[-1] == "║" for line in lines[1:-1] if line.strip() and "╚" not in line)
    child.sendline("y")
    child.expect_exact("over")
    assert left(child) == 0
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]


@pytest.mark.requirement("M3")
def test_an_option_is_named_by_what_it_does(tmp_path: Path) -> None:
    lies = [
        {"optionId": "a", "name": "No, never", "kind": "allow_always"},
        {"optionId": "b", "name": "Yes, of course", "kind": "reject_once"},
    ]
    child = at_terminal(
        tmp_path, "hi", "--", *rogue_agent.written(tmp_path, permission("Do it", options=lies)), TERM="dumb"
    )
    child.expect_exact("1  yes, always  “No, never”")
    child.expect_exact("2  no; write what to do instead behind it  “Yes, of course”")
    child.expect_exact("║ 1-2 or n: ")  # no option is a yes for this once
    child.sendline("n")
    assert left(child) == 5
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "b"}}]


@pytest.mark.requirement("M4")
def test_killed_while_asking_no_answer_is_invented(tmp_path: Path) -> None:
    child = at_terminal(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, permission("Do it"), text("over")))
    child.expect_exact("║ 1-2, y or n: ")
    before = child.getecho()
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.close()
    assert before  # the terminal was never taken out of its own mode, so there is nothing to restore
    assert rogue_agent.answers(tmp_path) == []


# -- an agent that is being written ---------------------------------------------------------------------------------

BUGGY = """
import sys
from dragoman import Agent
agent = Agent("buggy")
@agent.prompt
async def reply(session, prompt):
    print("\\x1b[31mred", file=sys.stderr)
    raise ValueError("boom")
agent.run()
"""


def test_a_bug_in_an_agent_is_shown_as_its_author_would_see_it(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--", sys.executable, "-c", BUGGY)
    assert (done.code, done.out) == (6, "")
    first, second, *rest = done.error.splitlines()
    assert (first, second) == ("dragoman: Internal error (-32603)", "It last wrote to stderr:")
    assert rest[-1] == "ValueError: boom"
    assert "\x1b" not in done.error


def test_stderr_of_an_agent_is_shown_as_it_comes_where_that_is_wanted(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--show-stderr", "--", sys.executable, "-c", BUGGY)
    assert done.error.splitlines()[0] == "red"
    assert done.error.splitlines()[-2:] == ["ValueError: boom", "dragoman: Internal error (-32603)"]


def test_a_program_that_is_no_agent_is_suspected_of_it(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--", "sh", "-c", "echo oops >&2; exit 3")
    sentence = (
        "dragoman: sh exited with code 3 before it answered; it may not speak ACP. It last wrote to stderr:\noops\n"
    )
    assert (done.code, done.error) == (6, sentence)


def test_warnings_are_on_stderr_where_the_answer_is_piped(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}}')
    first = run(tmp_path, *scripted(tmp_path, [{"say": "Well."}]), "hi")
    told = f"dragoman: .mcp.json is not used: it has not been trusted here; dragoman trust {tmp_path}\n"
    assert (first.code, first.out, first.error) == (0, "Well.\n", told)
    (tmp_path / ".mcp.json").write_text('{"mcpServers":\n{"x": }}')
    broken = run(tmp_path, *scripted(tmp_path, [{"say": "Well."}]), "hi")
    assert broken.error == "dragoman: .mcp.json, line 2: this is not JSON; .mcp.json is not used\n"


def test_a_missing_key_is_told_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "anthropic/some", "hi")
    sentence = "dragoman: anthropic needs a key. Set ANTHROPIC_API_KEY, or run: dragoman login anthropic\n"
    assert (done.code, done.error) == (6, sentence)


def test_the_former_name_of_the_demo_is_told_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "offline", "hi")
    sentence = "dragoman: warning: the model `offline` is called `demo` now; the old name goes with the next release\n"
    assert (done.code, done.error, done.out.startswith("This is the demo")) == (0, sentence, True)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions").write_text("a file")
    done = run(tmp_path, "--model", "demo", "hi")
    assert done.code == 6
    assert done.error.endswith(
        f"; sessions are kept in {tmp_path / 'home'}, and DRAGOMAN_HOME can name another folder\n"
    )
