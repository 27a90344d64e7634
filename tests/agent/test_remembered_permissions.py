"""An answer for "always" counts for the rest of the session, for what was shown and for nothing else."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.session import Permission, Prompt, Session
from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation
from dragoman.errors import UsageError
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import ScriptedClient, pair
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.versions import both_protocols

pytestmark = pytest.mark.anyio

ONCE = ["allow_once", "reject_once"]
ALL = ["allow_once", "allow_always", "reject_once", "reject_always"]


def agent_that(ask: Callable[[Session, str], Awaitable[object]], **settings: Any) -> Agent:
    """An agent that asks something about each prompt, and says yes or no."""
    agent = Agent("asker", **settings)

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        await session.say("yes" if await ask(session, prompt.text) else "no")

    return agent


async def run_command(session: Session, command: str) -> Permission:
    return await session.ask_permission(f"Run {command}?", command=command)


async def look_around(session: Session, text: str) -> Permission:
    """As the example of the README asks."""
    async with session.tool("Look around", kind="read") as call:
        return await session.ask_permission("May I look around?", tool=call)


class User:
    """A client that answers every question with an option of one kind, where that is offered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked: list[RequestPermission] = []

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        return next((option for option in request.options if option.kind == self.kind), None)

    def connected(self, agent: Agent, protocol: int = 2) -> Any:
        return pair(agent, permission=self.permission, protocol=protocol)


async def answers(session: Conversation, *prompts: str) -> list[str]:
    return [(await session.ask(prompt)).text for prompt in prompts]


def offered(user: User) -> list[list[str]]:
    return [[option.kind for option in request.options] for request in user.asked]


@both_protocols
@pytest.mark.parametrize("ask", [run_command, look_around])
@pytest.mark.parametrize(("kind", "said"), [("allow_always", "yes"), ("reject_always", "no")])
async def test_always_is_asked_once_in_a_session(
    protocol: int, ask: Callable[[Session, str], Awaitable[object]], kind: str, said: str
) -> None:
    user = User(kind)
    async with user.connected(agent_that(ask), protocol) as client:
        session = await client.new_session("/tmp")
        assert await answers(session, "make", "make", "make") == [said] * 3
        assert offered(user) == [ALL]
        another = await client.new_session("/tmp")
        assert await answers(another, "make") == [said]
        assert len(user.asked) == 2


async def test_the_offered_names_say_how_far_an_always_reaches() -> None:
    async def ask(session: Session, text: str) -> Permission:
        return await session.ask_permission("Test?", command=text, remember="bash: npm test" if text == "npm" else None)

    user = User("allow_once")
    async with user.connected(agent_that(ask)) as client:
        await answers(await client.new_session("/tmp"), "make", "npm")
    assert [[option.name for option in request.options] for request in user.asked] == [
        [
            "Allow once",
            "Always allow exactly this for this session",
            "Reject",
            "Always reject exactly this for this session",
        ],
        [
            "Allow once",
            "Always allow “bash: npm test” for this session",
            "Reject",
            "Always reject “bash: npm test” for this session",
        ],
    ]


@pytest.mark.parametrize("kind", ["allow_once", "reject_once"])
async def test_an_answer_for_once_is_asked_again(kind: str) -> None:
    user = User(kind)
    async with user.connected(agent_that(run_command)) as client:
        await answers(await client.new_session("/tmp"), "make", "make")
    assert len(user.asked) == 2


async def test_a_question_about_nothing_that_is_shown_is_for_once() -> None:
    async def ask(session: Session, text: str) -> Permission:
        return await session.ask_permission(text)

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        assert await answers(await client.new_session("/tmp"), "May I?", "May I?") == ["no", "no"]
    assert offered(user) == [ONCE, ONCE]


async def edit(session: Session, text: str) -> Permission:
    """Ask about a call that differs, from prompt to prompt, in one thing alone."""
    what, _, value = text.partition(" ")
    settings: dict[str, Any] = {"kind": "edit", "name": "edit_file", "locations": ["/a"], "raw_input": {"path": "/a"}}
    match what:
        case "kind" | "name":
            settings[what] = value
        case "location":
            settings["locations"] = [value]
        case "input":
            settings["raw_input"] = {"path": value}
    async with session.tool(value if what == "title" else "Edit", **settings) as call:
        if what == "diff":
            await call.diff("/a", "old", value)
        if what == "update":
            await call.update(raw_input={"path": value})
        question = value if what == "question" else "May I?"
        return await session.ask_permission(question, tool=call, description=value if what == "why" else "Because.")


DIFFERENT = ["kind delete", "name write_file", "location /b", "input /b", "title Other", "diff new", "update /b"]


@pytest.mark.parametrize("other", [*DIFFERENT, "question Really?", "why Because I say so."])
async def test_an_always_covers_no_call_that_was_shown_differently(other: str) -> None:
    user = User("allow_always")
    async with user.connected(agent_that(edit)) as client:
        session = await client.new_session("/tmp")
        assert await answers(session, "same", "same", other, other, "same") == ["yes"] * 5
    assert len(user.asked) == 2


@pytest.mark.parametrize("other", ["make clean", "make\t"])
async def test_an_always_covers_no_other_command(other: str) -> None:
    user = User("allow_always")
    async with user.connected(agent_that(run_command)) as client:
        await answers(await client.new_session("/tmp"), "make", other, "make", other)
    assert len(user.asked) == 2


async def test_a_key_of_the_author_covers_what_the_author_says() -> None:
    async def ask(session: Session, command: str) -> Permission:
        return await session.ask_permission(
            f"Run {command}?", command=command, remember=f"any {command.partition(' ')[0]}"
        )

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        await answers(await client.new_session("/tmp"), "npm test", "npm install", "rm x", "rm y")
    assert [request.title for request in user.asked] == ["Run npm test?", "Run rm x?"]


@pytest.mark.parametrize("key", ["two\nlines", "x" * 201, "zero\u200bwidth", " "])
async def test_a_key_that_cannot_be_read_on_a_button_is_not_offered(key: str) -> None:
    async def ask(session: Session, text: str) -> Permission:
        return await session.ask_permission("May I?", command=text, remember=key)

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        await answers(await client.new_session("/tmp"), "make")
    assert offered(user) == [ONCE]


async def test_options_of_the_author_are_remembered_only_under_a_key_of_the_author() -> None:
    options = [PermissionOption("y", "For ever", "allow_always"), PermissionOption("n", "No", "reject_once")]

    async def ask(session: Session, text: str) -> Permission:
        key = "make" if text == "keyed" else None
        return await session.ask_permission("May I?", command="make", options=options, remember=key)

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        assert await answers(await client.new_session("/tmp"), "x", "x", "keyed", "keyed", "x") == ["yes"] * 5
    assert len(user.asked) == 4


async def test_an_answer_that_is_not_offered_any_more_is_asked_for_again() -> None:
    async def ask(session: Session, text: str) -> Permission:
        options = [PermissionOption(text, "Yes", "allow_always"), PermissionOption("n", "No", "reject_once")]
        return await session.ask_permission("May I?", options=options, remember="make")

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        await answers(await client.new_session("/tmp"), "first", "second", "second")
    assert len(user.asked) == 2


async def test_what_is_remembered_can_be_listed_and_forgotten() -> None:
    seen: list[list[tuple[str, bool]]] = []

    async def ask(session: Session, command: str) -> object:
        if command == "forget one":
            await session.forget_permissions("make")
            return None
        if command == "forget all":
            await session.forget_permissions()
            return None
        permission = await run_command(session, command)
        seen.append([(one.covers, one.allowed) for one in session.permissions()])
        return permission

    user = User("allow_always")
    async with user.connected(agent_that(ask)) as client:
        session = await client.new_session("/tmp")
        await answers(session, "make", "test", "forget one", "make", "test", "forget all", "test")
    assert seen[1] == [("make", True), ("test", True)]
    assert seen[2] == [("test", True), ("make", True)]
    assert seen[4] == [("test", True)]
    assert [request.title for request in user.asked] == ["Run make?", "Run test?", "Run make?", "Run test?"]


async def test_a_remembered_answer_says_that_the_user_was_not_asked() -> None:
    found: list[tuple[bool, bool, bool]] = []

    async def ask(session: Session, command: str) -> Permission:
        permission = await run_command(session, command)
        found.append((bool(permission), permission.always, permission.remembered))
        return permission

    async with User("reject_always").connected(agent_that(ask)) as client:
        await answers(await client.new_session("/tmp"), "make", "make")
    assert found == [(False, True, False), (False, True, True)]


class House:
    """A folder with sessions, and agents that come and go."""

    def __init__(self, folder: Path, user: User) -> None:
        self.folder = folder
        self.user = user

    async def play(self, work: Callable[[Client], Awaitable[str]]) -> str:
        store = SqliteStore(self.folder)

        async def ask(session: Session, command: str) -> object:
            if command == "forget":
                await session.forget_permissions()
                return None
            return await run_command(session, command)

        try:
            async with self.user.connected(agent_that(ask, store=store)) as client:
                return await work(client)
        finally:
            await store.close()


async def test_a_stored_session_remembers_over_a_restart_and_a_fork_of_it_does_not(tmp_path: Path) -> None:
    user = User("allow_always")
    house = House(tmp_path / "sessions", user)

    async def begin(client: Client) -> str:
        session = await client.new_session(tmp_path)
        await answers(session, "make", "test", "forget", "make")
        return session.id

    session_id = await house.play(begin)
    assert len(user.asked) == 3

    async def go_on(client: Client) -> str:
        session = await client.load_session(session_id, tmp_path)
        await answers(session, "make")
        assert len(user.asked) == 3
        await answers(session, "test")  # was forgotten
        assert len(user.asked) == 4
        await answers(await session.fork(), "make")
        assert len(user.asked) == 5
        return ""

    await house.play(go_on)


async def test_notes_that_are_no_answers_are_passed_over(tmp_path: Path) -> None:
    user = User("allow_always")
    store = SqliteStore(tmp_path / "sessions")

    async def ask(session: Session, command: str) -> object:
        if command != "note":
            return await run_command(session, command)
        for value in (
            "allow_always",
            {"session": session.id},
            {"session": session.id, "key": 1, "kind": "allow_always"},
        ):
            await session.remember("remembered permission", value)
        return True

    agent = agent_that(ask, store=store)
    async with user.connected(agent) as client:
        session = await client.new_session(tmp_path)
        await answers(session, "note", "make")
    async with user.connected(agent) as client:
        await answers(await client.load_session(session.id, tmp_path), "make")
    assert len(user.asked) == 1
    await store.close()


async def test_a_tool_and_a_command_are_not_asked_about_together() -> None:
    errors: list[str] = []

    async def ask(session: Session, text: str) -> object:
        async with session.tool("Run", kind="execute") as call:
            try:
                return await session.ask_permission("May I?", tool=call, command="make")
            except UsageError as error:
                errors.append(str(error))
                return False

    await ScriptedClient(agent_that(ask)).play("go")
    assert errors == ["a question is about one thing: give ask_permission tool=… or command=…, not both"]
