"""A version 1 client has the mode twice, as a mode and as an option: what it sets as one it is told as the other."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, gateway, raw_http

from .test_setting_changes import TEXT, kept, loud, setting, values_in
from .test_shared_session import root_session

pytestmark = pytest.mark.anyio

OPTIONS = {"mode": "plan", "model": "small", "depth": "small"}


async def updates_after(client: RawHttp, session_id: str, how: str, id: int) -> list[Any]:
    """Set the mode; return what comes until a prompt behind it is answered: the options, or the mode, of each."""
    client.heard.clear()
    await client.post({**setting(1, how, session_id), "id": id}, session_id)
    assert "result" in await client.answer(id)
    params = {"sessionId": session_id, "prompt": [TEXT]}
    await client.post({"id": id + 1, "method": "session/prompt", "params": params}, session_id)
    await client.answer(id + 1)
    updates = [message["params"]["update"] for message in client.heard if message.get("method") == "session/update"]
    found = [values_in(one) if "configOptions" in one else one.get("currentModeId") for one in updates]
    return [one for one in found if one is not None]


@pytest.mark.parametrize(
    ("make", "spoken", "how", "expected"),
    [
        (kept, 2, "set_mode", [OPTIONS]),
        (kept, 1, "set_mode", [OPTIONS]),
        (kept, 2, "mode", ["plan"]),
        (kept, 1, "mode", ["plan", OPTIONS]),  # an agent of version 1 says it once more, in an update of its own
        # An agent that sends an update for every option that is set.
        (loud, 2, "set_mode", [OPTIONS, "plan"]),
        (loud, 1, "set_mode", [OPTIONS, "plan"]),
        (loud, 2, "mode", [OPTIONS, "plan"]),
        (loud, 1, "mode", [OPTIONS, "plan"]),
    ],
)
async def test_a_client_that_sets_the_mode_in_one_way_is_told_in_the_other(
    make: Any, spoken: int, how: str, expected: list[Any], tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "sessions")
    at = gateway(make(spoken, store), tmp_path, versions=(spoken,))
    async with at as served, raw_http(served, 1) as client:
        session_id = await root_session(client)
        assert await updates_after(client, session_id, how, 10) == expected
        assert await updates_after(client, session_id, how, 20) == []  # the same again changes nothing
    await store.close()
