"""What the user writes while a turn runs, and what they run themselves."""

from pathlib import Path

from tests.cli.chat_pane import PROMPT, chat, ready, scripted
from tests.support import rogue_agent
from tests.support.rogue_agent import text


def prompts(folder: Path) -> list[str]:
    """The words of each prompt that the agent has got."""
    return ["|".join(block["text"] for block in sent["prompt"]) for sent in rogue_agent.heard(folder, "session/prompt")]


def waiting(*then: str) -> list[dict[str, object]]:
    """A turn that goes on when the file `plan.json.go` is there."""
    return [text("Wait.\n\n"), {"wait": "go"}, *map(text, then)]


def test_a_line_that_is_typed_meanwhile_is_shown_and_sent_after_the_turn(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, *waiting("over"))) as pane:
        ready(pane)
        pane.say("first")
        pane.wait_for(r"Wait\.")
        pane.type("second")
        pane.wait_for("^> second.$")  # as it is typed, with its cursor
        pane.press("Enter")
        pane.wait_for("^next: second")
        pane.type("begun")
        pane.wait_for("^> begun.$")
        (tmp_path / "plan.json.go").touch()
        pane.wait_for("^> second$", "^over", "^> begun$", times=1)
        pane.press("C-c")
        pane.say("/exit")
        assert pane.left() == 0
    assert prompts(tmp_path) == ["first", "second"]


def test_a_stop_gives_the_waiting_lines_back_and_sends_none(tmp_path: Path) -> None:
    steps = [text("Wait.\n\n"), {"wait": "cancel"}, {"end": "cancelled"}]
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, *steps)) as pane:
        ready(pane)
        pane.say("first")
        pane.wait_for(r"Wait\.")
        pane.say("second")
        pane.say("third")
        pane.wait_for("^next: second", "^next: third")
        pane.press("Up")  # takes the newest back into the line
        pane.wait_for("^> third.$")
        pane.type(" time")
        pane.wait_for("^> third time.$")
        pane.press("C-c")
        pane.wait_for("^Stopped", "^> second$", "^  third time$")
    assert prompts(tmp_path) == ["first"]


def test_a_paste_of_several_lines_is_one_line_to_send(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, *waiting("over"))) as pane:
        ready(pane)
        pane.say("first")
        pane.wait_for(r"Wait\.")
        pane.tmux("set-buffer", "one\ntwo\n")
        pane.tmux("paste-buffer", "-p")
        pane.wait_for(r"^> one\\ntwo\\n.$")
        pane.press("Enter")
        pane.wait_for("^next: one two")
        (tmp_path / "plan.json.go").touch()
        pane.wait_for("^over", PROMPT, times=2)
    assert prompts(tmp_path) == ["first", "one\ntwo\n"]


def test_our_agent_takes_a_line_into_the_turn_and_tab_keeps_it_for_later(tmp_path: Path) -> None:
    look = {"call": "bash", "input": {"command": "until [ -e ../go ]; do sleep 0.05; done"}}
    arguments = scripted(tmp_path, [look, {"say": "first over"}], [{"say": "second over"}])
    with chat(tmp_path, "--mode", "full-access", *arguments) as pane:
        ready(pane)
        pane.say("first")
        pane.wait_for("until")
        pane.type("later")
        pane.press("Tab")
        pane.wait_for("^next: later")
        pane.say("also this")
        pane.wait_for("^adding: also this")
        (tmp_path / "go").touch()
        pane.wait_for("^↳ also this", "first over", "^> later", "second over", PROMPT)


def test_a_command_of_the_user_runs_at_once_and_goes_along_with_the_next_prompt(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("Yes."))) as pane:
        ready(pane)
        pane.say("!echo it is $((40 + 2)); echo no >&2; exit 3")
        pane.wait_for("^it is 42", "^no$", r"^\(exit code 3; the agent is told of it with your next prompt", PROMPT)
        pane.say("!echo up; sleep 1000")
        pane.wait_for("^up")
        pane.press("C-c")
        pane.wait_for(r"^\(stopped; ", PROMPT)
        pane.say("what was that?")
        pane.wait_for("^Yes", PROMPT)
        pane.say("and now?")
        pane.wait_for("^Yes", PROMPT, times=2)
    ran = "The user ran a command (exit code 3).\n\n$ echo it is $((40 + 2)); echo no >&2; exit 3\nit is 42\nno\n"
    stopped = "The user ran a command (stopped).\n\n$ echo up; sleep 1000\nup\n"
    assert prompts(tmp_path) == [f"{ran}|{stopped}|what was that?", "and now?"]


def test_files_and_commands_are_found_by_their_letters_and_the_editor_writes_the_line(tmp_path: Path) -> None:
    deep = tmp_path / "work" / "source" / "deep"
    deep.mkdir(parents=True)
    (deep / "store.py").write_text("x = 1\n")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "written in the editor" > "$1"\n')
    editor.chmod(0o755)
    agent = rogue_agent.written(tmp_path, text("Yes."))
    with chat(tmp_path, "--", *agent, env={"EDITOR": str(editor), "VISUAL": ""}) as pane:
        ready(pane)
        pane.type("see @srcst")
        pane.wait_for(r"^ +source/deep/store\.py")
        pane.press("Tab")
        pane.wait_for(r"^> see @source/deep/store\.py")
        pane.press("C-u")
        pane.type("/thkg")
        pane.wait_for("/thinking")
        pane.press("C-u")
        pane.type("begun")
        pane.press("C-g")
        pane.wait_for("^> written in the editor")
        pane.press("Enter")
        pane.wait_for("^Yes", PROMPT)
    assert prompts(tmp_path) == ["written in the editor"]


def test_plain_draws_no_frame_and_nothing_twice(tmp_path: Path) -> None:
    asks = rogue_agent.written(tmp_path, text("Wait.\n\n"), rogue_agent.permission("Do it"), text("over"))
    with chat(tmp_path, "--plain", "--", *asks) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for("^║ dragoman asks", "^║ The agent asks for permission: Do it$", r"n: ?$")
        pane.say("n")
        pane.wait_for("^over", PROMPT)
        raw = pane.raw()
    assert not set("╔╗╚╝═⠋⠙⠹⠸") & set(raw)
    assert raw.count("Wait.") == 1
