"""A server that asks the user something: the question reaches the editor, and what cannot be asked is declined."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.mcp.settings import NoQuestions
from dragoman.vocabulary.events import Notice
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, Form, SessionScope, Url
from tests.support.mcp_servers import BOUNDS, raw, running
from tests.support.scripted_turns import RecordingModel
from tests.support.waiting import until
from tests.support.whole_agent import events_of, whole

LIBRARY = raw("library", name="docs")


async def answer_of(folder: Path, tool: str, **client: Any) -> tuple[dict[str, Any], list[str]]:
    """What the server was answered when its tool asked, and the notices of the turn."""
    model = RecordingModel([{"call": f"mcp__docs__{tool}", "input": {}}, {"say": "ok"}])
    async with whole(folder, model.make, mode="full-access", mcp_servers=[LIBRARY], **client) as (_, session):
        events = await events_of(session)
    (result,) = model.results
    return json.loads(result), [event.title for event in events if isinstance(event, Notice)]


@pytest.mark.requirement("MCP5")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_form_of_a_server_is_filled_in_at_the_client(tmp_path: Path, protocol: int) -> None:
    asked: list[Elicit] = []

    async def fill(request: Elicit) -> dict[str, object]:
        asked.append(request)
        return {"city": "Oslo"}

    answer, notices = await answer_of(tmp_path, "form", elicitation=fill, protocol=protocol)
    assert (answer, notices) == ({"action": "accept", "content": {"city": "Oslo"}}, [])
    (question,) = asked
    assert question.message == "The MCP server docs asks: Where \\x1b[2Jto?"
    assert isinstance(question.mode, Form)
    assert question.mode.requested_schema["properties"] == {"city": {"type": "string"}}
    assert isinstance(question.scope, SessionScope)


async def test_a_page_of_a_server_is_opened_by_the_client(tmp_path: Path) -> None:
    asked: list[Elicit] = []

    async def visit(request: Elicit) -> ElicitationAnswer:
        asked.append(request)
        return ElicitationAnswer("accept")

    answer, _ = await answer_of(tmp_path, "page", elicitation=visit)
    assert answer == {"action": "accept"}
    assert [request.mode for request in asked] == [Url("e1", "https://example.org/pay")]


async def test_a_user_who_declines_is_told_to_the_server(tmp_path: Path) -> None:
    async def decline(request: Elicit) -> None:
        return None

    assert (await answer_of(tmp_path, "form", elicitation=decline))[0] == {"action": "decline"}


@pytest.mark.requirement("MCP5")
async def test_a_client_that_shows_no_forms_is_not_asked_and_the_user_is_told_why(tmp_path: Path) -> None:
    answer, notices = await answer_of(tmp_path, "form")
    assert answer == {"action": "decline"}
    assert notices == [
        "The MCP server docs has asked for a form to be filled in, which this client cannot show: it was told no"
    ]


class Slow(NoQuestions):
    """A user who thinks until told to answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.was_cancelled = False

    async def ask(self, server: str, message: str, mode: Form | Url) -> ElicitationAnswer:
        self.asked.set()
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return ElicitationAnswer("accept", {"city": "Rome"})


async def test_a_call_is_not_late_while_the_user_thinks() -> None:
    user = Slow()
    async with running(LIBRARY, bounds=BOUNDS._replace(call=0.05), questions=user) as bench:
        call = asyncio.ensure_future(bench.call("mcp__docs__form"))
        await user.asked.wait()
        await asyncio.wait([call], timeout=0.2)
        assert not call.done()
        user.answer.set()
        assert json.loads((await call).text) == {"action": "accept", "content": {"city": "Rome"}}


async def test_a_question_ends_with_its_call() -> None:
    user = Slow()
    async with running(LIBRARY, questions=user) as bench:
        call = asyncio.ensure_future(bench.call("mcp__docs__form"))
        await user.asked.wait()
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: user.was_cancelled)
        assert bench.only.state == "connected"
