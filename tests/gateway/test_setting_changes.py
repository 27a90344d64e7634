"""What one client of a session sets, every other client is told once: in each version, before each agent."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Session
from dragoman.gateway.agent_source import AgentSource, spawn_source
from dragoman.gateway.setting_changes import SettingChanges
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import SessionInfoChanged
from dragoman.vocabulary.options import Choice, Option, Select
from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import Message

from .test_shared_session import root_session

pytestmark = pytest.mark.anyio
MODES: list[Any] = [Choice("ask", "Ask"), Choice("plan", "Plan")]
SIZES: list[Any] = [Choice("small", "Small"), Choice("large", "Large")]
OPTIONS: list[Option] = [
    Select("mode", "Mode", "ask", MODES, category="mode"),
    Select("model", "Model", "small", SIZES, category="model"),
    Select("depth", "Depth", "small", SIZES),
]
VALUES = {"mode": "plan", "model": "large", "depth": "large"}
UPDATES = ("config_option_update", "current_mode_update", "session_info_update")


def kept(version: int, store: SqliteStore) -> Agent:
    agent = Agent("kept", protocol=version, store=store, options=OPTIONS)

    @agent.prompt
    async def reply(session: Session, prompt: Any) -> None:
        await session.say("done")

    return agent


def loud(version: int, store: SqliteStore) -> Agent:
    """An agent that sends an update of its own for every option that is set."""
    agent = kept(version, store)

    @agent.option_changed
    async def changed(session: Session, config_id: str, value: Any) -> None:
        await session.set_options(session.options)

    return agent


def setting(version: int, what: str, session_id: str) -> Message:
    if what == "title":
        return {"id": 9, "method": "session/set_title", "params": {"sessionId": session_id, "title": "Named"}}
    if what == "set_mode":
        return {"id": 9, "method": "session/set_mode", "params": {"sessionId": session_id, "modeId": "plan"}}
    typed = {"type": "id"} if version == 2 else {}
    params = {"sessionId": session_id, "configId": what, "value": VALUES[what], **typed}
    return {"id": 9, "method": "session/set_config_option", "params": params}


async def joined(raw: RawHttp, session_id: str) -> None:
    assert await raw.open(session_id) == 200
    opening = {"sessionId": session_id, "cwd": "/", "mcpServers": []}
    await raw.post({"id": 5, "method": "session/resume", "params": opening}, session_id)
    assert "result" in await raw.answer(5)


async def seen(raw: RawHttp, session_id: str) -> list[Message]:
    """The settings a client was told, up to now: what it asks here is answered behind them."""
    await raw.post(
        {"id": 78, "method": "session/prompt", "params": {"sessionId": session_id, "prompt": [TEXT]}}, session_id
    )
    await raw.answer(78)
    updates = [m["params"]["update"] for m in raw.heard if m.get("method") == "session/update"]
    return [one for one in updates if one["sessionUpdate"] in UPDATES and one.get("title") != TEXT["text"]]


TEXT = {"type": "text", "text": "go on"}


def values_in(update: Message) -> dict[str, str]:
    return {one.get("configId", one.get("id")): one["currentValue"] for one in update["configOptions"]}


SETTERS = [(version, what) for version in (1, 2) for what in ("mode", "model", "depth", "title")]


@pytest.mark.parametrize(("setter", "what"), [*SETTERS, (1, "set_mode")])
@pytest.mark.parametrize("spoken", [1, 2])
@pytest.mark.parametrize("watcher", [1, 2])
@pytest.mark.parametrize("make", [kept, loud])
async def test_every_other_client_is_told_once(
    make: Any, setter: int, watcher: int, spoken: int, what: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "sessions")
    at = gateway(make(spoken, store), tmp_path, versions=(spoken,))
    async with at as served, raw_http(served, setter) as left, raw_http(served, watcher) as right:
        session_id = await root_session(left)
        await joined(right, session_id)
        await left.post(setting(setter, what, session_id), session_id)
        assert "result" in await left.answer(9)
        told = await seen(right, session_id)
        if what == "title":
            assert [update.get("title") for update in told] == ["Named"]
        else:
            changed = "mode" if what == "set_mode" else what
            options = [update for update in told if update["sessionUpdate"] == "config_option_update"]
            expected = {"mode": "ask", "model": "small", "depth": "small", changed: VALUES[changed]}
            assert [values_in(update) for update in options] == [expected]
            modes = [update["currentModeId"] for update in told if update["sessionUpdate"] == "current_mode_update"]
            assert modes == (["plan"] if changed == "mode" and watcher == 1 else [])
        if what == "depth":  # the setter has its answer, and an update only where the agent sends one
            assert len(await seen(left, session_id)) == (1 if make is loud else 0)
    await store.close()


FORGETFUL = """
import json, sys
depth = {"type": "select", "id": "depth", "name": "Depth", "currentValue": "small",
         "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            reply = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
        case "session/new" | "session/load":
            depth["currentValue"] = "small"
            reply = {"sessionId": "s", "configOptions": [depth]}
        case "session/set_config_option":
            depth["currentValue"] = asked["params"]["value"]
            reply = {"configOptions": [depth]}
        case "session/prompt":
            reply = {"stopReason": "end_turn"}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply}), flush=True)
"""


async def test_options_that_a_load_has_changed_are_told_to_the_rest_and_so_is_the_change_after_it(
    tmp_path: Path,
) -> None:
    agents = AgentSource(spawn_source([sys.executable, "-c", FORGETFUL], cwd=None, env={}), (1,))
    async with gateway(agents, tmp_path) as served, raw_http(served, 2) as left, raw_http(served, 2) as right:
        session_id = await root_session(left)
        await left.post(setting(2, "depth", session_id), session_id)
        await left.answer(9)
        await joined(right, session_id)
        await left.post({**setting(2, "depth", session_id), "id": 10}, session_id)
        await left.answer(10)
        depths = [[values_in(one)["depth"] for one in await seen(raw, session_id)] for raw in (left, right)]
        assert depths == [["small"], ["large"]]


async def test_a_title_that_was_cleared_and_given_again_is_told_again() -> None:
    changes = SettingChanges()
    client_side: Any = object()
    events = [SessionInfoChanged(title="a"), SessionInfoChanged(title=None), SessionInfoChanged(title="a")]
    assert [changes.on_update(event, [client_side]) for event in events] == 3 * [[client_side]]
