"""A share link shows one session until its date: it reaches nothing else, changes nothing, and can be ended."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from dragoman.gateway import shared_session
from dragoman.gateway.agent_source import AgentSource, in_process
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.console_api.shares import NewShare, ShareLinks
from dragoman.gateway.token_types import TokenIdentity, TokenLimits
from dragoman.transports.contract import Transport
from tests.support.console_api import OURS, ConsoleApi, asking
from tests.support.gateway import RawHttp, Served, gateway, http_client, raw_http
from tests.support.messages import Message
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


async def shared(served: Served, session: str, token: str = "", seconds: float = 3600) -> dict[str, Any]:
    """A link to a session."""
    wish = {"sessionId": session, "expires": time.time() + seconds, "label": "for Ada"}
    made: dict[str, Any] = await ConsoleApi(served, token).answer("shares", wish)
    return made


async def say(client: RawHttp, session: str, id: int = 50) -> None:
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "do not ask"}]}
    await client.post({"id": id, "method": "session/prompt", "params": prompt}, session)
    await until(lambda: any("nothing was asked" in str(one) for one in client.heard))


async def ask(client: RawHttp, id: int, method: str, session: str = "", **params: Any) -> Message:
    """The answer to a request, whatever it is."""
    answer = await client.post({"id": id, "method": method, "params": params}, session)
    if answer.status_code != 202:
        return {"status": answer.status_code}
    return await client.answer(id)


async def resume(client: RawHttp, id: int, session: str, cwd: str = "/") -> Message:
    params = {"sessionId": session, "cwd": cwd, "mcpServers": [], "replayFrom": {"type": "start"}}
    return await ask(client, id, "session/resume", session, **params)


@pytest.mark.requirement("K64")
async def test_a_link_shows_its_session_and_follows_it(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        await say(owner, session)
        link = (await shared(served, session))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            assert await viewer.open(session) == 200
            assert "result" in await resume(viewer, 2, session)
            await until(lambda: any("nothing was asked" in str(one) for one in viewer.heard))
            before = len(viewer.heard)
            await say(owner, session, 51)
            await until(lambda: len(viewer.heard) > before)


@pytest.mark.requirement("K64")
async def test_a_link_reaches_no_other_session_and_no_list(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session, other = await owner.session(1), await owner.session(2)
        link = (await shared(served, session))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            unknown = await resume(viewer, 2, "sess_none")
            foreign = await resume(viewer, 3, other)
            assert foreign["error"]["code"] == unknown["error"]["code"]
            assert foreign["error"]["message"].replace(other, "ID") == unknown["error"]["message"].replace(
                "sess_none", "ID"
            )
            assert await viewer.open(other) == 404
            refused = await ask(viewer, 10, "session/list")
            assert refused["error"]["data"]["reason"] == "scope"


@pytest.mark.requirement("K64")
async def test_a_link_writes_nothing_and_answers_nothing(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        link = (await shared(served, session))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            assert await viewer.open(session) == 200
            assert "result" in await resume(viewer, 2, session)
            text = [{"type": "text", "text": "go"}]
            wishes: list[tuple[str, dict[str, Any]]] = [
                ("session/prompt", {"prompt": text}),
                ("session/delete", {}),
                ("session/close", {}),
                ("session/archive", {}),
                ("session/set_title", {"title": "mine"}),
                ("session/fork", {"cwd": "/", "mcpServers": []}),
                ("session/set_config_option", {"configId": "mode", "type": "id", "value": "ask"}),
                ("_session/rewind", {}),
            ]
            for number, (method, params) in enumerate(wishes, 20):
                answer = await ask(viewer, number, method, session, sessionId=session, **params)
                assert "error" in answer, (method, answer)
            new = await ask(viewer, 40, "session/new", cwd="/", mcpServers=[])
            assert new["error"]["data"]["reason"] == "scope"
            # A question goes to those who may answer, and to no link.
            await owner.post(
                {"id": 60, "method": "session/prompt", "params": {"sessionId": session, "prompt": text}}, session
            )
            await until(lambda: any(one.get("method") == "session/request_permission" for one in owner.heard))
            await viewer.post({"method": "session/cancel", "params": {"sessionId": session}}, session)
            assert "result" in await resume(viewer, 61, session)  # behind the cancel
            assert served.hub.sessions[session].has_questions
            assert [one for one in viewer.heard if one.get("method") == "session/request_permission"] == []


@pytest.mark.requirement("K65")
async def test_a_link_ends_when_it_is_revoked_and_its_readers_with_it(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        api = ConsoleApi(served)
        made = await shared(served, session)
        (listed,) = (await api.answer("shares"))["shares"]
        assert (listed["name"], listed["sessionId"], listed["label"]) == (made["name"], session, "for Ada")
        assert made["token"] not in str(listed)
        async with raw_http(served, 2, token=made["token"]) as viewer:
            assert "result" in await resume(viewer, 2, session)
            assert await api.answer("shares/revoke", {"name": made["name"]}) == {"revoked": True}
            assert (await viewer.post({"id": 3, "method": "session/list", "params": {}})).status_code == 401
            await until(lambda: viewer.connection not in served.hub.connections, "the end of the viewer's connection")
        assert (await api.answer("shares"))["shares"] == []


@pytest.mark.requirement("K65")
async def test_a_link_ends_at_its_date(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.console_api.shares._SHORTEST_SECONDS", 0.0)
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        now = time.time()
        link = (await shared(served, session, seconds=1000))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            assert "result" in await resume(viewer, 2, session)
            monkeypatch.setattr(served.tokens, "_clock", lambda: now + 2000)
            assert (await viewer.post({"id": 3, "method": "session/list", "params": {}})).status_code == 401


@pytest.mark.requirement("K65")
async def test_a_link_ends_with_the_token_it_was_made_with(served: Served) -> None:
    laptop, phone = (served.token_of(name, ("read", "prompt"), "ada") for name in ("laptop", "phone"))
    async with raw_http(served, 2, token=laptop) as owner:
        session = await owner.session()
        links = [(await shared(served, session, token))["token"] for token in (laptop, phone)]
        assert served.tokens.revoke("laptop")
        assert [await status_of(served, link) for link in links] == [401, 200]


async def test_a_token_that_is_revoked_while_it_makes_a_link_makes_none(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = served.token_of("laptop", ("prompt",))
    check_own = ShareLinks._check_own

    async def and_revoke(links: ShareLinks, wish: NewShare, identity: TokenIdentity) -> None:
        await check_own(links, wish, identity)
        served.tokens.revoke("laptop")

    monkeypatch.setattr(ShareLinks, "_check_own", and_revoke)
    async with raw_http(served, 2, token=token) as owner:
        wish = {"sessionId": await owner.session(), "expires": time.time() + 3600}
        assert (await ConsoleApi(served, token).post("shares", wish)).status_code == 401
    assert all(one.share is None for one in served.tokens.all())


async def status_of(served: Served, token: str) -> int:
    async with http_client() as client:
        base = served.http.removesuffix("/acp")
        return (await client.post(f"{base}/me", headers=OURS | {"Authorization": f"Bearer {token}"})).status_code


@pytest.mark.requirement("K66")
async def test_only_who_has_a_session_shares_it_and_ends_its_links(served: Served) -> None:
    bob = ConsoleApi(served, served.token_of("bob", ("read", "prompt", "admin")))
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        made = await shared(served, session)
        for wish in ({"sessionId": session}, {"sessionId": "sess_none"}):
            refused = await bob.post("shares", {**wish, "expires": time.time() + 3600})
            assert (refused.status_code, refused.json()["error"][:37]) == (404, "There is no such session of yours, or")
        assert (await bob.answer("shares"))["shares"] == []
        assert (await bob.post("shares/revoke", {"name": made["name"]})).status_code == 404
        assert await status_of(served, made["token"]) == 200


@pytest.mark.requirement("K66")
async def test_a_token_with_folders_sees_no_link_to_a_session_elsewhere(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        made = await shared(served, session)
    limits = TokenLimits(workspaces=("/nowhere",))
    narrow = ConsoleApi(served, served.tokens.make("narrow", ("read", "prompt"), "default", limits=limits))
    assert (await narrow.answer("shares"))["shares"] == []
    assert (await narrow.post("shares/revoke", {"name": made["name"]})).status_code == 404
    assert (await narrow.post("shares", {"sessionId": session, "expires": time.time() + 3600})).status_code == 404


async def test_a_link_has_a_date_that_is_near_and_not_behind_that_of_its_token(served: Served) -> None:
    short = served.tokens.make("short", ("read", "prompt"), "default", expires=time.time() + 1000)
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        for seconds in (-1.0, 0.0, 91 * 86_400.0, float(10**12)):
            wish = {"sessionId": session, "expires": time.time() + seconds}
            assert (await ConsoleApi(served).post("shares", wish)).status_code == 400, seconds
        assert (await ConsoleApi(served).post("shares", {"sessionId": session})).status_code == 400
        wish = {"sessionId": session, "expires": time.time() + 2000}
        refused = await ConsoleApi(served, short).post("shares", wish)
        assert "outlive" in refused.json()["error"]


async def test_links_are_bounded_and_those_that_are_over_make_room(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.console_api.shares.SHARES_EACH", 2)
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        for _ in range(2):
            await shared(served, session)
        wish = {"sessionId": session, "expires": time.time() + 3600}
        assert (await ConsoleApi(served).post("shares", wish)).status_code == 409


@pytest.mark.requirement("K66")
async def test_readers_by_links_leave_room_for_the_owner(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_session, "SHARE_SUBSCRIBERS", 1)
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        link = (await shared(served, session))["token"]
        async with raw_http(served, 2, token=link) as first, raw_http(served, 2, token=link) as second:
            assert "result" in await resume(first, 2, session)
            assert "Too many watch" in (await resume(second, 2, session))["error"]["message"]
            async with raw_http(served, 2) as another:
                assert "result" in await resume(another, 2, session, os.getcwd())


@pytest.mark.requirement("K66")
async def test_the_page_of_a_link_learns_its_session_and_nothing_of_the_server(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = await owner.session()
        made = await shared(served, session)
        base = served.http.removesuffix("/acp")
        headers = OURS | {"Authorization": f"Bearer {made['token']}", "Origin": base}
        async with http_client() as client:
            me = (await client.post(f"{base}/me", headers=headers)).json()
            logged_in = await client.post(f"{base}/login", headers=headers)
        assert me == {
            "name": "",
            "scopes": ["read"],
            "share": {"sessionId": session, "agent": "", "label": "for Ada"},
        }
        assert "-share=" in logged_in.headers["set-cookie"]
        assert await cookie_status(served, logged_in) == 200


async def cookie_status(served: Served, logged_in: httpx2.Response) -> int:
    """The status of a request with a login, beside the cookie of another login of the same browser."""
    base = served.http.removesuffix("/acp")
    bearer = {"Authorization": f"Bearer {served.token}"}
    async with http_client() as client:
        own = await client.post(f"{base}/login", headers=OURS | bearer | {"Origin": base})
        cookies = "; ".join(one.headers["set-cookie"].partition(";")[0] for one in (own, logged_in))
        headers = OURS | {"Origin": base, "Cookie": cookies, "X-Dragoman-Page-Key": logged_in.json()["pageKey"]}
        answer = await client.post(f"{base}/me", headers=headers)
        assert "share" in answer.json()
        headers["X-Dragoman-Page-Key"] = own.json()["pageKey"]
        assert (await client.post(f"{base}/me", headers=headers)).json()["name"] == "default"
    return answer.status_code


@pytest.mark.requirement("K66")
async def test_a_link_is_shown_by_the_agent_of_the_owner_and_starts_none_of_its_own(tmp_path: Path) -> None:
    opened: list[str] = []
    inner = in_process(asking(tmp_path / "sessions").serve, lambda error: None)

    def open_agent(principal: str) -> Transport:
        opened.append(principal)
        return inner(principal)

    async with gateway(AgentSource(open_agent, (1, 2)), tmp_path) as served:
        ada = served.token_of("laptop", ("read", "prompt"), "ada")
        async with raw_http(served, 2, token=ada) as owner:
            session = await owner.session()
            link = (await shared(served, session, ada))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            assert "result" in await resume(viewer, 2, session)
            assert served.hub.sessions[session].principal == "ada"
    assert opened == ["ada", "ada"]


async def test_a_link_is_read_on_a_server_with_folders_without_naming_one(tmp_path: Path) -> None:
    ceilings = Ceilings(TokenLimits(workspaces=(os.path.realpath(os.getcwd()),)))
    async with (
        gateway(asking(tmp_path / "sessions"), tmp_path, ceilings=ceilings) as served,
        raw_http(served, 2) as owner,
    ):
        session = await owner.session()
        link = (await shared(served, session))["token"]
        async with raw_http(served, 2, token=link) as viewer:
            assert "result" in await resume(viewer, 2, session)


@pytest.mark.requirement("K66")
async def test_a_reader_by_a_link_that_is_behind_does_not_make_the_agent_wait(served: Served) -> None:
    async with raw_http(served, 2) as owner:
        session = served.hub.sessions[await owner.session()]
        subscribers = list(session.subscribers)
        for is_share, waits in ((True, False), (False, True)):
            # A client whose stream is full, and whose reader does not read on.
            stream = SimpleNamespace(is_behind=True, reader=object())
            streams = SimpleNamespace(buffer_of=lambda _, stream=stream: stream)
            behind: Any = SimpleNamespace(is_share=is_share, connection=SimpleNamespace(streams=streams))
            session.subscribers[:] = [behind]
            assert session.is_behind == waits
        session.subscribers[:] = subscribers
