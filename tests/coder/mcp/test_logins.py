"""Logins at a server of the official SDK's: discovery, registration, PKCE, tokens kept, renewed, refused, revoked."""

import asyncio
import json
import os
import socket
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.types import Receive, Scope, Send

from dragoman.coder.mcp.callback import LoginCallback
from dragoman.coder.mcp.logins import LoginFailed, LoginNeeded, McpLogin, McpLoginFile, login_key
from dragoman.coder.mcp.sdk.oauth import ClientChoice, new_login, revoke_login
from dragoman.vocabulary.requests import HttpHeader, McpHttp
from tests.support.mcp_servers import LONG, running
from tests.support.oauth_server import SCOPE, LoginServer, login_server

NO_CHOICE = ClientChoice()


@pytest.fixture
async def server() -> AsyncIterator[LoginServer]:
    async with login_server() as found:
        yield found


async def browse(url: str, callback: LoginCallback) -> None:
    """Do what a browser does whose user agrees."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(url, follow_redirects=True)
        assert answer.status_code == 200, answer.text


async def log_in(
    server: LoginServer, folder: Path, show: Any = browse, choice: ClientChoice = NO_CHOICE
) -> McpLoginFile:
    file = McpLoginFile(str(folder), server.url)
    assert await new_login(server.url, file, show, LONG, choice)
    return file


def kept(file: McpLoginFile) -> McpLogin:
    login = file.read()
    assert login is not None
    return login


@pytest.mark.requirement("MCP1")
async def test_a_login_goes_the_whole_way_and_a_session_uses_it(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path / "logins")
    (client,) = server.issuer.clients.values()
    (params,) = server.issuer.params
    assert (client.client_name, client.token_endpoint_auth_method) == ("Dragoman", "none")
    assert str(params.redirect_uri).startswith("http://127.0.0.1:")
    assert (params.resource, params.scopes) == (server.url, [SCOPE])  # RFC 8707
    assert len(params.code_challenge) == 43
    assert server.requests[:3] == [
        "POST /mcp",
        "GET /.well-known/oauth-protected-resource/mcp",
        "GET /.well-known/oauth-authorization-server",
    ]
    (path,) = (tmp_path / "logins").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    async with running(McpHttp("tickets", server.url), logins=tmp_path / "logins") as bench:
        assert (await bench.call("mcp__tickets__add", a=2, b=3)).text == "5"
    assert kept(file).tokens is not None
    assert repr(kept(file)) == "<McpLogin logged in>"


@pytest.mark.requirement("MCP1")
async def test_without_a_login_the_session_says_what_to_run_and_asks_nothing(
    server: LoginServer, tmp_path: Path
) -> None:
    async with running(McpHttp("tickets", server.url), logins=tmp_path, connected=False) as bench:
        await bench.until_state("needs login")
        assert bench.notices == [f"MCP server tickets: needs a login; run `dragoman mcp login {server.url}`"]
    assert set(server.requests) == {"POST /mcp"}
    assert not list(tmp_path.iterdir())


async def test_a_token_that_has_expired_is_renewed_and_kept(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path)
    before = kept(file)
    file.write(msgspec.structs.replace(before, expires_at=time.time() - 1))
    async with running(McpHttp("tickets", server.url), logins=tmp_path) as bench:
        assert (await bench.call("mcp__tickets__add", a=2, b=3)).text == "5"
    after = kept(file)
    assert server.issuer.refreshed == 1
    assert after.tokens != before.tokens
    assert after.expires_at is not None and after.expires_at > time.time() + 3000
    assert after.client == before.client


async def test_a_token_that_is_revoked_in_the_middle_is_renewed(server: LoginServer, tmp_path: Path) -> None:
    await log_in(server, tmp_path)
    async with running(McpHttp("tickets", server.url), logins=tmp_path) as bench:
        assert (await bench.call("mcp__tickets__add", a=1, b=1)).text == "2"
        server.issuer.revoke_all(refresh_too=False)
        assert (await bench.call("mcp__tickets__add", a=2, b=3)).text == "5"
        assert bench.notices == []
    assert server.issuer.refreshed == 1


async def test_a_login_that_is_revoked_in_the_middle_is_told_of_once(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path)
    async with running(McpHttp("tickets", server.url), logins=tmp_path) as bench:
        server.issuer.revoke_all()
        outcome = await bench.call("mcp__tickets__add", a=2, b=3)
        assert outcome.failed and "needs a new login" in outcome.text
        await bench.until_state("needs login")
        assert len(bench.notices) == 1
    assert kept(file).tokens is None  # a token that was refused is not sent again
    assert kept(file).client is not None


async def test_two_sessions_renew_a_token_once(server: LoginServer, tmp_path: Path) -> None:
    """A server that rotates refresh tokens takes the second use of one for a theft."""
    file = await log_in(server, tmp_path)
    file.write(msgspec.structs.replace(kept(file), expires_at=time.time() - 1))
    config = McpHttp("tickets", server.url)
    async with running(config, logins=tmp_path) as one, running(config, logins=tmp_path) as two:
        assert (await one.call("mcp__tickets__add", a=2, b=3)).text == "5"
        assert (await two.call("mcp__tickets__add", a=2, b=3)).text == "5"
    assert server.issuer.refreshed == 1


async def test_a_server_that_cannot_renew_now_costs_no_login(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path)
    before = msgspec.structs.replace(kept(file), expires_at=time.time() - 1)
    file.write(before)
    server.answers["/token"] = PlainTextResponse("down", status_code=503)
    async with running(McpHttp("tickets", server.url), logins=tmp_path, connected=False) as bench:
        await bench.until_state("failed")
        assert bench.notices == ["MCP server tickets: has a login that cannot be renewed now (HTTP status 503)"]
    assert kept(file) == before


async def test_a_second_login_uses_the_client_of_the_first(server: LoginServer, tmp_path: Path) -> None:
    await log_in(server, tmp_path)
    await log_in(server, tmp_path)
    assert len(server.issuer.clients) == 1
    assert len(server.issuer.params) == 2


async def test_where_the_port_of_the_first_login_is_taken_a_client_is_registered_anew(
    server: LoginServer, tmp_path: Path
) -> None:
    await log_in(server, tmp_path)
    port = server.issuer.params[0].redirect_uri.port
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", port)
    async with taken:
        await log_in(server, tmp_path)
    assert len(server.issuer.clients) == 2


async def test_a_client_that_the_operator_has_given_out_is_used(server: LoginServer, tmp_path: Path) -> None:
    from mcp.shared.auth import OAuthClientInformationFull

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    given = {
        "client_id": "given-out",
        "client_secret": "canary",
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
    }
    server.issuer.clients["given-out"] = OAuthClientInformationFull.model_validate(
        {**given, "token_endpoint_auth_method": "client_secret_post", "scope": SCOPE}
    )
    await log_in(server, tmp_path, choice=ClientChoice(client_id="given-out", client_secret="canary", port=port))
    assert list(server.issuer.clients) == ["given-out"]
    assert "POST /register" not in server.requests


# -- the callback --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MCP2")
async def test_an_answer_with_another_state_changes_nothing(server: LoginServer, tmp_path: Path) -> None:
    async def disturbed(url: str, callback: LoginCallback) -> None:
        async with httpx2.AsyncClient(trust_env=False) as other:
            for query in ({"code": "stolen", "state": "wrong"}, {"code": "stolen"}, {"error": "access_denied"}):
                answer = await other.get(f"{callback.url}?{urlencode(query)}")
                assert (answer.status_code, "Nothing was changed" in answer.text) == (400, True)
            assert (await other.post(callback.url)).status_code == 400
        await browse(url, callback)

    await log_in(server, tmp_path, disturbed)
    assert server.issuer.tokens


@pytest.mark.requirement("MCP2")
async def test_the_callback_listens_on_loopback_only_and_not_longer_than_the_login() -> None:
    async with LoginCallback() as callback:
        assert urlsplit(callback.url).hostname == "127.0.0.1"
        callback.expect("state")
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(callback.url).port)
        writer.write(b"GET /" + b"x" * 100_000)  # longer than any browser's
        assert await reader.read() == b""
        writer.close()
        assert callback.receive("http://127.0.0.1/callback?code=c&state=state&iss=i")
        answer = await callback.wait(LONG)
    assert answer == ("c", "state", "i")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", urlsplit(callback.url).port)


async def test_a_login_that_the_user_refuses_in_the_browser_keeps_nothing(server: LoginServer, tmp_path: Path) -> None:
    async def refuse(url: str, callback: LoginCallback) -> None:
        state = parse_qs(urlsplit(url).query)["state"][0]
        fields = {"error": "access_denied", "error_description": "no\x1b[2J thanks", "state": state}
        async with httpx2.AsyncClient(trust_env=False) as browser:
            assert "Not logged in" in (await browser.get(f"{callback.url}?{urlencode(fields)}")).text

    file = McpLoginFile(str(tmp_path), server.url)
    with pytest.raises(LoginFailed, match=r"refused the login: access_denied: no.* thanks") as failed:
        await new_login(server.url, file, refuse, LONG, NO_CHOICE)
    assert "\x1b" not in str(failed.value)
    assert file.read() is None


async def test_a_login_that_is_not_finished_ends_after_its_time(server: LoginServer, tmp_path: Path) -> None:
    async def ignore(url: str, callback: LoginCallback) -> None:
        pass

    with pytest.raises(LoginFailed, match=r"was not logged in to within 0\.01 s"):
        await new_login(server.url, McpLoginFile(str(tmp_path), server.url), ignore, 0.01, NO_CHOICE)


# -- addresses that a server names ---------------------------------------------------------------------------------


def metadata(server: LoginServer, **changes: object) -> JSONResponse:
    origin = server.url.removesuffix("/mcp")
    return JSONResponse(
        {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "response_types_supported": ["code"],
            **changes,
        }
    )


@pytest.mark.requirement("MCP3")
@pytest.mark.parametrize(
    "there",
    ["http://169.254.169.254/latest", "http://10.0.0.1/", "https://[fe80::1]/", "http://192.168.1.1:8080/"],
)
async def test_a_server_cannot_lead_a_login_into_another_network(
    server: LoginServer, tmp_path: Path, there: str
) -> None:
    server.answers["/.well-known/oauth-protected-resource/mcp"] = JSONResponse(
        {"resource": server.url, "authorization_servers": [there]}
    )
    with pytest.raises(LoginFailed, match=r"leads to .*, which is not a public address"):
        await log_in(server, tmp_path)
    server.answers.clear()
    for name in ("registration_endpoint", "token_endpoint"):
        server.answers["/.well-known/oauth-authorization-server"] = metadata(server, **{name: there})
        with pytest.raises(LoginFailed, match=r"leads to .*, which is not a public address"):
            await log_in(server, tmp_path)
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.requirement("MCP3")
@pytest.mark.parametrize("there", ["javascript:alert(1)//x", "file:///etc/passwd", "http://user:pw@127.0.0.1/"])
async def test_a_page_that_is_none_of_the_web_is_not_shown(server: LoginServer, tmp_path: Path, there: str) -> None:
    server.answers["/.well-known/oauth-authorization-server"] = metadata(server, authorization_endpoint=there)
    shown: list[str] = []

    async def show(url: str, callback: LoginCallback) -> None:
        shown.append(url)
        raise LoginFailed("was shown")

    with pytest.raises(LoginFailed):
        await log_in(server, tmp_path, show)
    # The SDK takes metadata with such an address for none, and asks the server itself.
    assert all(url.startswith(server.url.removesuffix("/mcp") + "/authorize?") for url in shown)


@pytest.mark.requirement("MCP3")
async def test_a_redirect_to_another_place_is_not_followed(server: LoginServer, tmp_path: Path) -> None:
    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        await RedirectResponse("http://169.254.169.254/token", status_code=307)(scope, receive, send)

    server.answers["/token"] = elsewhere
    with pytest.raises(LoginFailed, match="Token exchange failed"):
        await log_in(server, tmp_path)


async def test_metadata_without_end_is_cut(server: LoginServer, tmp_path: Path) -> None:
    server.answers["/.well-known/oauth-protected-resource/mcp"] = PlainTextResponse("[" * 3_000_000)
    with pytest.raises(LoginFailed):
        await log_in(server, tmp_path)


async def test_metadata_of_another_issuer_is_refused(server: LoginServer, tmp_path: Path) -> None:
    server.answers["/.well-known/oauth-authorization-server"] = metadata(server, issuer="https://other.example")
    with pytest.raises(LoginFailed, match="issuer mismatch"):
        await log_in(server, tmp_path)


async def test_a_resource_that_is_another_server_is_refused(server: LoginServer, tmp_path: Path) -> None:
    """A token for one server must not be asked for by another one."""
    origin = server.url.removesuffix("/mcp")
    server.answers["/.well-known/oauth-protected-resource/mcp"] = JSONResponse(
        {"resource": "https://bank.example/mcp", "authorization_servers": [origin]}
    )
    with pytest.raises(LoginFailed, match="does not match"):
        await log_in(server, tmp_path)


async def test_a_server_that_wants_no_login_says_so(tmp_path: Path) -> None:
    async with login_server() as server:

        async def welcome(scope: Scope, receive: Receive, send: Send) -> None:
            await JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}})(scope, receive, send)

        server.answers["/mcp"] = welcome
        assert not await new_login(server.url, McpLoginFile(str(tmp_path), server.url), browse, LONG, NO_CHOICE)


# -- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MCP1")
async def test_a_logout_revokes_both_tokens_and_deletes_the_file(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path)
    assert await revoke_login(server.url, file)
    assert (server.issuer.tokens, server.issuer.refresh_tokens) == ({}, {})
    assert file.read() is None
    assert list(tmp_path.iterdir()) == []


async def test_a_logout_deletes_the_file_also_where_the_server_is_gone(tmp_path: Path) -> None:
    async with login_server() as server:
        file = await log_in(server, tmp_path)
    assert not await revoke_login(server.url, file)
    assert file.read() is None


@pytest.mark.requirement("MCP1")
async def test_a_file_that_others_can_write_or_read_is_not_used(server: LoginServer, tmp_path: Path) -> None:
    file = await log_in(server, tmp_path)
    (path,) = tmp_path.glob("*.json")
    os.chmod(path, 0o644)
    with pytest.raises(LoginFailed, match="chmod 600"):
        file.read()
    async with running(McpHttp("tickets", server.url), logins=tmp_path, connected=False) as bench:
        await bench.until_state("failed")
        assert "chmod 600" in bench.notices[0]
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(LoginFailed):
        file.read()


async def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    file = McpLoginFile(str(tmp_path), "https://one.example/mcp")
    file.write(McpLogin(url=file.url, tokens={"access_token": "canary"}))
    (path,) = tmp_path.glob("*.json")
    for content in (b"{", b"[]", json.dumps({"url": "https://other.example/"}).encode()):
        path.write_bytes(content)
        with pytest.raises(LoginFailed, match=r"delete .*\.json and log in again"):
            file.read()


def test_a_login_belongs_to_an_address_however_it_is_written() -> None:
    assert login_key("https://me:pw@Tickets.Example:8443/mcp#top") == "https://tickets.example:8443/mcp"
    assert login_key("https://tickets.example") == "https://tickets.example/"


async def test_a_server_with_a_key_of_its_own_has_no_login(server: LoginServer, tmp_path: Path) -> None:
    await log_in(server, tmp_path)
    config = McpHttp("tickets", server.url, [HttpHeader("authorization", "Bearer wrong")])
    async with running(config, logins=tmp_path, connected=False) as bench:
        await bench.until_state("failed")
        assert bench.notices == ["MCP server tickets: answered with HTTP status 401"]


async def test_more_rights_are_a_matter_of_a_login(server: LoginServer, tmp_path: Path) -> None:
    await log_in(server, tmp_path)

    async def wants_more(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        challenge = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="more"'}
        await PlainTextResponse("no", status_code=403, headers=challenge)(scope, receive, send)

    server.answers["/mcp"] = wants_more
    async with running(McpHttp("tickets", server.url), logins=tmp_path, connected=False) as bench:
        await bench.until_state("needs login")
        assert "needs a login with more rights" in bench.notices[0]


def test_a_need_of_a_login_is_no_failed_one() -> None:
    assert not issubclass(LoginNeeded, LoginFailed)
