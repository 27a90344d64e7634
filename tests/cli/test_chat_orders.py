"""Words with a slash in `dragoman chat`: a mistyped one costs nothing, a path is said to the agent."""

import sys
from pathlib import Path
from typing import Any

from tests.cli.chat_pane import PROMPT, chat, ready, scripted
from tests.cli.pane import Pane
from tests.support import rogue_agent
from tests.support.fork_server.client import fork_server
from tests.support.rogue_agent import text

REVIEW: dict[str, Any] = {"name": "review", "description": "Look at it"}
COMMANDS: dict[str, Any] = {"update": {"sessionUpdate": "available_commands_update", "availableCommands": [REVIEW]}}
# Waits so long for commands that no test could take it for not waiting.
PATIENT = """
import sys
from dragoman.cli.terminal import chat_session
from dragoman.cli.main import main
chat_session.ANNOUNCE_SECONDS = 1000
sys.exit(main())
"""


# An agent with an option that is neither mode, model nor level of thought.
SORTING = """
from dragoman import Agent, Choice, Select

order = Select("order", "Order of the list", "added", [Choice("added", "As added"), Choice("name", "By name")])
agent = Agent("sorting", options=[order])


@agent.prompt
async def reply(session, prompt):
    await session.say(f"The order is {session.option('order')}.")


agent.run()
"""


def prompts(folder: Path) -> list[str]:
    return [one["prompt"][0]["text"] for one in rogue_agent.heard(folder, "session/prompt")]


def test_a_mistyped_command_is_not_sent_and_the_nearest_is_named(tmp_path: Path) -> None:
    with chat(tmp_path, *scripted(tmp_path, [{"say": "I was asked."}])) as pane:
        ready(pane)
        pane.say("/modle gpt-5")
        pane.wait_for(r"^no such command: /modle; did you mean /model\? \(//modle sends it to the agent\)$", PROMPT)
        pane.say("/compcat")
        pane.wait_for(r"^no such command: /compcat; did you mean /compact\?", PROMPT)
        pane.say("/nosuch\\")
        pane.say("and more")
        pane.wait_for("^no such command: /nosuch; /help shows what there is", PROMPT)
        assert "I was asked" not in pane.screen()
        pane.say("//nosuch")
        pane.wait_for("I was asked", PROMPT)


def test_no_word_with_one_slash_reaches_the_agent_unless_it_has_such_a_command(tmp_path: Path) -> None:
    odd = {"name": "ünï!", "description": "An odd name"}
    announced = {"update": {**COMMANDS["update"], "availableCommands": [REVIEW, odd]}}
    wrong = ["/help?", "/exit!", "/models,", "/mode=plan", "/ünknown", "/1abc", "/review,", "/", "/ help"]
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("Yes."), then=[announced])) as pane:
        ready(pane)
        (tmp_path / "plan.json.go").touch()
        pane.say("/ünï! now")
        pane.wait_for(r"Yes\.", PROMPT)
        for number, words in enumerate(wrong, 1):
            pane.say(words)
            pane.wait_for("^no such command: /", PROMPT, times=number)
        for number, words in enumerate(["//help?", "/etc, what is it?"], 2):
            pane.say(words)
            pane.wait_for(r"Yes\.", PROMPT, times=number)
    assert prompts(tmp_path) == ["/ünï! now", "/help?", "/etc, what is it?"]


def test_a_path_an_escaped_word_and_a_word_after_a_blank_are_said_to_the_agent(tmp_path: Path) -> None:
    said = ["/etc is odd", "/etc/hosts is odd", "/usr/bin/x", " /nosuch at all", "//help me"]
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, COMMANDS, text("Yes."))) as pane:
        ready(pane)
        for number, words in enumerate(said, 1):
            pane.say(words)
            pane.wait_for(r"Yes\.", PROMPT, times=number)
        pane.say("/help")
        pane.wait_for("^//word +the same for the agent, as /word", PROMPT)
    assert prompts(tmp_path) == [*said[:-1], "/help me"]


def test_a_command_that_the_agent_is_yet_to_announce_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    agent = rogue_agent.written(tmp_path, text("Yes."), then=[COMMANDS])
    program = fork_server().command(PATIENT, imports="dragoman.cli.main")
    command = [*program, "chat", "--cwd", str(tmp_path / "work"), "--", *agent]
    with Pane(tmp_path, command, {"DRAGOMAN_HOME": str(tmp_path / "home"), "COLORTERM": ""}) as pane:
        ready(pane)
        pane.say("/review it")
        pane.wait_for("^> /review it$")
        (tmp_path / "plan.json.go").touch()
        pane.wait_for(r"Yes\.", PROMPT)
    assert prompts(tmp_path) == ["/review it"]


def test_an_agent_that_announces_nothing_is_not_waited_for_longer_than_a_moment(tmp_path: Path) -> None:
    with chat(tmp_path, "--", *rogue_agent.written(tmp_path, text("Yes."))) as pane:
        ready(pane)
        pane.say("/nosuch")
        pane.wait_for("^no such command: /nosuch", PROMPT)
        pane.say("/nosuch")
        pane.wait_for("^no such command: /nosuch", PROMPT, times=2)
    assert not prompts(tmp_path)


def test_the_end_of_a_background_command_stands_above_the_line_and_what_it_prints_in_its_list(tmp_path: Path) -> None:
    command = "echo up; until [ -e go ]; do sleep 0.02; done; exit 3"
    call = {"call": "bash", "input": {"command": command, "background": True}}
    steps: list[dict[str, Any]] = [call, {"say": "It runs."}]
    with chat(tmp_path, *scripted(tmp_path, steps), "--mode", "full-access") as pane:
        ready(pane)
        pane.say("start")
        pane.wait_for(r"It runs\.", PROMPT)
        pane.say("/tasks")
        pane.wait_for("bg1: running for", "^ +up$", PROMPT)
        (tmp_path / "work" / "go").touch()
        pane.wait_for("^! Background command bg1: ended with exit code 3", PROMPT)


def test_every_option_of_an_agent_is_listed_and_set_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(SORTING)
    with chat(tmp_path, "--", sys.executable, str(tmp_path / "agent.py")) as pane:
        ready(pane)
        pane.say("/option")
        pane.wait_for("^order +added +Order of the list$", PROMPT)
        pane.say("/option order")
        pane.wait_for(r"^\* added +As added$", "^  name +By name$", PROMPT)
        pane.say("/option ordre name")
        pane.wait_for("^This agent has no option ordre; it has:$", PROMPT)
        pane.say("/option order name")
        pane.wait_for("^order: name$", PROMPT)
        pane.say("Well?")
        pane.wait_for(r"The order is name\.", PROMPT)
