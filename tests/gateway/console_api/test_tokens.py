"""Tokens as an administrator has them on the console."""

import time

import pytest

from dragoman.gateway.logbook import Logbook
from dragoman.gateway.token_types import TokenLimits, digest_of
from tests.support.console_api import ConsoleApi
from tests.support.gateway import Served, http_client, raw_http
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("K70")
async def test_a_token_is_made_listed_without_its_secret_and_revoked_with_its_connections(served: Served) -> None:
    api = ConsoleApi(served)
    wish = {
        "name": "phone",
        "principal": "ada",
        "scopes": ["prompt", "read"],
        "maxMode": "safe",
        "workspaces": ["/srv"],
        "expires": round(time.time()) + 3600,
    }
    made = await api.answer("tokens", wish)
    listed = {token["name"]: token for token in (await api.answer("tokens"))["tokens"]}
    phone = listed["phone"]
    assert {name: phone[name] for name in wish} == {**wish, "scopes": ["read", "prompt"]}
    assert (phone["isOver"], phone["isOwn"], listed["default"]["isOwn"]) == (False, False, True)
    assert made["token"] not in str(listed)
    assert digest_of(made["token"].encode()) not in str(listed)
    made = await api.answer("tokens", {"name": "tablet", "scopes": ["read"]})
    async with raw_http(served, 2, token=made["token"]) as client:
        assert await api.answer("tokens/revoke", {"name": "tablet"}) == {"revoked": True}
        await until(lambda: client.connection not in served.hub.connections, "the end of its connection")
        assert (await client.post({"id": 3, "method": "session/list", "params": {}})).status_code == 401
    assert (await api.post("tokens/revoke", {"name": "tablet"})).status_code == 404


@pytest.mark.requirement("K70")
async def test_what_is_wrong_with_a_new_token_is_said_and_makes_none(served: Served) -> None:
    api = ConsoleApi(served)
    good = {"name": "phone", "scopes": ["read"]}
    changes: list[dict[str, object]] = [
        {"name": "default"},
        {"name": "a\nb"},
        {"name": ""},
        {"name": "x" * 65},
        {"scopes": []},
        {"scopes": ["root"]},
        {"principal": "\x00"},
        {"expires": 1},
        {"expires": 1e300},
        {"digest": "0" * 64},
    ]
    for change in changes:
        assert (await api.post("tokens", {**good, **change})).status_code == 400, change
    assert [token["name"] for token in (await api.answer("tokens"))["tokens"]] == ["default"]


@pytest.mark.requirement("K70")
async def test_an_administrator_with_limits_makes_no_token_that_reaches_further(served: Served) -> None:
    for limits in (TokenLimits(max_mode="safe"), TokenLimits(workspaces=("/srv",))):
        token = served.tokens.make("narrow", ("read", "prompt", "admin"), limits=limits)
        api = ConsoleApi(served, token)
        assert (await api.post("tokens", {"name": "wide", "scopes": ["admin"]})).status_code == 403
        assert (await api.get("tokens")).status_code == 403
        base = served.http.removesuffix("/acp")
        async with http_client() as client:
            me = await client.post(f"{base}/me", headers={"Authorization": f"Bearer {token}", "X-Dragoman": "1"})
        assert me.json()["administers"] is False
        served.tokens.revoke("narrow")


async def test_who_made_and_revoked_a_token_is_in_the_log(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(Logbook, "info", lambda self, event, **fields: lines.append((event, fields)))
    api = ConsoleApi(served)
    made = await api.answer("tokens", {"name": "phone", "scopes": ["read"]})
    await api.answer("tokens/revoke", {"name": "phone"})
    assert [line for line in lines if line[0].startswith("token_")] == [
        ("token_made", {"token": "phone", "scopes": ("read",), "principal": "default"}),
        ("token_revoked", {"token": "phone", "principal": "default"}),
    ]
    assert made["token"] not in str(lines)
