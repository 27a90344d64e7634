"""What an author hands over in another type than JSON has: it is sent as the same thing, or refused where it is given.

Each is tried with a store, since a log that cannot be written ends the turn long after the line that was wrong.
"""

import datetime
import enum
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import UsageError
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import pair
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    Notice,
    OptionsChanged,
    PlanUpdate,
    TerminalUpdate,
    ToolCallUpdate,
)
from dragoman.vocabulary.options import Choice, PlanEntry, PlanItems, Select
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from dragoman.vocabulary.tools import Location

Handler = Callable[[Session], Awaitable[None]]


class Name(str):
    """As Markup, numpy.str_ and others are."""


class Count(int):
    """As many counters are."""


class Word(enum.StrEnum):
    READ = "read"
    WARNING = "warning"


async def played(handler: Handler, folder: Path, protocol: int, permission: Any = None) -> list[AnyEvent]:
    """The events of a turn of an agent that keeps its sessions."""
    agent = Agent("test", store=lambda: SqliteStore(folder / "store"))

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> AsyncGenerator[str, None]:
        await handler(session)
        yield "done"

    async with pair(agent, protocol=protocol, permission=permission) as client:
        session = await client.new_session("/")
        return [event async for event in session.prompt("go")]


async def say(session: Session) -> None:
    await session.say(Name("a name, "))
    await session.say(Word.READ)


async def tool(session: Session) -> None:
    given = {"path": Path("/a"), "at": datetime.date(2026, 1, 2), "sizes": {Count(1)}, Count(2): Name("two")}
    places: list[Any] = [Location(Path("/a"))]  # type: ignore[arg-type]
    async with session.tool(Name("Read \udc80"), kind=Word.READ, raw_input=given, locations=places) as call:
        await call.add("half \ud83d of a pair")
        await call.update(raw_output=MappingProxyType({"found": PurePosixPath("b")}))


async def plan(session: Session) -> None:
    await session.plan(step for step in (Name("one"), PlanEntry(Name("two"), status="completed")))


async def notice(session: Session) -> None:
    await session.notice(Name("Nearly full"), severity=Word.WARNING)


async def terminal(session: Session) -> None:
    async with session.terminal(Name("make"), Path("/tmp")) as shown:
        await shown.write("half \ud83d of a pair")


async def options(session: Session) -> None:
    choices: Any = (Choice(Name(value), value) for value in ("a", "b"))
    await session.set_options([Select("mode", "Mode", Name("b"), choices)])
    assert session.option("mode") == "b"


async def remember(session: Session) -> None:
    await session.remember(Name("note"), {"path": Path("/a"), "count": Count(3)})
    assert await session.recall("note") == [{"path": "/a", "count": 3}]


def of(events: list[AnyEvent], kind: type[Any]) -> Any:
    return next(event for event in events if isinstance(event, kind))


@pytest.mark.parametrize("protocol", [1, 2])
async def test_other_types_for_the_same_thing_are_sent_as_that_thing(protocol: int, tmp_path: Path) -> None:
    async def all_of_it(session: Session) -> None:
        for part in (say, tool, plan, notice, terminal, options, remember):
            await part(session)

    events = await played(all_of_it, tmp_path, protocol)
    said = "".join(event.text for event in events if isinstance(event, AgentMessageChunk))
    assert said == "a name, readdone"
    call = of(events, ToolCallUpdate)
    assert (call.title, call.kind, call.locations) == ("Read \ufffd", "read", [Location("/a")])
    assert call.raw_input == {"path": "/a", "at": "2026-01-02", "sizes": [1], "2": "two"}
    assert of(events, PlanUpdate).plan == PlanItems("main", [PlanEntry("one"), PlanEntry("two", status="completed")])
    assert of(events, OptionsChanged).config_options[0].current_value == "b"
    if protocol == 2:
        assert (of(events, Notice).severity, of(events, TerminalUpdate).cwd) == ("warning", "/tmp")


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_question_in_other_types_is_asked_and_remembered(protocol: int, tmp_path: Path) -> None:
    asked: list[RequestPermission] = []

    async def answer(request: RequestPermission) -> PermissionOption:
        asked.append(request)
        return next(option for option in reversed(request.options) if option.kind.startswith("allow"))

    async def ask(session: Session) -> None:
        for remembered in (False, True):
            permission = await session.ask_permission(Name("Sure?"), command=Name("make"), remember=Name("make"))
            assert (bool(permission), permission.remembered) == (True, remembered)
        own = [PermissionOption(Name("y"), Name("Yes"), "allow_once"), PermissionOption("n", "No", "reject_once")]
        assert await session.ask_permission("Really?", options=(option for option in own))  # type: ignore[arg-type]

    await played(ask, tmp_path, protocol, answer)
    assert [request.title for request in asked] == ["Sure?", "Really?"]


async def hold_itself(session: Session) -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless
    session.tool("Read", raw_input=endless)


async def hand_over_an_object(session: Session) -> None:
    session.tool("Read", raw_input={"in": object()})


async def hand_over_a_pair_for_a_name(session: Session) -> None:
    session.tool("Read", raw_input={("a", "b"): 1})


async def remember_a_function(session: Session) -> None:
    await session.remember("note", [hold_itself])


REFUSED: dict[Handler, str] = {
    hold_itself: "the tool call is too deep, or holds itself",
    hand_over_an_object: "the tool call has no JSON: a value of type object is in it; write text",
    hand_over_a_pair_for_a_name: r"the tool call has no JSON: \('a', 'b'\) is no name of a field",
    remember_a_function: "what is remembered has no JSON: a value of type function is in it",
}


@pytest.mark.parametrize("mistake", REFUSED)
async def test_what_has_no_json_is_refused_where_it_is_handed_over(mistake: Handler, tmp_path: Path) -> None:
    async def handler(session: Session) -> None:
        with pytest.raises(UsageError, match=REFUSED[mistake]):
            await mistake(session)

    events = await played(handler, tmp_path, 2)
    assert of(events, AgentMessageChunk).text == "done"


@pytest.mark.parametrize("protocol", [1, 2])
async def test_names_and_prompts_in_other_types_are_taken_by_agent_and_client(protocol: int) -> None:
    agent = Agent(Name("echo"), version=Name("1"), title=Name("Echo"))

    @agent.command(Name("say"), Name("Say it"), hint=Name("what"))
    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> AsyncGenerator[str, None]:
        yield prompt.text

    async with pair(agent, protocol=protocol) as client:
        session = await client.new_session(Path("/"), additional_directories=(path for path in [Path("/tmp")]))
        assert client.agent.info is not None
        assert (client.agent.info.name, client.agent.info.version) == ("echo", "1")
        assert (await session.ask(Name("one"))).text == "one"
        assert (await session.ask(block for block in [Text("two")])).text == "two"


@pytest.mark.parametrize("protocol", [1, 2])
async def test_what_would_be_run_is_refused_and_not_changed(protocol: int, tmp_path: Path) -> None:
    async def ask(session: Session) -> None:
        with pytest.raises(UsageError, match="no Unicode"):
            await session.ask_permission("Run it?", command="rm half\ud83d")

    await played(ask, tmp_path, protocol)
