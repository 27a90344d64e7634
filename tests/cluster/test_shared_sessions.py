"""Whose sessions are, what was accepted and what is asked, at all nodes, in the database."""

import time
from collections.abc import AsyncIterator

import pytest

from dragoman.cluster.shared_sessions import (
    INTERRUPTED,
    OrderedWork,
    PostgresDirectory,
    PostgresOperations,
    PostgresQuestions,
)
from dragoman.cluster.shared_traffic import PostgresPositions, PostgresRates
from dragoman.errors import RequestFailed
from dragoman.gateway.agent_restart import GONE
from dragoman.gateway.shared_state import ConnectionPosition, WaitingQuestion
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.node_lease import NodeLease
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle
from dragoman.vocabulary.requests import PromptAccepted, PromptRequest
from tests.support.postgres import empty_database, shared_server

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NOWHERE = "postgresql://nobody@/none?host=/nowhere"
QUESTION = WaitingQuestion("q1", "sess_1", "permission")


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    with empty_database() as url:
        one = Database(url)
        yield one
        await one.close()


@pytest.fixture
async def lease(database: Database) -> AsyncIterator[NodeLease]:
    one = NodeLease(database, "a", url="http://localhost:1")
    await one.acquire()
    yield one
    await one.release()


def prompt(words: str, operation: str | None = "op1") -> PromptRequest:
    meta = {} if operation is None else {"dragoman/operationId": operation}
    return PromptRequest("sess_1", [Text(words)], meta=meta)


@pytest.mark.requirement("CL8")
async def test_a_session_has_one_owner_at_all_nodes(database: Database) -> None:
    here, there = (PostgresDirectory(database, "", node) for node in ("a", "b"))
    assert here.claim("sess_1", "ada", cwd="/work")
    assert await here.persist("sess_1")
    assert there.claim("sess_1", "bob")
    assert not await there.persist("sess_1")
    fresh = PostgresDirectory(database, "", "c")
    await fresh.load(["sess_1", "unknown"])
    assert (fresh.owner("sess_1"), fresh.cwd("sess_1"), fresh.owner("unknown")) == ("ada", "/work", None)


async def test_sessions_are_found_by_their_agents_ids_and_not_among_those_of_other_agents(database: Database) -> None:
    one, other = PostgresDirectory(database, "claude", "a"), PostgresDirectory(database, "gemini", "a")
    for directory, session, principal in ((one, "sess_1", "ada"), (one, "sess_2", "bob"), (other, "sess_3", "eve")):
        directory.claim(session, principal, "1")
        await directory.persist(session)
    fresh = PostgresDirectory(database, "claude", "b")
    await fresh.load(agent_ids=["1"])
    assert fresh.sessions_named("1") == ["sess_1", "sess_2"]
    assert fresh.is_ambiguous("sess_1")


async def test_while_the_database_is_away_no_session_is_claimed_or_looked_up() -> None:
    directory = PostgresDirectory(Database(NOWHERE), "", "a")
    directory.claim("sess_1", "ada")
    with pytest.raises(OSError, match="cannot be written"):
        await directory.persist("sess_1")
    with pytest.raises(RequestFailed) as refused:
        await directory.load(["sess_2"])
    assert refused.value.data == {"retry": True}


@pytest.mark.requirement("CL9")
async def test_a_repeat_at_another_node_gets_the_reply_and_the_end_of_the_first(database: Database) -> None:
    background = OrderedWork()
    here, there = PostgresOperations(database, background), PostgresOperations(database, OrderedWork())
    first, is_first = await here.begin("ada", prompt("go"))
    assert first is not None and is_first
    first.accept(PromptAccepted("m1"))
    await here.save(first)
    first.finish(Idle("end_turn"))
    await background.close()
    repeat, is_first = await there.begin("ada", prompt("go"))
    assert repeat is not None and not is_first
    assert (await repeat.reply(), repeat.end) == (PromptAccepted("m1"), Idle("end_turn"))


@pytest.mark.requirement("CL9")
async def test_a_repeat_is_told_that_the_turn_of_a_lost_node_was_interrupted(database: Database) -> None:
    here, there = (PostgresOperations(database, OrderedWork()) for _ in range(2))
    first, _ = await here.begin("ada", prompt("go"))
    assert first is not None
    first.accept(PromptAccepted("m1"))
    await here.save(first)
    # The first node is gone now: only the one that owns the session is asked about its prompts.
    repeat, is_first = await there.begin("ada", prompt("go"))
    assert repeat is not None and not is_first
    assert (await repeat.reply(), repeat.end) == (PromptAccepted("m1"), INTERRUPTED)


@pytest.mark.requirement("CL9")
async def test_a_repeat_is_refused_where_the_first_got_no_reply(database: Database) -> None:
    here, there = (PostgresOperations(database, OrderedWork()) for _ in range(2))
    await here.begin("ada", prompt("go"))
    repeat, is_first = await there.begin("ada", prompt("go"))
    assert repeat is not None and not is_first
    with pytest.raises(RequestFailed, match=GONE):
        await repeat.reply()


async def test_a_prompt_that_was_not_accepted_may_be_sent_again_to_another_node(database: Database) -> None:
    here, there = (PostgresOperations(database, OrderedWork()) for _ in range(2))
    first, _ = await here.begin("ada", prompt("go"))
    assert first is not None
    await here.forget(first)
    assert (await there.begin("ada", prompt("go")))[1]
    assert not (await here.begin("ada", prompt("go")))[1]


async def test_another_prompt_under_the_same_id_is_refused_at_every_node(database: Database) -> None:
    here, there = (PostgresOperations(database, OrderedWork()) for _ in range(2))
    await here.begin("ada", prompt("go"))
    with pytest.raises(RequestFailed) as refused:
        await there.begin("ada", prompt("stop"))
    assert refused.value.data == {"reason": "operation_conflict"}
    assert (await there.begin("bob", prompt("stop")))[1]


async def test_a_prompt_with_an_id_is_refused_while_the_database_is_away() -> None:
    operations = PostgresOperations(Database(NOWHERE), OrderedWork())
    for _ in range(2):
        with pytest.raises(RequestFailed) as refused:
            await operations.begin("ada", prompt("go"))
        assert refused.value.data == {"retry": True}
    assert await operations.begin("ada", prompt("go", None)) == (None, True)


@pytest.mark.requirement("CL8")
async def test_a_question_is_known_at_all_nodes_until_its_first_answer(database: Database, lease: NodeLease) -> None:
    there = PostgresQuestions(database, "", lambda: None, OrderedWork())
    background = OrderedWork()
    here = PostgresQuestions(database, "", lambda: lease, background)
    here.open(QUESTION)
    await background.ask(noted)
    (waiting,) = await there.waiting(["sess_1", "sess_2"])
    assert waiting._replace(began=0) == QUESTION
    assert 0 <= time.time() - waiting.began < 60
    assert await there.waiting(["sess_2"]) == []
    assert await here.answer(QUESTION)
    assert not await here.answer(QUESTION)
    assert await there.waiting(["sess_1"]) == []


@pytest.mark.requirement("K62")
async def test_questions_are_found_at_all_nodes_by_the_principal_whose_sessions_they_are_of(
    database: Database, lease: NodeLease
) -> None:
    directory, background = PostgresDirectory(database, "", "a"), OrderedWork()
    for session, principal in (("sess_1", "ada"), ("sess_2", "bob")):
        assert directory.claim(session, principal)
        assert await directory.persist(session)
    here = PostgresQuestions(database, "", lambda: lease, background)
    for number in (1, 2, 3):  # the third session was made without a gateway
        here.open(WaitingQuestion(f"q{number}", f"sess_{number}", "permission"))
    await background.ask(noted)
    there, other = (PostgresQuestions(database, agent, lambda: None, OrderedWork()) for agent in ("", "codex"))

    async def ids(principal: str, *, with_unclaimed: bool = False) -> list[str]:
        return [one.id for one in await there.waiting_for(principal, with_unclaimed=with_unclaimed)]

    assert [await ids("ada"), await ids("bob"), await ids("eve")] == [["q1"], ["q2"], []]
    assert await ids("ada", with_unclaimed=True) == ["q1", "q3"]
    assert await other.waiting_for("ada", with_unclaimed=True) == []


@pytest.mark.requirement("CL7")
async def test_an_answer_does_not_count_for_a_node_that_was_taken_for_dead(
    database: Database, lease: NodeLease
) -> None:
    questions = PostgresQuestions(database, "", lambda: lease, OrderedWork())
    questions.open(QUESTION)
    await questions._background.ask(noted)
    shared_server().execute("UPDATE dragoman.node SET incarnation = incarnation + 1", "shared")
    assert await questions.waiting(["sess_1"]) == []
    assert not await questions.answer(QUESTION)


async def test_a_question_that_has_ended_takes_no_answer(database: Database, lease: NodeLease) -> None:
    questions = PostgresQuestions(database, "", lambda: lease, OrderedWork())
    questions.open(QUESTION)
    questions.cancel(QUESTION)
    assert not await questions.answer(QUESTION)
    assert shared_server().execute("SELECT state FROM dragoman.question", "shared") == "ended"


async def noted() -> bool:
    return True


@pytest.mark.requirement("CL8")
async def test_a_connection_of_one_node_is_found_at_another_with_its_streams(
    database: Database, lease: NodeLease
) -> None:
    here, there = PostgresPositions(database, lambda: lease), PostgresPositions(database, lambda: None)
    position = ConnectionPosition("c1", "ada", 7, {"": 3, "sess_1": 12})
    here.add("c1", lambda: position)
    await here.save()
    found = await there.find("c1", "ada")
    assert found is not None
    assert (found.position, found.node, found.node_url, found.is_alive) == (position, "a", "http://localhost:1", True)
    assert await there.find("c1", "bob") is None
    here.remove("c1")
    await here.save()
    assert await there.find("c1", "ada") is None


@pytest.mark.requirement("CL8")
async def test_what_one_node_lets_through_is_taken_from_the_others(database: Database, lease: NodeLease) -> None:
    nodes = [PostgresPositions(database, lambda: lease) for _ in range(2)]
    here, there = (node.rates("requests", 0.001, 10) for node in nodes)

    async def used(rates: PostgresRates, times: int) -> int:
        return sum([await rates.acquire("ada") for _ in range(times)])

    assert (await used(here, 1), await used(there, 1)) == (1, 1)
    for node in nodes:
        await node.save()
    assert await used(here, 6) == 6
    await nodes[0].save()
    await used(there, 1)
    await nodes[1].save()
    # Ten at once, of which it has had two itself, and the other one six since the two know of each other.
    assert await used(there, 10) == 2
