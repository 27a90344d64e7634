"""Two nodes on one database: any serves any client, one works on a session, and the other takes over after its end."""

import asyncio
from pathlib import Path

import pytest

from dragoman import Client, Conversation, Turn
from dragoman.errors import NODE_AWAY, RequestFailed
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.cluster import asked, cluster, says
from tests.support.gateway_process import SLOW, words
from tests.support.postgres import shared_server
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

WRITES: dict[str, object] = {
    "turns": [
        {"steps": [{"call": "write_file", "input": {"path": "new.txt", "content": "hello"}}, {"say": "done"}]},
    ]
}


async def begun(turn: Turn) -> str:
    """The first words of a turn."""
    said: list[AnyEvent] = []
    async for event in turn:
        said.append(event)
        if words(said):
            return words(said)
    raise AssertionError("the turn ended without a word")


async def loaded(client: Client, session_id: str, folder: Path) -> Conversation:
    """A session whose node is away, when the others know that it is."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await client.load_session(session_id, folder)
            except RequestFailed as failed:
                if failed.code != NODE_AWAY:
                    raise
                await asyncio.sleep(0.05)


@pytest.mark.requirement("CL1")
async def test_a_client_of_one_node_prompts_a_session_that_another_works_on(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", says("from a"))
        await nodes.node("b", says("from b"))
        async with nodes.client("a") as near, nodes.client("b") as far:
            session = await near.new_session(tmp_path)
            assert (await session.ask("who?")).text == "from a"
            there = await far.load_session(session.id, tmp_path)
            assert (await there.ask("who?")).text == "from a"


@pytest.mark.requirement("CL1")
async def test_a_client_of_one_node_stops_a_turn_at_another(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", SLOW)
        await nodes.node("b", says("from b"))
        async with nodes.client("a") as near, nodes.client("b") as far:
            session = await near.new_session(tmp_path)
            there = await far.resume_session(session.id, tmp_path)
            turn = there.prompt("go on and on")
            await begun(turn)
            await there.cancel()
            await turn.read()
            assert turn.stop_reason == "cancelled"


@pytest.mark.requirement("CL1")
async def test_a_client_of_one_node_allows_what_the_agent_of_another_asks_for(tmp_path: Path) -> None:
    questions: list[str] = []

    async def allow(request: RequestPermission) -> PermissionOption:
        questions.append(request.title)
        return next(option for option in request.options if option.kind == "allow_once")

    async def wait(request: RequestPermission) -> None:
        await asyncio.get_running_loop().create_future()

    async with cluster(tmp_path) as nodes:
        await nodes.node("a", WRITES)
        await nodes.node("b", says("from b"))
        work = tmp_path / "work"
        work.mkdir()
        async with nodes.client("a", permission=wait) as near, nodes.client("b", permission=allow) as far:
            session = await near.new_session(work)
            there = await far.resume_session(session.id, work)
            assert (await there.ask("write it")).text == "done"
        assert (work / "new.txt").read_text() == "hello"
        assert len(questions) == 1


@pytest.mark.requirement("CL2")
async def test_the_turn_of_a_killed_node_is_interrupted_and_another_node_takes_over(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", SLOW)
        await nodes.node("b", says("from b"))
        async with nodes.client("b") as far:
            async with nodes.client("a") as near:
                session = await near.new_session(tmp_path)
                there = await far.resume_session(session.id, tmp_path)
                turn = there.prompt("go on and on")
                await begun(turn)
                await nodes.kill("a")
                with pytest.raises(RequestFailed):
                    await turn.read()
            # The client has done nothing but to send its next prompt, to the node that it had always.
            assert await asked(there, "and now?") == "from b"


@pytest.mark.requirement("CL3")
async def test_a_session_at_home_on_a_dead_node_can_be_read_and_forked_and_takes_no_prompt(tmp_path: Path) -> None:
    history: list[AnyEvent] = []

    def note(conversation: Conversation, event: AnyEvent) -> None:
        history.append(event)

    async with cluster(tmp_path) as nodes:
        await nodes.node("a", says("from a"), "--home", "node")
        await nodes.node("b", says("from b"))
        async with nodes.client("a") as near:
            session = await near.new_session(tmp_path)
            await session.ask("who?")
            await nodes.kill("a")
        async with nodes.client("b", on_event=note) as far:
            assert [info.session_id for info in await far.list_sessions()] == [session.id]
            there = await loaded(far, session.id, tmp_path)
            assert words(history) == "from a"
            with pytest.raises(RequestFailed) as refused:
                await there.ask("who?")
            assert (refused.value.code, refused.value.data) == (NODE_AWAY, {"reason": "node_away", "node": "a"})
            copy = await there.fork()
            assert (await copy.ask("who?")).text == "from b"


@pytest.mark.requirement("CL13")
async def test_a_node_that_was_fenced_goes_on_with_a_session_of_a_client_that_has_stayed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as nodes:
        await nodes.node("a", says("from a"))
        async with nodes.client("a") as client:
            session = await client.new_session(tmp_path)
            assert (await session.ask("who?")).text == "from a"
            # As another node does that takes it for dead; it learns it with its next look, and joins again.
            take = "UPDATE dragoman.node SET incarnation = incarnation + 1, expires = '-infinity' WHERE id = 'a'"
            shared_server().execute(take, "shared")
            await until(lambda: incarnation("a") >= 3, "the node has joined again")
            assert await asked(session, "and now?") == "from a"


def incarnation(node: str) -> int:
    return int(shared_server().execute(f"SELECT incarnation FROM dragoman.node WHERE id = '{node}'", "shared"))
