"""Who may ask what of the server beside ACP: every path against every kind of token, and what a browser adds."""

import time
from pathlib import Path
from typing import Final

import pytest

from dragoman.gateway.console_api.routes import ConsoleSettings
from dragoman.gateway.token_types import Scope, TokenLimits
from tests.support.console_api import OURS, ConsoleApi
from tests.support.gateway import Served, counting, gateway, http_client, raw_http

pytestmark = pytest.mark.anyio

READERS: Final = {"read", "prompt", "limited admin", "admin"}
WORKERS: Final = {"prompt", "limited admin", "admin"}
# Not those that are held to folders: a webhook tells of all sessions of a principal.
LISTENERS: Final = {"prompt", "admin"}
OPERATORS: Final = {"limited admin", "admin", "admin alone"}
OWNERS: Final = {"admin", "admin alone"}
# GET, or POST with a body that is well formed and leads to nothing.
GETS: Final = {
    "activity": READERS,
    "folders": WORKERS,
    "shares": WORKERS,
    "webhooks": LISTENERS,
    "agents": OPERATORS,
    "nodes": OPERATORS,
    "principals": OPERATORS,
    "limits": OPERATORS,
    "tokens": OWNERS,
    "decisions": OWNERS,
}
POSTS: Final[dict[str, tuple[set[str], dict[str, object]]]] = {
    "shares": (WORKERS, {"sessionId": "none", "expires": 1}),
    "shares/revoke": (WORKERS, {"name": "none"}),
    "webhooks": (LISTENERS, {"url": "nothing"}),
    "webhooks/remove": (LISTENERS, {"id": "none"}),
    "webhooks/try": (LISTENERS, {"id": "none"}),
    "tokens": (OWNERS, {"name": "x", "scopes": []}),
    "tokens/revoke": (OWNERS, {"name": "none"}),
}
SCOPES: Final[dict[str, tuple[Scope, ...]]] = {
    "read": ("read",),
    "prompt": ("read", "prompt"),
    "limited admin": ("read", "prompt", "admin"),
    "admin": ("read", "prompt", "admin"),
    "admin alone": ("admin",),
}


def tokens_of(served: Served) -> dict[str, str]:
    """A token of each kind, by that."""
    limits = {"limited admin": TokenLimits(workspaces=("/",))}
    return {kind: served.tokens.make(kind, scopes, limits=limits.get(kind)) for kind, scopes in SCOPES.items()}


@pytest.mark.requirement("K60")
async def test_every_path_is_open_to_the_tokens_it_is_for_and_to_no_other(served: Served) -> None:
    for kind, token in tokens_of(served).items():
        api = ConsoleApi(served, token)
        for path, allowed in GETS.items():
            expected = 200 if kind in allowed else 403
            assert (kind, path, (await api.get(path)).status_code) == (kind, path, expected)
        for path, (allowed, wish) in POSTS.items():
            status = (await api.post(path, wish)).status_code
            # What is wished for is wrong, or not there: it was looked at.
            assert (status in (400, 404)) if kind in allowed else (status == 403), (kind, path, status)


@pytest.mark.requirement("K60")
async def test_a_share_link_opens_no_path(served: Served) -> None:
    async with raw_http(served, 2) as client:
        session = await client.session()
    wish = {"sessionId": session, "expires": time.time() + 3600}
    link = ConsoleApi(served, (await ConsoleApi(served).answer("shares", wish))["token"])
    for path in GETS:
        assert (path, (await link.get(path)).status_code) == (path, 403)
    for path, (_, other) in POSTS.items():
        assert (path, (await link.post(path, other)).status_code) == (path, 403)


@pytest.mark.requirement("K61")
async def test_no_path_answers_without_our_header_without_a_login_or_for_another_page(served: Served) -> None:
    base = served.http.removesuffix("/acp")
    bearer = {"Authorization": f"Bearer {served.token}"}
    async with http_client() as client:
        logged_in = await client.post(f"{base}/login", headers=bearer | OURS | {"Origin": base})
        cookie = {"Cookie": logged_in.headers["set-cookie"].partition(";")[0]}
        key = {"X-Dragoman-Page-Key": logged_in.json()["pageKey"]}
        same = {"Sec-Fetch-Site": "same-origin"}
    async with http_client() as client:  # one that sends no cookie by itself
        for method, path in (*(("GET", path) for path in GETS), *(("POST", path) for path in POSTS)):
            address = f"{base}/api/{path}"

            async def status(*headers: dict[str, str], method: str = method, address: str = address) -> int:
                merged = {name: value for one in headers for name, value in one.items()}
                return (await client.request(method, address, headers=merged, json={})).status_code

            assert await status(OURS) == 401
            assert await status(bearer) == 403  # a form of another page can be sent by no token, but without the header
            assert await status(cookie, same, OURS) == 401  # without the page key
            assert await status(cookie, key, OURS) == 403  # the browser does not say whose page asks
            assert await status(cookie, key, OURS, {"Origin": "http://elsewhere.example"}) == 403
            assert await status(cookie, key, OURS, same, {"Origin": base}) in (200, 400)


async def test_a_body_that_is_wrong_or_too_large_is_refused(served: Served) -> None:
    api = ConsoleApi(served)
    for path, (_, wish) in POSTS.items():
        assert (await api.post(path, {**wish, "more": 1})).status_code == 400, path
        assert (await api.post(path, [])).status_code == 400, path
        assert (await api.post(path, {"name": "x" * 70_000})).status_code == 413, path
    assert (await api.get("folders", path="relative")).status_code == 400
    assert (await api.get("nothing")).status_code == 404
    assert (await api.post("activity", {})).status_code == 405


async def test_a_server_without_sharing_has_no_path_for_it(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, console=ConsoleSettings(sharing=False)) as served:
        api = ConsoleApi(served)
        assert (await api.get("shares")).status_code == 404
        assert (await api.post("shares", {"sessionId": "x", "expires": 1})).status_code == 404
        assert (await api.get("tokens")).status_code == 404  # nothing checks the limits of new ones here
        assert (await api.get("activity")).status_code == 200
