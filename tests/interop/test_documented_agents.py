"""The two real agents that a dialect is named after, driven by `dragoman.connect` and by a registry entry, offline.

What the programs put on the wire is not always what their documents say: the dialects take both, and these tests fail
where they do not.
"""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman import connect
from dragoman.client.conversation import Turn
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, ToolCallUpdate, Usage
from dragoman.vocabulary.services import RequestPermission
from dragoman.vocabulary.tools import ContentItem
from tests.interop.desk import Desk, calls, cancelled_at, end, events_of, living, said, told
from tests.support.editor import DRAGOMAN
from tests.support.fake_model import ToolCall
from tests.support.real_agents import AGENTAO, IAC_CODE, RealAgent
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
both_agents = pytest.mark.parametrize("agent", [AGENTAO, IAC_CODE], ids=str)
both_ways = pytest.mark.parametrize("by_name", [False, True], ids=["connect", "registry"])

# How long an agent may go on listening to a model whose answer is not wanted any more.
LEFT_SECONDS = 10.0


@pytest.fixture
def desk(agent: RealAgent, tmp_path: Path) -> Desk:
    return Desk(agent, tmp_path)


def asking(agent: RealAgent, file: Path) -> ToolCall:
    """A call that makes a file, and that the agent asks about: Agentao writes into its own folder without asking."""
    if agent == IAC_CODE:
        return agent.writing(file, "hello\n")
    return shell(f"echo hello > {shlex.quote(str(file))}")


def shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command, "description": "Do it"})


@pytest.mark.requirement("iac-code-1", "agentao-2")
@both_agents
@both_ways
async def test_a_call_is_run_after_a_yes_and_after_no_no(desk: Desk, by_name: bool) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected(by_name=by_name) as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", asking(agent, desk.made)), model.says("It is written."))
        allowed = await events_of(session, "write it")
        assert desk.made.read_text() == "hello\n"
        # The last one is remembered by the agent, and so comes last.
        for answer in ("reject_once", "", "reject_always"):
            desk.answer = answer
            other = desk.work / f"other-{answer}.txt"
            model.plays(model.says("Another one.", asking(agent, other)), model.says("Then not."))
            refused = await events_of(session, "write another")
            assert not other.exists(), answer
            assert list(calls(refused).values()) == ["failed"], answer
    assert (said(allowed), end(allowed)) == (["I will write it.", "It is written."], "end_turn")
    assert list(calls(allowed).values()) == ["completed"]
    assert [request.session_id for request in desk.asked] == [session.id] * 4


@pytest.mark.requirement("iac-code-1")
@pytest.mark.parametrize("agent", [IAC_CODE._replace(dialect=None)], ids=str)
async def test_a_no_is_a_no_to_iac_code_without_its_dialect(desk: Desk) -> None:
    model = desk.model
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        desk.answer = "reject_once"
        model.plays(model.says("I will write it.", asking(IAC_CODE, desk.made)), model.says("Then not."))
        refused = await events_of(session, "write it")
    assert len(desk.asked) == 1
    assert not desk.made.exists()
    assert list(calls(refused).values()) == ["failed"]


@pytest.mark.requirement("agentao-4")
@both_agents
async def test_a_turn_is_cancelled_and_the_session_goes_on(desk: Desk) -> None:
    model = desk.model
    # Agentao sees a cancel when its model says the next word, and does not hang up.
    never_ends = model.drips if desk.agent == AGENTAO else model.waits
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(never_ends("I wait."))
        cancelled = await cancelled_at(AgentMessageChunk, session, "take your time")
        if desk.agent == IAC_CODE:
            async with asyncio.timeout(LEFT_SECONDS):
                await model.left.wait()
        model.plays(model.says("Here I am."))
        after = await events_of(session, "go on")
    assert "".join(said(cancelled)).startswith("I wait.")
    assert end(cancelled) == "cancelled"
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


@pytest.mark.requirement("agentao-3")
@both_agents
async def test_a_cancel_while_the_user_is_asked_ends_the_turn_and_runs_nothing(desk: Desk) -> None:
    model, turns = desk.model, list[Turn]()

    async def cancels_instead(request: RequestPermission) -> None:
        await turns[0].cancel()
        await asyncio.Event().wait()  # never answered by us: the client does

    async with desk.connected(permission=cancels_instead) as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", asking(desk.agent, desk.made)), model.says("It is written."))
        turns.append(session.prompt("write it"))
        cancelled = [event async for event in turns[0]]
        model.plays(model.says("Here I am."))
        after = await events_of(session, "go on")
    assert end(cancelled) == "cancelled"
    assert not desk.made.exists()
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


@pytest.mark.requirement("iac-code-7")
@pytest.mark.parametrize("agent", [IAC_CODE._replace(answers_cancelled_calls=True)], ids=str)
async def test_after_a_cancelled_call_iac_code_sends_a_history_that_providers_refuse(desk: Desk) -> None:
    model, turns = desk.model, list[Turn]()

    async def cancels_instead(request: RequestPermission) -> None:
        await turns[0].cancel()
        await asyncio.Event().wait()  # never answered by us: the client does

    async with desk.connected(permission=cancels_instead) as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", asking(IAC_CODE, desk.made)))
        turns.append(session.prompt("write it"))
        assert end([event async for event in turns[0]]) == "cancelled"
        model.plays(model.says("Here I am."))
        after = await events_of(session, "go on")
    assert "did not have response messages" in "".join(said(after))


@both_agents
async def test_a_cancel_ends_the_command_that_runs(desk: Desk) -> None:
    model, begun = desk.model, desk.work / "begun"
    command = f"touch {shlex.quote(str(begun))}; sleep 600"
    running = shell(command) if desk.agent == AGENTAO else ToolCall("bash", {"command": command})
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I run it.", running), model.says("It has run."))
        turn = session.prompt("run it")

        async def cancels_when_it_runs() -> None:
            await until(begun.exists)
            await turn.cancel()

        cancelling = asyncio.ensure_future(cancels_when_it_runs())
        cancelled = [event async for event in turn]
        await cancelling
        await until(lambda: not any("sleep 600" in process for process in living(desk.home)))
        model.plays(model.says("Here I am."))
        after = await events_of(session, "go on")
    assert end(cancelled) == "cancelled"
    assert "completed" not in calls(cancelled).values()
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


@pytest.mark.requirement("iac-code-4", "iac-code-5")
@both_agents
@both_ways
async def test_another_process_tells_the_story_and_goes_on(desk: Desk, by_name: bool) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected(by_name=by_name) as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I will write it.", asking(agent, desk.made)), model.says("It is written."))
        await events_of(session, "write it")
    desk.outside.clear()
    async with desk.connected(by_name=by_name) as client:
        if agent == IAC_CODE:  # Agentao has no list
            assert session.id in [info.session_id for info in await client.list_sessions(str(desk.work))]
        again = await client.load_session(session.id, desk.work)
        # iac-code answers while it still tells.
        await until(lambda: said(desk.outside)[-1:] == ["It is written."])
        story = list(desk.outside)
        model.plays(model.says("Here I am."))
        after = await events_of(again, "go on")
        assert [message["role"] for message in model.asked[-1].body["messages"][-5:]] == [
            *("user", "assistant", "tool", "assistant", "user")
        ]
    assert told(story) == ["write it"]
    assert said(story) == ["I will write it.", "It is written."]
    assert list(calls(story).values()) == ["completed"]
    assert (said(after), end(after)) == (["Here I am."], "end_turn")


@pytest.mark.requirement("iac-code-6", "agentao-7")
@both_agents
async def test_the_sessions_of_the_program_stay_with_it(desk: Desk) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("Hello."))
        await events_of(session, "greet")
    kept = files_of(desk)
    assert kept
    environment = {"HOME": str(desk.home), "DRAGOMAN_HOME": str(desk.registry_folder)}
    ours = [*DRAGOMAN, "acp", "--dialect", agent.name, "--model", "demo"]
    async with connect(ours, cwd=str(desk.work), env=environment, dialect=agent.dialect) as client:
        with pytest.raises(RequestFailed):
            await client.load_session(session.id, desk.work)
    assert files_of(desk) == kept


# -- what only one of them has ---------------------------------------------------------------------------------------


@pytest.mark.requirement("agentao-1")
@pytest.mark.parametrize("agent", [AGENTAO], ids=str)
async def test_agentao_repeats_what_a_command_printed_and_it_is_shown_once(desk: Desk) -> None:
    model, go_on = desk.model, desk.work / "go-on"
    printing = f"echo one; until test -e {shlex.quote(str(go_on))}; do sleep 0.05; done; echo two"
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("I run it.", shell(printing)), model.says("Done."))
        events: list[AnyEvent] = []
        async for event in session.prompt("run it"):
            events.append(event)
            if shown(events)[-1:] == ["one\n"]:
                go_on.touch()
    assert [text for text in shown(events) if text] == ["one\n", "one\ntwo\n"]


@pytest.mark.requirement("agentao-2")
@pytest.mark.parametrize("agent", [AGENTAO], ids=str)
async def test_agentao_has_modes_and_models(desk: Desk) -> None:
    model, agent = desk.model, desk.agent
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        await session.set_mode("read-only")
        model.plays(model.says("I write it.", agent.writing(desk.made, "hello\n")), model.says("I must not."))
        refused = await events_of(session, "write it")
        assert (desk.asked, list(calls(refused).values())) == ([], ["failed"])
        assert not desk.made.exists()
        await session.set_model("openai/other")
        model.plays(model.says("Here I am."))
        await events_of(session, "go on")
        assert [request.body["model"] for request in model.asked] == ["fake", "fake", "other"]


@pytest.mark.requirement("iac-code-2", "iac-code-3")
@pytest.mark.parametrize("agent", [IAC_CODE], ids=str)
async def test_iac_code_counts_tokens_forks_and_resumes_without_the_story(desk: Desk) -> None:
    model = desk.model
    async with desk.connected() as client:
        session = await client.new_session(desk.work)
        model.plays(model.says("Hello."))
        events = await events_of(session, "greet")
        assert isinstance(events[-1], Idle)
        assert events[-1].usage == Usage(10, 7, 3)
        other = await session.fork()
        assert other.id != session.id
        await session.close()
        await until(lambda: said(desk.outside)[-1:] == ["Hello."])  # it tells the story of a fork
        desk.outside.clear()
        again = await client.resume_session(session.id, desk.work)
        model.plays(model.says("Here I am."))
        after = await events_of(again, "go on")
    assert (said(desk.outside), said(after)) == ([], ["Here I am."])


def files_of(desk: Desk) -> dict[Path, bytes]:
    """Everything that the program has written."""
    found = [*desk.home.rglob("*"), *desk.work.rglob("*")]
    return {file: file.read_bytes() for file in found if file.is_file()}


def shown(events: Sequence[AnyEvent]) -> list[str]:
    """The text that a tool call shows, each time that it is told."""
    updates = [event for event in events if isinstance(event, ToolCallUpdate) and isinstance(event.content, list)]
    items = [[item for item in event.content or [] if isinstance(item, ContentItem)] for event in updates]
    return [text_of([item.content for item in found]) for found in items]
