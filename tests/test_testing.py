"""`dragoman.testing`: a pytest plugin that a conftest names, and helpers that end with the error of a mistake."""

import asyncio
import os
import subprocess
import sys
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import RequestFailed, TimedOut, UsageError
from dragoman.link import Trace
from dragoman.testing import ScriptedAgent, ScriptedClient, pair
from dragoman.transports.contract import Transport
from dragoman.vocabulary.events import AgentMessageChunk
from tests.support.needs import ROOT

# Far more than any of these mistakes takes, and less than `pair` waits for an agent that does not end.
BOUND_SECONDS = 4.0

TEST = """\
import asyncio

from dragoman import Agent

agent = Agent("greeter")


@agent.prompt
async def reply(session, prompt):
    await session.say("hello")


def test_all_three_fixtures(acp_pair, scripted_agent, scripted_client):
    async def play():
        async with acp_pair(agent) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "hello"
        async with acp_pair(scripted_agent("first")) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "first"
        *_, said, end = await scripted_client(agent).play("hi")
        assert said.text == "hello"

    asyncio.run(play())
"""


def outcome_of(folder: Path, conftest: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_greeter.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    # Installed plugins are left out: what this environment was once installed with is not the point.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=50, check=False)


def test_a_conftest_that_names_the_plugin_has_its_fixtures(tmp_path: Path) -> None:
    done = outcome_of(tmp_path, 'pytest_plugins = ["dragoman.testing"]\n')
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_without_that_pytest_does_not_know_them(tmp_path: Path) -> None:
    assert "fixture 'acp_pair' not found" in outcome_of(tmp_path, "").stdout


def test_installing_the_package_puts_nothing_into_every_run_of_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "entry-points" not in project


class Mute(Agent):
    """An agent that reads nothing and never ends by itself."""

    async def serve(self, transport: Transport, *, trace: Trace | None = None, trusted: bool = False) -> None:
        await asyncio.Event().wait()


class Broken(Agent):
    """An agent whose connection fails before it has answered anything."""

    async def serve(self, transport: Transport, *, trace: Trace | None = None, trusted: bool = False) -> None:
        raise ZeroDivisionError("at the start")


async def mistaken(agent: Agent, **settings: Any) -> BaseException:
    """Return the error that a pair ends with. It has to come well before any test would be given up."""
    async with asyncio.timeout(BOUND_SECONDS) as bound:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - callers compare its type and text
            async with pair(agent, **settings) as client:
                await client.new_session("/tmp")
    assert not bound.expired()
    return caught.value


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("agent", "settings", "error", "message"),
    [
        (ScriptedAgent(), {"permision": None}, TypeError, "permision"),
        (ScriptedAgent(), {"permission": lambda request: request.options[0]}, UsageError, "permission is awaited"),
        (ScriptedAgent(), {"protocol": 3}, UsageError, "protocol must be 1 or 2"),
        (Agent("without a handler"), {}, UsageError, "no prompt handler"),
        (Broken("broken"), {}, ZeroDivisionError, "at the start"),
        (Mute("mute"), {"start_timeout": 0.05}, TimedOut, "did not answer initialize"),
        ("an agent", {}, UsageError, "write `pair(agent)`"),
    ],
)
async def test_a_mistake_ends_a_pair_at_once_with_the_error_itself(
    agent: Agent, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    caught = await mistaken(agent, **settings)
    assert type(caught) is error
    assert message in str(caught)


@pytest.mark.anyio
async def test_a_session_handler_that_raises_fails_the_request_that_opens_the_session() -> None:
    agent = ScriptedAgent()

    @agent.session_opened
    async def opened(session: Session) -> None:
        raise ValueError("not today")

    assert type(await mistaken(agent)) is RequestFailed


@pytest.mark.anyio
async def test_an_exception_in_the_body_is_what_a_pair_ends_with() -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        with pytest.raises(ZeroDivisionError, match="in the test"):
            async with pair(ScriptedAgent()):
                raise ZeroDivisionError("in the test")


@pytest.mark.anyio
async def test_a_pair_that_is_cancelled_ends_with_its_agent() -> None:
    begun = asyncio.Event()
    before = asyncio.all_tasks()

    async def body() -> None:
        async with pair(ScriptedAgent()):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await begun.wait()
    task.cancel()
    async with asyncio.timeout(BOUND_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_a_scripted_client_with_a_mistake_in_its_settings_ends_at_once() -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        with pytest.raises(TypeError, match="permision"):
            await ScriptedClient(ScriptedAgent(), permision=None).play("hi")  # type: ignore[call-arg]


@pytest.mark.anyio
async def test_a_scripted_client_works_in_a_folder_of_its_own() -> None:
    """Not in the root of the file system: an agent under test may write."""
    seen: list[tuple[str, bool]] = []
    agent = Agent("writer")

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        seen.append((session.cwd, os.path.isdir(session.cwd)))

    await ScriptedClient(agent).play("hi")
    await ScriptedClient(agent, cwd="/").play("hi")
    (own, existed), given = seen
    assert (existed, os.path.exists(own), given) == (True, False, ("/", True))


def asking_agent() -> Agent:
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> AsyncGenerator[str, None]:
        yield "Thank you." if await session.ask_permission("May I?") else "As you wish."

    return agent


async def answer_to(**settings: Any) -> str:
    events = await ScriptedClient(asking_agent(), **settings).play("hi")
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


@pytest.mark.anyio
async def test_an_answer_that_is_not_offered_is_a_mistake_and_no_refusal() -> None:
    with pytest.raises(UsageError, match=r"'May I\?' does not offer 'allow'.*write one of allow_once, reject_once"):
        await ScriptedClient(asking_agent(), permissions=["allow"]).play("hi")
    assert await answer_to(permissions=(one for one in ["allow_once"])) == "Thank you."
    assert await answer_to() == "As you wish."  # a question that was not foreseen


def test_scripts_and_permissions_in_a_wrong_shape_are_refused() -> None:
    with pytest.raises(UsageError, match=r"write `permissions=\['allow_once'\]`"):
        ScriptedClient(asking_agent(), permissions="allow_once")
    with pytest.raises(UsageError, match="a script is text, or a list of pieces, not b'hi'"):
        ScriptedAgent(b"hi")  # type: ignore[arg-type]
