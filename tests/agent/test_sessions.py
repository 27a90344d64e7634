"""Sessions as a client sees them: opened in order, changed, closed; and extensions both ways."""

import asyncio
import os

import pytest

from dragoman import limits
from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import RequestFailed, UsageError
from dragoman.vocabulary.options import Choice, Select
from tests.support.messages import Message, prompt, texts, updates
from tests.support.served_agent import Reporting, end_of_turn, opened, served
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


def quiet_agent(**settings: object) -> Agent:
    agent = Agent("x", **settings)  # type: ignore[arg-type]

    agent.prompt(do_nothing)
    return agent


async def do_nothing(session: Session, prompt: Prompt) -> None: ...


def new_session(id: int = 1) -> Message:
    return {"id": id, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}}


@both_versions
async def test_what_a_session_says_while_it_is_opened_leaves_behind_the_answer_that_names_it(version: int) -> None:
    agent = quiet_agent()

    @agent.session_opened
    async def greet(session: Session) -> None:
        await session.say("wel")
        await asyncio.sleep(0)
        await session.say("come")
        await session.set_title("Greeting")
        session.memory["later"] = asyncio.ensure_future(go_on(session))

    async def go_on(session: Session) -> None:
        await settled()
        await session.say("later")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        await until(lambda: texts(wire.heard) == ["wel", "come", "later"])
        after = wire.heard[[m.get("id") for m in wire.heard].index(1) :]
        assert "id" in after[0] and "method" in after[1]
        assert updates(wire.heard) == updates(after)
        assert [m["params"]["sessionId"] for m in after[1:]] == [session_id] * (len(after) - 1)
        chunks = [m["params"]["update"] for m in after if "agent_message_chunk" in str(m)]
        assert chunks[0]["messageId"] == chunks[1]["messageId"]


@both_versions
async def test_the_answer_comes_first_even_when_the_client_does_not_read(version: int) -> None:
    agent = quiet_agent()

    @agent.session_opened
    async def greet(session: Session) -> None:
        await session.say("held")

    @agent.extension("_flood")
    async def flood(params: object) -> object:
        return "x" * limits.OUTBOX_BYTES

    async with served(agent, version) as wire:
        wire.pause()
        wire.say({"id": 5, "method": "_flood"}, new_session())
        await settled()
        wire.resume()
        await until(lambda: texts(wire.heard) == ["held"])
        named = [m.get("id") for m in wire.heard].index(1)
        said = next(i for i, m in enumerate(wire.heard) if "held" in str(m))
        assert named < said


@both_versions
async def test_a_session_whose_opening_fails_leaves_nothing_behind(version: int) -> None:
    agent = quiet_agent()

    @agent.session_opened
    async def greet(session: Session) -> None:
        await session.say("never")
        raise RequestFailed(-32000, "Log in first")

    async with served(agent, version) as wire:
        wire.say(new_session())
        assert (await wire.answer(1))["error"] == {"code": -32000, "message": "Log in first"}
        wire.say({"id": 2, "method": "session/list", "params": {}})
        assert (await wire.answer(2))["result"]["sessions"] == []
        assert texts(wire.heard) == []


@both_versions
async def test_a_session_that_is_being_opened_cannot_ask_yet(version: int) -> None:
    agent = quiet_agent()
    told = []

    @agent.session_opened
    async def greet(session: Session) -> None:
        try:
            await session.ask_permission("May I?")
        except UsageError as error:
            told.append(str(error))

    async with served(agent, version) as wire:
        await opened(wire)
    assert told == ["the client does not know this session yet: ask in the prompt handler"]


@both_versions
async def test_what_is_said_before_a_session_is_open_has_a_bound(version: int) -> None:
    agent = quiet_agent()
    told = []

    @agent.session_opened
    async def greet(session: Session) -> None:
        try:
            for _ in range(limits.EARLY_UPDATES + 1):
                await session.say("x")
        except UsageError as error:
            told.append(str(error))

    async with served(agent, version) as wire:
        await opened(wire)
        await until(lambda: len(texts(wire.heard)) == limits.EARLY_UPDATES)
    assert told == ["too much is said before the session is open: say it in the prompt handler"]


@pytest.mark.requirement("C4", "C9")
@both_versions
async def test_what_cannot_be_a_session_is_refused_with_a_code(version: int) -> None:
    async with served(quiet_agent(), version) as wire:
        folder = {"id": 1, "method": "session/new", "params": {"cwd": "/no/such/folder", "mcpServers": []}}
        wire.say(folder, prompt(2, "nobody"))
        assert (await wire.answer(1))["error"]["code"] == -32602
        missing = (await wire.answer(2))["error"]
        assert (missing["code"], missing["data"]) == (-32002, {"sessionId": "nobody"})


MODE = Select("mode", "Mode", "ask", [Choice("ask", "Ask"), Choice("code", "Code")], category="mode")


def set_mode(id: int, session_id: str, value: str, config_id: str = "mode") -> Message:
    params = {"sessionId": session_id, "configId": config_id, "value": value}
    return {"id": id, "method": "session/set_config_option", "params": {**params, "type": "id"}}


@both_versions
async def test_an_option_changes_for_the_handler_and_its_refusal_changes_nothing(version: int) -> None:
    agent = quiet_agent(options=[MODE])
    heard = []

    @agent.option_changed
    async def changed(session: Session, config_id: str, value: object) -> None:
        heard.append((config_id, value, session.option("mode")))
        if len(heard) == 2:
            raise RequestFailed(-32602, "Not now")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(set_mode(2, session_id, "code"))
        assert (await wire.answer(2))["result"]["configOptions"][0]["currentValue"] == "code"
        wire.say(set_mode(3, session_id, "ask"))
        assert (await wire.answer(3))["error"]["message"] == "Not now"
        wire.say(set_mode(4, session_id, "code"))
        assert (await wire.answer(4))["result"]["configOptions"][0]["currentValue"] == "code"
        assert heard == [("mode", "code", "code"), ("mode", "ask", "ask"), ("mode", "code", "code")]


@both_versions
async def test_an_option_or_a_value_that_is_not_there_is_refused(version: int) -> None:
    async with served(quiet_agent(options=[MODE]), version) as wire:
        session_id = await opened(wire)
        wire.say(set_mode(2, session_id, "fly"), set_mode(3, session_id, "x", "colour"))
        value, option = (await wire.answer(2))["error"], (await wire.answer(3))["error"]
        assert (value["code"], value["message"]) == (-32602, "No such value 'fly' for mode; there are ask, code")
        assert (option["code"], option["message"]) == (-32602, "No such option 'colour'; there are mode")


@both_versions
async def test_extensions_are_answered_and_their_notifications_heard(version: int) -> None:
    agent = quiet_agent()
    heard = []

    @agent.extension("_ping")
    async def ping(params: object) -> object:
        return {"pong": params}

    @agent.notification("_note")
    async def note(params: object) -> None:
        heard.append(params)

    async with served(agent, version) as wire:
        wire.say({"id": 1, "method": "_ping", "params": {"n": 1}}, {"method": "_note", "params": {"n": 1}})
        wire.say({"id": 2, "method": "_other"}, {"method": "_other"})
        assert (await wire.answer(1))["result"] == {"pong": {"n": 1}}
        assert (await wire.answer(2))["error"]["code"] == -32601
        await until(lambda: heard == [{"n": 1}])


@both_versions
async def test_the_log_says_which_notifications_were_ignored_and_not_what_they_hold(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dragoman.agent.connection")
    async with served(quiet_agent(), version) as wire:
        session_id = await opened(wire)
        wire.say({"method": "_other", "params": {"key": "secret"}})
        wire.say({"method": "session/cancel", "params": {"sessionId": session_id}})
        wire.say({"id": 9, "method": "_none"})
        await wire.answer(9)
    ignored = [record.getMessage() for record in caplog.records if "ignored" in record.getMessage()]
    assert ignored == [
        "notification _other ignored: the agent has no handler for it",
        f"cancel of session {session_id[limits.SHORT_ID]} ignored: no turn of it runs",
    ]


@both_versions
async def test_notifications_that_pile_up_are_dropped_and_one_that_fails_is_reported(
    version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = Reporting("x")
    agent.prompt(do_nothing)
    going = asyncio.Event()
    running = []

    @agent.notification("_slow")
    async def slow(params: object) -> None:
        running.append(1)
        await going.wait()
        raise ValueError("reported")

    async with served(agent, version) as wire:
        wire.say(*[{"method": "_slow"}] * 1000, {"id": 1, "method": "_none"})
        await wire.answer(1)
        assert len(running) == limits.IN_FLIGHT
        going.set()
        await until(lambda: len(agent.bugs) == limits.IN_FLIGHT)
    assert capsys.readouterr().err.count("\n") <= 101


@both_versions
async def test_the_client_lends_files_terminals_and_answers_where_it_offers_them(version: int) -> None:
    agent = Agent("x")
    refused = []

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        for attempt in (
            lambda: session.read_text_file("/a"),
            lambda: session.write_text_file("/a", "b"),
            lambda: session.client_terminal("ls"),
            lambda: session.ask_user("Name?", {}),
        ):
            try:
                await attempt()
            except UsageError as error:
                refused.append(str(error).partition(";")[0])

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "end_turn"}
    assert refused == [
        "the client lends no files",
        "the client takes no files",
        "the client lends no terminals",
        "the client cannot show forms",
    ]
