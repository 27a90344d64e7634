"""What a newcomer gets wrong with an `Agent`: each mistake is a Python error that names the fix."""

import functools
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import UsageError
from dragoman.transports.memory import memory_pair
from tests.support.messages import prompt
from tests.support.raw_peer import PIPE
from tests.support.served_agent import Reporting, end_of_turn, opened, served

pytestmark = pytest.mark.anyio


def sync_handler(session, prompt):  # type: ignore[no-untyped-def]
    return "hi"


async def no_arguments() -> None: ...


async def one_argument(session: Session) -> None: ...


async def three_arguments(session: Session, prompt: Prompt, more: object) -> None: ...


async def two_arguments(session: Session, prompt: Prompt) -> None: ...


async def generator(session: Session) -> AsyncGenerator[str, None]:
    yield "x"


@pytest.mark.parametrize(
    ("decorate", "told"),
    [
        (lambda agent: agent.prompt(sync_handler), "write `async def sync_handler(session, prompt)`"),
        (lambda agent: agent.prompt(lambda session, prompt: "hi"), "needs an async function"),
        (lambda agent: agent.prompt(no_arguments), "@agent.prompt calls no_arguments(session, prompt)"),
        (lambda agent: agent.prompt(one_argument), "too many positional arguments"),
        (lambda agent: agent.prompt(three_arguments), "missing a required argument: 'more'"),
        (lambda agent: agent.prompt("hi"), "decorates a function, not 'hi'"),
        (lambda agent: (agent.prompt(two_arguments), agent.prompt(two_arguments)), "use @agent.command"),
        (lambda agent: agent.session_opened(no_arguments), "@agent.session_opened calls no_arguments(session)"),
        (lambda agent: agent.session_opened(generator), "must not yield"),
        (lambda agent: agent.option_changed(one_argument), "one_argument(session, config_id, value)"),
        (lambda agent: agent.extension("ping"), "use '_ping'"),
        (lambda agent: agent.notification("ping"), "use '_ping'"),
        (lambda agent: agent.extension(one_argument), '@agent.extension("_name")'),
        (lambda agent: agent.extension("_ping")(no_arguments), "no_arguments(params)"),
        (lambda agent: agent.command("two words", ""), "is one word"),
        (lambda agent: agent.command("", ""), "is one word"),
        (lambda agent: agent.command(one_argument, ""), '@agent.command("name", "what it does")'),
        (lambda agent: agent.login(no_arguments), "no_arguments(method_id)"),
        (lambda agent: agent.run(), "decorate an async function with @agent.prompt"),
    ],
)
def test_a_mistake_in_decorating_shows_at_once(decorate: Callable[[Any], object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        decorate(Agent("x"))
    assert told in str(caught.value)


@pytest.mark.parametrize("protocol", [0, 3, "1"])
def test_an_unsupported_protocol_is_refused(protocol: Any) -> None:
    with pytest.raises(UsageError, match="protocol must be 1 or 2"):
        Agent("x", protocol=protocol)


def test_handlers_in_every_honest_form_are_taken() -> None:
    class Author:
        async def method(self, session: Session, prompt: Prompt) -> None: ...

        async def __call__(self, session: Session, prompt: Prompt) -> None: ...

    async def with_more(more: str, session: Session, prompt: Prompt) -> None: ...

    async def with_default(session: Session, prompt: Prompt, more: int = 0) -> None: ...

    def gives_a_generator(session: Session, prompt: Prompt) -> AsyncGenerator[str, None]:
        raise NotImplementedError

    @functools.wraps(two_arguments)
    def wrapped(*args: Any) -> Any:
        return two_arguments(*args)

    forms: list[Any] = [
        Author().method,
        Author(),
        functools.partial(with_more, "x"),
        with_default,
        gives_a_generator,
        wrapped,
    ]
    for form in forms:
        Agent("x").prompt(form)


async def test_serving_without_a_prompt_handler_names_the_fix() -> None:
    ours, _ = memory_pair(PIPE)
    with pytest.raises(UsageError, match=r"decorate an async function with @agent\.prompt"):
        await Agent("x").serve(ours)


async def test_running_inside_a_loop_names_the_fix() -> None:
    agent = Agent("x")
    agent.prompt(two_arguments)
    with pytest.raises(UsageError, match=r"await agent\.serve_stdio\(\)"):
        agent.run()


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("stop", "return None or one of ['cancelled', 'end_turn'"),
        ("dict", "a prompt handler returned {'stop': 1}"),
        ("number", "not int: use str(...)"),
        ("option", "give it to Agent(options=[...]) first"),
        ("method", "use '_ping'"),
    ],
)
async def test_a_mistake_in_a_turn_is_told_to_the_author_and_only_that_it_failed_to_the_client(
    work: str, told: str
) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> Any:
        match work:
            case "stop":
                return "finished"
            case "dict":
                return {"stop": 1}
            case "number":
                await session.say(42)  # type: ignore[arg-type]
            case "option":
                session.option("colour")
            case "method":
                await session.request("ping")
        return None

    async with served(agent, 1) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert await end_of_turn(wire, 2, 1) == {"error": {"code": -32603, "message": "Internal error"}}
    assert [type(bug) for bug in agent.bugs] == [UsageError]
    assert told in str(agent.bugs[0])


async def test_a_function_that_turns_out_not_to_be_async_is_found_when_it_is_called() -> None:
    agent = Reporting("x")

    def reply(session: Session, prompt: Prompt) -> object:
        return "hi"

    agent.prompt(reply)  # type: ignore[arg-type]
    async with served(agent, 1) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert "error" in await end_of_turn(wire, 2, 1)
    assert "this one returned 'hi': write `async def`" in str(agent.bugs[0])


async def test_a_report_survives_a_closed_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a stderr, as a GUI starts it: the turn is answered all the same."""
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        raise ValueError("written to no stream")

    monkeypatch.setattr("sys.stderr", None)
    async with served(agent, 1) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert await wire.answer(2) == {
            "jsonrpc": "2.0",
            "id": 2,
            "error": {"code": -32603, "message": "Internal error"},
        }
