"""What an author sees of an agent and a session: no more than these members; former names warn."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Prompt, Session
from dragoman.agent.agent import agent_core
from tests.support.messages import prompt
from tests.support.served_agent import opened, served
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

DECORATORS = {
    *("prompt", "command", "session_opened", "session_closed", "option_changed", "extension", "notification"),
    *("login", "logout", "auth_status"),
}
FORMER = {"on_login": "login", "on_logout": "logout", "on_auth_status": "auth_status"}
SESSION = {
    *("roots", "mcp_servers", "client", "options", "commands", "title", "usage"),
    *("say", "think", "emit", "tool", "terminal", "plan", "notice", "show_usage"),
    *("set_title", "set_commands", "set_options", "option", "queued_prompts"),
    *(
        "ask_permission",
        "permissions",
        "forget_permissions",
        "ask_user",
        "read_text_file",
        "write_text_file",
        "mcp_call",
    ),
    *("client_terminal", "request", "notify", "remember", "recall"),
}


def members(of: object) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_an_agent_shows_decorators_and_ways_to_serve() -> None:
    assert members(Agent("x")) == DECORATORS | {"run", "serve_stdio", "serve"} | FORMER.keys()


def test_a_session_shows_what_an_author_uses() -> None:
    assert members(Session) == SESSION | {"interjected"}
    assert members(Prompt) == {"command", "text", "words"}


async def test_an_open_session_has_its_id_its_folder_and_its_memory_as_well() -> None:
    agent = Agent("x")
    seen: list[set[str]] = []

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        seen.append(members(session))

    async with served(agent, 1) as wire:
        wire.say(prompt(2, await opened(wire)))
        await wire.answer(2)
    assert seen == [SESSION | {"interjected", "id", "cwd", "memory"}]


@pytest.mark.parametrize(("former", "now"), FORMER.items())
def test_a_former_decorator_registers_with_a_warning(former: str, now: str) -> None:
    agent = Agent("x")

    async def handler(*_: Any) -> Any: ...

    with pytest.warns(DeprecationWarning, match=f"@agent.{former} is called @agent.{now} now") as caught:
        assert getattr(agent, former)(handler) is handler
    assert [warning.filename for warning in caught] == [__file__]
    assert getattr(agent_core(agent), f"{now}_handler") is handler


@pytest.mark.parametrize("value", [True, False])
def test_the_former_name_of_steering_works_with_a_warning(value: bool) -> None:
    with pytest.warns(DeprecationWarning, match=r"Agent\(hears_interjections=…\) is called Agent\(steering=…\) now"):
        agent = Agent("x", hears_interjections=value)
    assert agent_core(agent).steering is value


async def test_the_former_name_of_queued_prompts_works_with_a_warning() -> None:
    agent = Agent("x", steering=True)
    found: list[list[Prompt]] = []

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        with pytest.warns(DeprecationWarning, match=r"session.interjected\(\) is called session.queued_prompts\(\)"):
            found.append(await session.interjected())

    async with served(agent, 2) as wire:
        wire.say(prompt(2, await opened(wire)))
        await wire.answer(2)
        await until(lambda: bool(found))
    assert found == [[]]


async def test_a_session_has_the_mcp_servers_of_its_client(tmp_path: Path) -> None:
    agent = Agent("x")
    found: list[list[str]] = []

    @agent.session_opened
    async def open_it(session: Session) -> None:
        found.append([getattr(server, "name", "") for server in session.mcp_servers])

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None: ...

    async with served(agent, 1) as wire:
        server = {"name": "files", "command": "files", "args": [], "env": []}
        wire.say({"id": 1, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": [server]}})
        assert "result" in await wire.answer(1)
    assert found == [["files"]]
