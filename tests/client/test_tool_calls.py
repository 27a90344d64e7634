"""A question is judged and shown with everything that was told of its call, in whatever form."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import tool_calls as calls_module
from dragoman.client.client import Client
from dragoman.client.conversation import Conversation
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.tool_calls import ToolCalls
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallContentChunk, ToolCallUpdate
from dragoman.vocabulary.services import PermissionOption, RequestPermission, ToolCallSubject
from dragoman.vocabulary.tool_call_state import incomplete
from dragoman.vocabulary.tools import ContentItem, Diff, Location
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.client.test_questions import OPTIONS, chosen
from tests.support.messages import Message
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

YES = PermissionOption("yes", "Yes", "allow_once")
NO = PermissionOption("no", "No", "reject_once")
PASSWD = Diff.of("/etc/passwd", None, "evil")


def told(**update: Any) -> Message:
    return {"method": "session/update", "params": {"sessionId": "s", "update": {"toolCallId": "c", **update}}}


def diff_chunk(path: str) -> Message:
    content = {"type": "diff", "changes": [{"operation": "modify", "path": path}]}
    return told(sessionUpdate="tool_call_content_chunk", content=content)


def asking(id: str = "q", session: str = "s", **fields: Any) -> Message:
    call = {"toolCallId": "c", **fields}
    params = {
        "sessionId": session,
        "title": "May I?",
        "options": OPTIONS,
        "subject": {"type": "tool_call", "toolCall": call},
    }
    return {"id": id, "method": "session/request_permission", "params": params}


async def in_turn(client: Client, agent: RawAgent) -> Conversation:
    """A session whose turn runs."""
    session = await new_session(client, agent)
    session.prompt("hi")
    await agent.accept()
    return session


@pytest.mark.parametrize("path", ["/etc/passwd", "inside"])
async def test_a_diff_that_was_told_as_a_chunk_is_judged(path: str, tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("edit"), [tmp_path])
    file = str(tmp_path / "a.txt")
    async with connected(2, permission=permissions) as (client, agent):
        await in_turn(client, agent)
        agent.say(told(sessionUpdate="tool_call_update", kind="edit", locations=[{"path": file}]))
        agent.say(diff_chunk(file if path == "inside" else path), asking())
        answer = (await agent.answer("q"))["result"]
    assert answer["outcome"] == chosen("yes" if path == "inside" else "no")["outcome"]
    reason = "/etc/passwd is outside of the workspace, and there is no user to ask"
    assert [denial.reason for denial in permissions.denials] == ([] if path == "inside" else [reason])


async def test_a_person_is_shown_what_was_told_as_chunks() -> None:
    shown: list[Any] = []

    async def decide(request: RequestPermission) -> str:
        assert isinstance(request.subject, ToolCallSubject)
        shown.append(request.subject.tool_call.content)
        return "yes"

    async with connected(2, permission=decide) as (client, agent):
        await in_turn(client, agent)
        agent.say(diff_chunk("/w/a"), diff_chunk("/w/b"), asking())
        assert (await agent.answer("q"))["result"] == chosen("yes")
    assert [[change.path for item in content for change in item.changes] for content in shown] == [["/w/a", "/w/b"]]


async def test_what_was_told_before_the_session_was_known_is_judged_too(tmp_path: Path) -> None:
    permissions = PermissionHandler(PermissionPolicy("edit"), [tmp_path])
    async with connected(2, permission=permissions) as (client, agent):
        opening = asyncio.ensure_future(client.new_session("/"))
        number = (await agent.request("session/new"))["id"]
        agent.say(diff_chunk("/etc/passwd"), asking(kind="edit", locations=[{"path": str(tmp_path / "a")}]))
        assert (await agent.answer("q"))["result"]["outcome"] == chosen("no")["outcome"]
        agent.say({"id": number, "result": {"sessionId": "s"}})
        await opening


async def test_a_yes_is_for_what_was_shown_and_not_for_what_is_told_meanwhile() -> None:
    shown: list[int] = []
    going = asyncio.Event()

    async def decide(request: RequestPermission) -> str:
        assert isinstance(request.subject, ToolCallSubject)
        shown.append(len(request.subject.tool_call.content or ()))
        if len(shown) == 1:
            await going.wait()
            return "yes"
        return "no"

    async with connected(2, permission=decide) as (client, agent):
        session = await in_turn(client, agent)
        agent.say(diff_chunk("/w/a"), asking())
        await until(lambda: shown == [1])
        agent.say(diff_chunk("/etc/passwd"))
        await until(lambda: len(call_of(session._state.calls.whole(question())).content or ()) == 2)
        going.set()
        assert (await agent.answer("q"))["result"] == chosen("no")
    assert shown == [1, 2]


def question(**fields: Any) -> RequestPermission:
    return RequestPermission("s", "t", [YES, NO], subject=ToolCallSubject(ToolCallUpdate("c", **fields)))


def call_of(request: RequestPermission) -> ToolCallUpdate:
    assert isinstance(request.subject, ToolCallSubject)
    return request.subject.tool_call


def test_a_question_takes_nothing_away_from_what_was_told() -> None:
    calls = ToolCalls()
    calls.apply(ToolCallUpdate("c", kind="execute", locations=[Location("/etc/a")], raw_input={"command": "rm"}))
    calls.apply(ToolCallContentChunk("c", PASSWD))
    words = ContentItem(Text("harmless"))
    asked = question(kind="read", content=[words], locations=[Location("/w/a")], raw_input={"command": "ls"})
    whole = call_of(calls.whole(asked))
    assert (whole.kind, whole.content, whole.locations, whole.raw_input) == (
        "execute",
        [words, PASSWD],
        [Location("/w/a"), Location("/etc/a")],
        [{"command": "ls"}, {"command": "rm"}],
    )
    cleared = call_of(calls.whole(question(kind=None, content=None, locations=[], raw_input=None)))
    assert (cleared.kind, cleared.content, cleared.raw_input) == ("execute", [PASSWD], {"command": "rm"})


def test_a_question_that_repeats_its_call_has_everything_once() -> None:
    calls = ToolCalls()
    calls.apply(ToolCallUpdate("c", kind="edit", content=[PASSWD], locations=[Location("/w/a")], raw_input={"a": 1}))
    asked = question(kind="edit", content=[PASSWD], locations=[Location("/w/a")], raw_input={"a": 1, "b": 2})
    assert call_of(calls.whole(asked)) == call_of(asked)


@pytest.mark.parametrize(
    ("told_kind", "asked", "kind"),
    [("edit", "read", "edit"), ("read", "edit", "edit"), ("other", "edit", "other"), ("warp", "read", "warp")],
)
def test_the_more_serious_kind_counts(told_kind: str, asked: str, kind: str) -> None:
    calls = ToolCalls()
    calls.apply(ToolCallUpdate("c", kind=told_kind))
    assert call_of(calls.whole(question(kind=asked))).kind == kind


def test_a_call_that_is_not_kept_any_more_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "_MOST", 2)
    calls = ToolCalls()
    for id in ("c", "d", "e"):
        calls.apply(ToolCallUpdate(id, content=[PASSWD]))
    assert call_of(calls.whole(question(locations=[Location("/w/a")]))).content == [incomplete()]
    calls.clear()
    assert call_of(calls.whole(question())).content != [incomplete()]


def test_content_of_all_calls_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "_CHARACTERS", 100)
    calls = ToolCalls()
    for id in ("c", "d"):
        calls.apply(ToolCallContentChunk(id, ContentItem(Text("x" * 80))))
    assert repr(calls) == "<ToolCalls open=1 size=80 evicted=True>"
    calls.apply(ToolCallUpdate("d", status="completed"))
    assert repr(calls) == "<ToolCalls open=0 size=0 evicted=True>"
