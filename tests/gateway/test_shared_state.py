"""State that is on another machine: what it answers late is waited for, and what others did there counts."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Session
from dragoman.gateway.agent_restart import ID_IN_USE
from dragoman.gateway.question_list import QuestionList
from dragoman.gateway.session_directory import SessionDirectory
from dragoman.gateway.shared_state import ConnectionPosition, SharedAgentState, WaitingQuestion
from dragoman.gateway.token_store import EmbeddedTokens
from dragoman.gateway.token_types import SCOPES, Token, digest_of
from dragoman.vocabulary.services import PermissionOption
from tests.support.gateway import counting, gateway, http_client, raw_http
from tests.support.messages import prompt, texts
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

YES = PermissionOption("yes", "Yes", "allow_once")
NO = PermissionOption("no", "No", "reject_once")


class FarDirectory(SessionDirectory):
    """A directory whose other servers have sessions of their own, which it tells when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: dict[str, str] = {}
        self.loaded: list[str] = []
        self.is_taken = False

    async def load(self, session_ids: Iterable[str] = (), *, agent_ids: Iterable[str] = ()) -> None:
        await asyncio.sleep(0)
        for session_id in (*session_ids, *agent_ids):
            self.loaded.append(session_id)
            if session_id in self.elsewhere:
                self.claim(session_id, self.elsewhere[session_id])

    async def persist(self, session_id: str) -> bool:
        await asyncio.sleep(0)
        return not self.is_taken


async def test_a_session_is_judged_by_what_other_servers_know_of_it(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        directory = FarDirectory()
        served.hub.access.directory = directory  # type: ignore[misc]
        async with raw_http(served, token=served.token_of("ada")) as ada, raw_http(served) as other:
            session_id = await ada.session()
            await ada.post(prompt(2, session_id), session_id)
            await ada.answer(2)
            assert texts(ada.heard) == ["0 "]
            directory.elsewhere["theirs"] = "ada"
            # Before it was asked for, it was one of those that were made without a gateway.
            assert await other.open("theirs") == 404
            assert directory.owner("theirs") == "ada"
            assert await ada.open("theirs") == 200


async def test_a_session_that_another_principal_has_claimed_meanwhile_is_not_opened(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        directory = FarDirectory()
        served.hub.access.directory = directory  # type: ignore[misc]
        directory.is_taken = True
        async with raw_http(served) as raw:
            await raw.post({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
            assert (await raw.answer(1))["error"]["message"] == ID_IN_USE
            assert not served.hub.sessions


async def test_a_request_waits_for_tokens_that_are_far(tmp_path: Path) -> None:
    asked: list[str] = []

    class FarTokens(EmbeddedTokens):
        async def valid(self) -> list[Token]:
            asked.append("valid")
            await asyncio.sleep(0)
            return [Token("far", "ada", SCOPES, digest_of(b"far"))]

    async with gateway(counting(1), tmp_path) as served, http_client() as client:
        served.server._guard._tokens = FarTokens(list)
        for token, status in ((b"far", 400), (b"near", 401)):
            headers = {"Authorization": f"Bearer {token.decode()}", "Accept": "text/event-stream"}
            assert (await client.get(served.http, headers=headers)).status_code == status
        assert len(asked) >= 2


class FarQuestions(QuestionList):
    """Questions of a session that another server may have taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ours = True
        self.seen: list[str] = []

    async def answer(self, question: WaitingQuestion) -> bool:
        await asyncio.sleep(0)
        self.seen += [one.kind for one in await self.waiting([question.session_id])]
        return await super().answer(question) and self.is_ours


@pytest.mark.parametrize(("is_ours", "said"), [(True, "allowed"), (False, "not allowed")])
async def test_a_yes_counts_only_while_no_other_server_has_the_session(
    tmp_path: Path, is_ours: bool, said: str
) -> None:
    questions = FarQuestions()
    questions.is_ours = is_ours
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Session, prompt: object) -> None:
        answer = await session.ask_permission("Write?", options=(YES, NO))
        await session.say("allowed" if answer else "not allowed")

    async with gateway(agent, tmp_path, state=SharedAgentState(questions=questions)) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: [one for one in raw.heard if one.get("method") == "session/request_permission"])
        (asked,) = [one for one in raw.heard if one.get("method") == "session/request_permission"]
        outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
        await raw.post({"id": asked["id"], "result": outcome}, session_id)
        await raw.answer(2)
        assert texts(raw.heard) == [said]
        assert questions.seen == ["permission"]
        assert await questions.waiting([session_id]) == []


async def test_a_question_that_is_cancelled_waits_nowhere(tmp_path: Path) -> None:
    questions = FarQuestions()
    agent = Agent("asking")

    @agent.prompt
    async def reply(session: Session, prompt: object) -> None:
        await session.ask_permission("Write?", options=(YES, NO))

    async with gateway(agent, tmp_path, state=SharedAgentState(questions=questions)) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await until(lambda: questions._open)
        await raw.post({"method": "session/cancel", "params": {"sessionId": session_id}}, session_id)
        await raw.answer(2)
        assert await questions.waiting([session_id]) == []


async def test_the_position_of_a_connection_is_known_until_it_ends(tmp_path: Path) -> None:
    async with gateway(counting(2), tmp_path) as served, raw_http(served) as raw:
        positions = served.hub.connections.positions
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
        found = await positions.find(raw.connection, "default")
        assert found is not None and found.is_alive
        newest = {name: int(events[-1][0]) for name, events in raw.by_stream.items()}
        assert found.position == ConnectionPosition(raw.connection, "default", 1, newest)
        assert await positions.find(raw.connection, "another") is None
        await raw.client.delete(served.http, headers={**served.headers, "Acp-Connection-Id": raw.connection})
        assert await positions.find(raw.connection, "default") is None
