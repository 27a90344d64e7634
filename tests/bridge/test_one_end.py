"""Every call and every turn ends once, whichever side leaves, fails or cancels, at whichever message."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.bridge import GONE
from dragoman.transports.memory import Faults
from tests.support.bridge_peers import (
    AFTER,
    BEFORE,
    CANCELLED_END,
    DISMISSED,
    EDITOR,
    HEARD_BEFORE,
    QUESTION,
    Ended,
    Message,
    Peer,
    agent_hello,
    chosen,
    error,
    every_pair,
    every_translation,
    in_session,
    joined,
    note,
    permission,
    prompt,
    request,
    result,
    state,
    text,
)


class Editor:
    """A whole visit: hello, a session, a turn with a permission, a request, a second turn."""

    def __init__(self, peer: Peer, version: int) -> None:
        self.peer = peer
        self.version = version
        self.asked = 0
        self.cancels_at: int | None = None
        self.fails_at: int | None = None
        self.questions = 0

    async def visit(self) -> None:
        await self.ask("initialize", **EDITOR[self.version])
        await self.ask("session/new", cwd="/w", mcpServers=[])
        for _ in range(2):
            answer = await self.ask("session/prompt", sessionId="s", prompt=[text("hi")])
            while self.version == 2 and "result" in answer and not self._is_idle(await self.step()):
                pass
            await self.ask("_between")

    async def ask(self, method: str, **params: Any) -> Message:
        self.asked += 1
        self.peer.say(request(self.asked, method, **params))
        while True:
            message = await self.step()
            if "method" not in message and message["id"] == self.asked:
                return message

    async def step(self) -> Message:
        message = await self.peer.hear()
        if len(self.peer.heard) == self.cancels_at:
            self.peer.say(note("session/cancel", sessionId="s"))
        if message.get("method") == "session/request_permission":
            self.questions += 1
            refused = error(message["id"], -32603, "Broken")
            self.peer.say(refused if self.questions == self.fails_at else chosen(message["id"], "yes"))
        return message

    def _is_idle(self, message: Message) -> bool:
        return bool(message.get("params", {}).get("update", {}).get("stopReason"))


class Program:
    """An agent for that visit: it answers what it is asked, and does what `BEFORE` and `AFTER` say on a prompt."""

    def __init__(self, peer: Peer, version: int) -> None:
        self.peer = peer
        self.version = version
        self.fails_at: int | None = None
        self.requests = 0
        self.cancelled = False
        self.questions = 0

    async def work(self) -> None:
        while True:
            message = await self.peer.hear()
            self._notice(message)
            if "id" in message:
                self.requests += 1
                await self._answer(message)

    async def _answer(self, message: Message) -> None:
        if self.requests == self.fails_at:
            self.peer.say(error(message["id"], -32603, "Broken"))
        elif message["method"] == "initialize":
            self.peer.say(result(message["id"], **agent_hello(self.version)))
        elif message["method"] == "session/prompt":
            await self._turn(message["id"])
        else:
            self.peer.say(result(message["id"], sessionId="s"))

    async def _turn(self, number: int) -> None:
        self.cancelled = False
        self.questions += 1
        ids: dict[int, int | str] = {3: number, QUESTION: f"q{self.questions}"}
        self.peer.say(*(_renumbered(said, ids) for said in BEFORE[self.version]))
        while "method" in (answer := await self.peer.hear()):
            self._notice(answer)
        if self.cancelled:
            self.peer.say(_renumbered(CANCELLED_END[self.version], ids))
        else:
            self.peer.say(*(_renumbered(said, ids) for said in AFTER[self.version]))

    def _notice(self, message: Message) -> None:
        if message.get("method") == "session/cancel":
            self.cancelled = True


def _renumbered(message: Message, ids: dict[int, int | str]) -> Message:
    return {**message, "id": ids[message["id"]]} if "id" in message else message


async def visit(
    front: int, back: int, arrange: Callable[[Editor, Program], None], **faults: Faults
) -> tuple[Editor, Program]:
    """Play the visit with a fault in it, to the end of all three."""
    async with joined(**faults) as (left, right):
        editor, program = Editor(left, front), Program(right, back)
        arrange(editor, program)

        async def play(script: Any, peer: Peer) -> None:
            try:
                await script
                await peer.leave()
            except Ended:
                pass

        visiting = asyncio.ensure_future(play(editor.visit(), left))
        working = asyncio.ensure_future(play(program.work(), right))
        await asyncio.wait([visiting, working])
    return editor, program


def answers(peer: Peer) -> Counter[Any]:
    return Counter(message["id"] for message in peer.heard if "method" not in message)


def assert_one_end_each(editor: Editor, program: Program) -> None:
    """Every request and every turn that could be heard has exactly one end, and only a yes was a yes."""
    assert set(answers(editor.peer).values()) | set(answers(program.peer).values()) <= {1}
    if not editor.peer.fell:
        # Whatever the agent heard before it went, or was going to hear, the editor was answered.
        assert answers(editor.peer).total() >= sum("id" in m and "method" in m for m in program.peer.heard)
        assert ends(editor.peer) == turns(editor)
    if not program.peer.fell:
        asked = sum("id" in m and "method" in m for m in program.peer.said)
        assert answers(program.peer).total() == asked
    allowed = sum(m.get("result", {}).get("outcome", {}).get("optionId") == "yes" for m in editor.peer.said)
    heard = sum(m.get("result", {}).get("outcome", {}).get("optionId") == "yes" for m in program.peer.heard)
    assert heard <= allowed


def turns(editor: Editor) -> int:
    """The turns that began, as far as the editor knows."""
    prompts = {m["id"] for m in editor.peer.said if m.get("method") == "session/prompt"}
    if editor.version == 1:
        return 0
    return sum(m.get("id") in prompts and "result" in m for m in editor.peer.heard)


def ends(peer: Peer) -> int:
    return sum(bool(m.get("params", {}).get("update", {}).get("stopReason")) for m in peer.heard)


@pytest.mark.requirement("L3")
@every_translation
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_leaves_at_any_message_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    index = 0
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            (program if who == "agent" else editor).peer.leaves_at = index

        editor, program = await visit(front, back, arrange)
        if not (program if who == "agent" else editor).peer.fell:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index > 20


@pytest.mark.requirement("L3")
@every_translation
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_is_cut_off_at_any_byte_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    cuts = [*range(0, 2_000, 83), 2_000]
    for cut in cuts:
        fault = Faults(dropped_after=cut)

        def arrange(editor: Editor, program: Program) -> None:
            (program if who == "agent" else editor).peer.fell = True

        faults = {"to_back": fault} if who == "agent" else {"to_front": fault}
        assert_one_end_each(*await visit(front, back, arrange, **faults))


@pytest.mark.requirement("L3")
@every_pair
@pytest.mark.parametrize("who", ["agent", "editor"])
async def test_when_one_side_fails_at_any_request_the_other_sees_one_end(front: int, back: int, who: str) -> None:
    index = 1
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            if who == "agent":
                program.fails_at = index
            else:
                editor.fails_at = index

        editor, program = await visit(front, back, arrange)
        if (program.requests if who == "agent" else editor.questions) < index:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index == (7 if who == "agent" else 3)


@pytest.mark.requirement("L3")
@every_translation
async def test_a_cancel_at_any_message_leaves_one_end(front: int, back: int) -> None:
    index = 1
    while True:

        def arrange(editor: Editor, program: Program, index: int = index) -> None:
            editor.cancels_at = index

        editor, program = await visit(front, back, arrange)
        if len(editor.peer.heard) < index:
            break
        assert_one_end_each(editor, program)
        index += 1
    assert index > 20


@every_pair
async def test_an_agent_that_leaves_in_a_turn_ends_it_with_an_error_before_the_end(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*BEFORE[back][:-1])
        await editor.hear_many(len(HEARD_BEFORE[front, back]) - (2 if (front, back) == (2, 1) else 1))
        await agent.leave()
        failure = {"code": -32603, "message": GONE}
        end = error(3, -32603, GONE) if front == 1 else state("idle", stopReason="error", error=failure)
        assert await editor.ended() == [end]


async def test_work_without_a_prompt_is_ended_too_when_its_agent_leaves() -> None:
    async with in_session(2, 2) as (editor, agent):
        agent.say(state("running"), state("idle"), state("running"))
        await agent.leave()
        end = state("idle", stopReason="error", error={"code": -32603, "message": GONE})
        assert await editor.ended() == [state("running"), state("idle"), state("running"), end]


async def test_a_closed_session_has_no_turn_to_end_when_its_agent_leaves() -> None:
    async with in_session(2, 2) as (editor, agent):
        editor.say(prompt(3), request(4, "session/close", sessionId="s"))
        await agent.hear_many(2)
        agent.say(result(3, messageId="u"), state("running"), result(4), note("_last"))
        assert (await editor.hear_many(4))[2:] == [result(4), note("_last")]
        await agent.leave()
        assert await editor.ended() == []


@every_pair
async def test_an_agent_that_leaves_owes_no_answer_and_ends_no_finished_turn(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("x", "_slow"), note("_news"))
        await agent.hear_many(2)
        agent.say(note("_last"))
        await agent.leave()
        assert await editor.ended() == [note("_last"), error("x", -32603, GONE)]


@every_pair
async def test_an_editor_that_only_stops_speaking_still_hears_what_it_asked_for(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(request("x", "_slow"))
        editor.fall_silent()
        await agent.hear()
        agent.say(permission("p", back), note("_last"), result(3))
        assert await editor.ended() == [note("_last"), result("x")]
        assert await agent.ended() == [result("p", **DISMISSED)]


@every_pair
async def test_what_the_editor_said_before_it_left_reaches_the_agent(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(note("_one"), note("session/cancel", sessionId="s"), note("_two"))
        await editor.leave()
        assert await agent.ended() == [note("_one"), note("session/cancel", sessionId="s"), note("_two")]
