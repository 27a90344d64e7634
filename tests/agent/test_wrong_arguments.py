"""What an author hands over wrongly is refused where it is handed over, with the line to write."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.agent.agent import agent_core
from dragoman.agent.session import Prompt, Session
from dragoman.agent.tool import ToolCall
from dragoman.errors import UsageError
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import ScriptedAgent, ScriptedClient, pair
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AnyEvent, Cost, PlanUpdate, ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.options import Choice, ChoiceGroup, PlanEntry, PlanItems, Select, Toggle
from dragoman.vocabulary.services import PermissionOption
from dragoman.vocabulary.tools import ClientTerminalItem, Diff, FileChange, Location

pytestmark = pytest.mark.anyio
A, B = Choice("a", "A"), Choice("b", "B")
EMPTY = "is empty, so the user would see nothing: write"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": ""}, 'write `Agent("greeter")`'),
        ({"name": None}, 'write `Agent("greeter")`'),
        ({"version": 1}, """write `Agent('x', version="1.0")`"""),
        ({"title": 1}, "the title of an agent is text"),
        ({"resume": True}, "the resume of an agent is text"),
        ({"capabilities": {"load": True}}, "capabilities are AgentCapabilities(...)"),
        ({"auth_methods": "login"}, "write `auth_methods=[AgentAuth('login', 'Log in')]`"),
        ({"auth_methods": [{"id": "login"}]}, "write `auth_methods=[AgentAuth('login', 'Log in')]`"),
        ({"store": "folder"}, "write `store=SqliteStore('folder')`"),
        ({"store": Path("folder")}, "write `store=SqliteStore('folder')`"),
        ({"store": SqliteStore}, "write `store=SqliteStore('folder')`, not the class"),
        ({"options": ["mode"]}, "not 'mode': write `options=[Select("),
        ({"options": "mode"}, "options is a list, not 'mode'"),
        ({"options": A}, "options is a list, not a value of type Choice"),
        ({"options": {"mode": "a"}}, "options is a list, not {'mode': 'a'}"),
        ({"options": [Select("m", "M", "zzz", [A])]}, "is none of its choices: write one of 'a'"),
        ({"options": [Select("m", "M", "zzz", [ChoiceGroup("g", "G", [A])])]}, "write one of 'a'"),
        ({"options": [Select("m", "M", "a", [])]}, "write one of none"),
        ({"options": [Select("m", "M", "a", ["a"])]}, "write `Choice('a', 'Name')`"),  # type: ignore[list-item]
        ({"options": [Select("m", "M", "a", "a")]}, "the options of a Select is a list"),  # type: ignore[arg-type]
        ({"options": [Select("m", "M", "a", [Choice(1, "A")])]}, "Expected `str`, got `int`"),  # type: ignore[arg-type]
        ({"options": [Select("m", "M", "a", [A, A])]}, "have the same value"),
        ({"options": [Select("m", None, "a", [A])]}, "Expected `str`, got `null`"),  # type: ignore[arg-type]
        ({"options": [Toggle("t", "T", "yes")]}, """write `Toggle('t', "Name", True)`"""),  # type: ignore[arg-type]
        ({"options": [Toggle("t", "T", True), Toggle("t", "T", True)]}, "two options have the id 't'"),
        ({"options": [Toggle("", "T", True)]}, "the id of an option is empty"),
        ({"options": [Toggle("t", "", True)]}, f"the name of an option {EMPTY}"),
        ({"options": [Select("m", " ", "a", [A])]}, f"the name of an option {EMPTY}"),
        ({"options": [Select("m", "M", "a", [Choice("a", "")])]}, f"the name of a choice {EMPTY}"),
    ],
)
def test_an_agent_is_not_made_of_nonsense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Agent(**{"name": "x", **settings})
    assert message in str(caught.value)


@pytest.mark.parametrize("folder", ["", 3, None, b"sessions"])
def test_a_store_is_not_made_of_nonsense(folder: Any) -> None:
    with pytest.raises(UsageError, match=r"write `SqliteStore\('sessions'\)`"):
        SqliteStore(folder)


async def test_a_tool_call_without_a_title_is_shown_by_its_name() -> None:
    (opening, _) = [event for event in await events_of(with_name) if isinstance(event, ToolCallUpdate)]
    assert (opening.title, opening.name) == ("read_file", "read_file")


async def with_name(session: Any) -> None:
    async with session.tool("", name="read_file"):
        pass


async def test_a_function_that_makes_no_store_is_named_when_it_is_called() -> None:
    agent = Agent("x", store=lambda: "folder")  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"write `store=SqliteStore\('folder'\)`"):
        agent_core(agent).open_store()


def test_two_commands_of_one_name_are_refused() -> None:
    agent = Agent("x")

    async def handler(session: Session, prompt: Prompt) -> None: ...

    agent.command("go", "Go")(handler)
    with pytest.raises(UsageError, match="a command /go already"):
        agent.command("/go", "Go again")(handler)
    with pytest.raises(UsageError, match="name the command"):
        agent.command("x", 1)  # type: ignore[arg-type]


Mistake = Callable[[Any], Awaitable[object]]


async def with_call(session: Any, work: Callable[[Any], Awaitable[object]]) -> None:
    async with session.tool("Edit") as call:
        await work(call)


async def with_terminal(session: Any, work: Callable[[Any], Awaitable[object]]) -> None:
    async with session.terminal("make") as terminal:
        await work(terminal)


async def at_once(value: object) -> None:
    """What raises does so before it is awaited."""


async def plain_with(session: Any) -> None:
    with session.tool("Edit"):
        pass


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda s: s.say(None), "not NoneType: use str(...)"),
        (lambda s: s.say(PlanEntry("x")), "not PlanEntry: use `session.emit(event)`"),
        (lambda s: s.say(Text(1)), "write `Text('…')`"),  # type: ignore[arg-type]
        (lambda s: s.think(b"x"), "not bytes: use str(...)"),
        (lambda s: s.emit("x"), "use `session.say(...)` for text"),
        (lambda s: s.plan("abc"), """write `session.plan(["first step", "second step"])`"""),
        (lambda s: s.plan(None), "a plan is a list"),
        (lambda s: s.plan({"content": "x"}), "a plan is a list"),
        (lambda s: s.plan([{"content": "x"}]), "write `PlanEntry('step')`"),
        (lambda s: s.plan([PlanEntry(1)]), "Expected `str`, got `int`"),  # type: ignore[arg-type]
        (lambda s: s.plan([PlanEntry("x", status="done")]), "pending, in_progress, completed, cancelled"),
        (lambda s: s.plan([PlanEntry("x", priority="urgent")]), "high, medium, low"),
        (lambda s: s.plan(["x"], plan_id=1), "the id of a plan is text"),
        (lambda s: s.plan(["x"], plan_id=""), """write `session.plan([...], "main")`"""),
        (lambda s: s.plan(["x", ""]), f"a step of a plan {EMPTY} `session.plan(["),
        (lambda s: s.plan([PlanEntry(" ")]), "a step of a plan is empty"),
        (lambda s: at_once(s.tool("")), f"the title of a tool call {EMPTY} `session.tool("),
        (lambda s: at_once(s.tool(" ", name="")), "the title of a tool call is empty"),
        (lambda s: at_once(s.tool("Edit", id=3)), """write `session.tool("Read config", id="call-1")`"""),
        (lambda s: with_call(s, lambda c: c.update(title="")), """write `call.update(title="Read config")`"""),
        (lambda s: at_once(s.terminal("")), f"a command {EMPTY} `session.terminal("),
        (lambda s: s.notice("\n"), f"a notice {EMPTY} `session.notice("),
        (lambda s: s.ask_permission(""), f"a question {EMPTY} `session.ask_permission("),
        (lambda s: at_once(s.tool("Edit", kind="edti")), "read, edit, delete, move, search, execute, think"),
        (lambda s: at_once(s.tool("Edit", kind="_")), "not '_'"),
        (lambda s: at_once(s.tool("Edit", kind=None)), "not None"),
        (lambda s: at_once(s.tool("Edit", status="running")), "pending, in_progress, paused, completed"),
        (lambda s: at_once(s.tool(None)), """write `session.tool("Read config")`"""),
        (lambda s: at_once(s.tool("Edit", name=1)), "the name of a tool is text"),
        (lambda s: at_once(s.tool("Edit", locations="/a")), "locations is a list, not '/a'"),
        (lambda s: at_once(s.tool("Edit", locations=["a"])), "write `os.path.join(session.cwd, 'a')`"),
        (lambda s: at_once(s.tool("Edit", locations=[Location("a")])), "write `os.path.join(session.cwd, 'a')`"),
        (lambda s: at_once(s.tool("Edit", locations=[1])), "a location is a path, not 1"),
        (lambda s: at_once(s.tool("Edit", content="text")), "content is a list, not 'text'"),
        (lambda s: s.tool("Edit").add("x"), "write `async with session.tool(...) as call:`"),
        (lambda s: s.tool("Edit").diff("/a", None, "x"), "write `async with session.tool(...) as call:`"),
        (lambda s: s.tool("Edit").end("completed"), "write `async with session.tool(...) as call:`"),
        (lambda s: s.tool("Edit").update(title="x"), "write `async with session.tool(...) as call:`"),
        (lambda s: s.tool("Edit").start(), "write `async with session.tool(...) as call:`"),
        (lambda s: s.tool("Edit"), "write `async with session.tool(...) as call:`"),
        (plain_with, "write `async with session.tool(...) as call:`"),
        (lambda s: with_call(s, lambda c: c.add(None)), "write `await call.add('text')`"),
        (lambda s: with_call(s, lambda c: c.add(s.terminal("make"))), "write `await call.add(terminal.item)`"),
        (lambda s: with_call(s, lambda c: c.diff("a", None, "x")), "write `os.path.join(session.cwd, 'a')`"),
        (lambda s: with_call(s, lambda c: c.diff("/a", 1, "x")), "the text before a change is text"),
        (lambda s: with_call(s, lambda c: c.diff("/a", "x", None)), "the text after a change is text"),
        (lambda s: with_call(s, lambda c: c.end("done")), "one of completed, failed, cancelled; not 'done'"),
        (lambda s: with_call(s, lambda c: c.update(status="done")), "the status of a tool call is one of"),
        (lambda s: with_call(s, lambda c: c.update(locations=["a"])), "write `os.path.join(session.cwd, 'a')`"),
        (lambda s: with_call(s, lambda c: c.start("stop")), "write `await call.start(task.cancel)`"),
        (lambda s: s.terminal("make").write(b"x"), "write `async with session.terminal(...) as terminal:`"),
        (lambda s: at_once(s.terminal(["make"])), "a command is text, not ['make']"),
        (lambda s: at_once(s.terminal("make", "folder")), "cwd is an absolute path"),
        (lambda s: with_terminal(s, lambda t: t.write(1)), "write `terminal.write(b'…')`"),
        (lambda s: s.notice("x", severity="bad"), "info, warning, error"),
        (lambda s: s.notice(1), "a notice is text"),
        (lambda s: s.show_usage("1", 2), "used is a whole number"),
        (lambda s: s.show_usage(1, -2), "size is a whole number"),
        (lambda s: s.show_usage(1, 2, 0.5), "write `Cost(0.25, 'USD')`"),
        (lambda s: s.show_usage(1, 2, Cost("1", "USD")), "Expected `float`, got `str`"),  # type: ignore[arg-type]
        (lambda s: s.set_title(1), "a title is text"),
        (lambda s: s.set_commands("go"), "commands is a list, not 'go'"),
        (lambda s: s.set_commands(["go"]), """write `session.set_commands([Command("plan\""""),
        (lambda s: s.set_options(["mode"]), "write `options=[Select("),
        (lambda s: s.ask_permission(None), "a question is text, not None"),
        (lambda s: s.ask_permission("?", tool="Edit"), "write `async with session.tool(...) as call`"),
        (lambda s: s.ask_permission("?", tool=s.tool("Edit")), "write `async with session.tool(...) as call:`"),
        (lambda s: s.ask_permission("?", command=["make"]), "a command is text"),
        (lambda s: s.ask_permission("?", remember=1), "remember is text"),
        (lambda s: s.ask_permission("?", options="yes"), "options is a list, not 'yes'"),
        (
            lambda s: s.ask_permission("?", options=["yes"]),
            """write `PermissionOption("yes", "Allow", "allow_once")`""",
        ),
        (lambda s: s.ask_permission("?", options=[PermissionOption("y", "Y", "allow")]), "allow_once, allow_always"),
        (lambda s: s.ask_user("?", {"name": "string"}), """write `{"type": "object", "properties":"""),
        (lambda s: s.ask_user(None, {}), "a question is text"),
        (lambda s: s.read_text_file("a"), "write `os.path.join(session.cwd, 'a')`"),
        (lambda s: s.write_text_file("/a", None), "the content of a file is text"),
        (lambda s: s.client_terminal("ls", "-la"), """args is a list, not '-la': write `session.client_terminal("""),
        (lambda s: s.client_terminal("ls", [1]), "an argument of a command is text"),
        (lambda s: s.client_terminal("ls", cwd="a"), "cwd is an absolute path"),
        (lambda s: s.remember("review", 1), "write `Agent(..., store=SqliteStore(folder))`"),
    ],
)
async def test_a_session_refuses_nonsense_and_tells_what_to_write(mistake: Mistake, message: str) -> None:
    agent = Agent("x")
    told: list[str] = []

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        with pytest.raises(UsageError) as caught:
            await mistake(session)
        told.append(str(caught.value))

    lent: dict[str, Any] = {
        "read_text_file": no_file,
        "write_text_file": no_file,
        "terminals": Nothing(),
        "elicitation": no_file,
    }
    heard = await ScriptedClient(agent, protocol=1, **lent).play("go")  # the version that has all of them
    assert message in told[0]
    assert not [event for event in heard if isinstance(event, (PlanUpdate, ToolCallContentChunk))]


async def no_file(request: object) -> Any:
    raise AssertionError("nothing is asked")


class Nothing:
    """Terminals that are offered and must not be asked for."""

    async def create(self, request: object) -> str:
        raise AssertionError("nothing is asked")

    output = wait_for_exit = kill = release = create


async def events_of(work: Callable[[Any], Awaitable[object]]) -> list[AnyEvent]:
    agent = Agent("x")

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        await work(session)

    return await ScriptedClient(agent, protocol=2).play("go")


async def test_words_of_the_authors_own_begin_with_an_underscore_and_are_told() -> None:
    async def work(session: Session) -> None:
        await session.plan([PlanEntry("x", "_vital", "_blocked")])
        async with session.tool("Deploy", kind="_deploy", locations=[Path("/a"), "C:\\b"]) as call:
            await call.update(status="_queued")

    heard = await events_of(work)
    assert PlanUpdate(PlanItems("main", [PlanEntry("x", "_vital", "_blocked")])) in heard
    opened, queued, _ = [event for event in heard if isinstance(event, ToolCallUpdate)]
    assert (opened.kind, opened.locations, queued.status) == (
        "_deploy",
        [Location("/a"), Location("C:\\b")],
        "_queued",
    )


@pytest.mark.parametrize(
    ("old", "told"),
    [
        (None, FileChange("add", "/a", old_text=None, new_text="x\n")),
        ("", FileChange("modify", "/a", old_text="", new_text="x\n")),
    ],
)
async def test_a_diff_without_a_text_before_is_told_as_a_new_file(old: str | None, told: FileChange) -> None:
    heard = await events_of(lambda session: with_call(session, lambda call: call.diff(Path("/a"), old, "x\n")))
    (chunk,) = [event for event in heard if isinstance(event, ToolCallContentChunk)]
    assert isinstance(chunk.content, Diff)
    (change,) = chunk.content.changes
    assert isinstance(change, FileChange)
    assert change.operation == told.operation


async def test_a_terminal_of_the_client_is_shown_in_a_call_as_a_terminal() -> None:
    """And not as a content block, which it is not."""
    emitted: list[AnyEvent] = []

    async def emit(event: AnyEvent) -> None:
        emitted.append(event)

    async with ToolCall(emit, ToolCallUpdate("c")) as call:
        await call.add(ClientTerminalItem("t"))
    assert emitted[1] == ToolCallContentChunk("c", ClientTerminalItem("t"))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda c: c.new_session(1), "cwd is a folder, not 1"),
        (lambda c: c.new_session("/tmp", additional_directories="/a"), "additional_directories is a list, not '/a'"),
        (lambda c: c.new_session("/tmp", mcp_servers=["x"]), "mcp_servers holds"),
        (lambda c: c.load_session(None), "a session id is text"),
        (lambda c: c.resume_session(1), "a session id is text"),
        (lambda c: c.request(1), "extension methods start with an underscore"),
        (lambda c: c.notify("ping"), "use '_ping'"),
    ],
)
async def test_a_client_refuses_nonsense_and_tells_what_to_write(mistake: Mistake, message: str) -> None:
    async with pair(ScriptedAgent()) as client:
        with pytest.raises(UsageError) as caught:
            await mistake(client)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda s: s.ask(1), "a prompt is text"),
        (lambda s: s.ask([]), "a prompt is text"),
        (lambda s: s.ask([PlanEntry("x")]), "a prompt is text"),
        (lambda s: s.set_option("mode", 1), "an option is set to text or to True or False, not 1"),
        (lambda s: s.set_option(1, "x"), "the id of an option is text"),
        (lambda s: s.set_title(1), "a title is text"),
        (lambda s: s.fork(1), "cwd is a folder, not 1"),
    ],
)
async def test_a_conversation_refuses_nonsense_and_tells_what_to_write(mistake: Mistake, message: str) -> None:
    async with pair(ScriptedAgent()) as client:
        session = await client.new_session("/tmp")
        with pytest.raises(UsageError) as caught:
            await mistake(session)
    assert message in str(caught.value)
