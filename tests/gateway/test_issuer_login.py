"""People of an OpenID issuer at a real gateway: programs with its tokens, and the page's login with a code."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from dragoman import connect as open_client
from dragoman.gateway import issuer_login as login_module
from dragoman.gateway.issuer_jwt import LEEWAY_SECONDS
from dragoman.gateway.issuer_settings import IssuerSettings
from dragoman.gateway.token_types import digest_of
from tests.support.gateway import RawHttp, Served, counting, gateway, http_client
from tests.support.messages import hello
from tests.support.openid_issuer import CLIENT, SECRET, OpenIdIssuer, openid_issuer
from tests.support.waiting import until

from .sockets import session

pytestmark = pytest.mark.anyio


class Team(NamedTuple):
    """A gateway that believes an issuer."""

    issuer: OpenIdIssuer
    served: Served
    client: httpx2.AsyncClient
    folder: Path

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.served.server.port}"

    async def bearer(self, token: str) -> httpx2.Response:
        """What `/acp` answers to a program with this token."""
        return await self.client.post(self.served.http, json=hello(1), headers={"Authorization": f"Bearer {token}"})

    async def post(self, path: str, body: object = None, **headers: str) -> httpx2.Response:
        """As the page asks."""
        sent = {"Origin": self.origin, "X-Dragoman": "1"} | {n.replace("_", "-"): v for n, v in headers.items()}
        content = b"" if body is None else msgspec.json.encode(body)
        return await self.client.post(self.origin + path, headers=sent, content=content)

    async def begin(self) -> dict[str, str]:
        answer = await self.post("/login/oidc/start")
        assert answer.status_code == 200, answer.text
        begun: dict[str, str] = answer.json()
        return begun

    def come_back(self, begun: dict[str, str]) -> dict[str, str]:
        """What the page hands in after the issuer has logged its person in."""
        address, query = self.issuer.log_in(urlsplit(begun["url"]).query).split("?")
        assert address == f"{self.origin}/login/oidc"
        return {name: values[0] for name, values in parse_qs(query).items()} | {"binding": begun["binding"]}

    async def log_in(self) -> httpx2.Response:
        return await self.post("/login/oidc/finish", self.come_back(await self.begin()))


def halves_of(answer: httpx2.Response) -> dict[str, str]:
    """The two halves of a login, as headers."""
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"Cookie": cookie, "X_Dragoman_Page_Key": answer.json()["pageKey"]}


@asynccontextmanager
async def team_of(folder: Path, *, methods: tuple[str, ...] = (), **settings: Any) -> AsyncIterator[Team]:
    async with openid_issuer() as issuer, http_client() as client:
        issuer.auth_methods = list(methods) or issuer.auth_methods
        issuer.secret = settings.get("client_secret", issuer.secret)
        rules: dict[str, Any] = {"developers": ("read", "prompt"), "operators": ("read", "prompt", "admin")}
        given = {"issuer": issuer.url, "client_id": CLIENT, "client_secret": SECRET, "scopes": rules} | settings
        async with gateway(counting(3), folder, issuer=IssuerSettings(**given), logins=folder) as served:
            yield Team(issuer, served, client, folder)


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Team]:
    async with team_of(tmp_path) as running:
        yield running


# -- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K31")
async def test_a_token_of_the_issuer_opens_a_session_for_its_principal(team: Team) -> None:
    raw = RawHttp(team.served, team.client, team.issuer.token())
    await raw.hello(1)
    answer = await raw.post({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
    assert answer.status_code == 202
    (client_side,) = team.served.hub.connections.values()
    assert client_side.connection.token_identity[:3] == ("oidc:ada", "oidc:ada", ("read", "prompt"))


@pytest.mark.requirement("K31")
async def test_a_token_of_the_issuer_that_does_not_count_is_refused_and_says_why(team: Team) -> None:
    for token, reason in (
        (team.issuer.token(aud="other"), "it is for another audience"),
        (team.issuer.token(iss="https://evil.example.org"), "it is of another issuer"),
        (team.issuer.token(exp=int(time.time()) - 3600), "it has expired"),
        (team.issuer.token(head={"kid": "made-up"}), "its key is none of its issuer's"),
        (OpenIdIssuer(team.issuer.url).token(), "its signature is not one of its issuer"),
        ("a.b.c", "it is no JSON Web Token"),
    ):
        answer = await team.bearer(token)
        assert answer.status_code == 401
        assert answer.json() == {"error": f"The token does not count here: {reason}."}


@pytest.mark.requirement("K32")
async def test_groups_decide_what_a_token_may_do(team: Team) -> None:
    for groups, status in ((["operators"], 200), (["developers"], 403), ([], 403)):
        headers = {"Authorization": f"Bearer {team.issuer.token(groups=groups)}"}
        assert (await team.client.get(f"{team.origin}/metrics", headers=headers)).status_code == status


@pytest.mark.requirement("K32")
async def test_a_person_without_a_rule_is_refused_where_there_is_no_default(tmp_path: Path) -> None:
    async with team_of(tmp_path, default_scopes=()) as team:
        answer = await team.bearer(team.issuer.token(groups=["sales"]))
        assert answer.status_code == 401
        assert "nothing here is granted to it" in answer.json()["error"]


async def test_programs_may_have_an_audience_of_their_own(tmp_path: Path) -> None:
    async with team_of(tmp_path, audiences=("https://agents.example.org",)) as team:
        assert (await team.bearer(team.issuer.token(aud=["x", "https://agents.example.org"]))).status_code == 200
        assert (await team.bearer(team.issuer.token(aud=CLIENT))).status_code == 401


@pytest.mark.requirement("K32")
async def test_principals_of_the_issuer_and_of_tokens_do_not_meet(team: Team) -> None:
    token = team.served.token_of("laptop", principal="ada")
    raw = RawHttp(team.served, team.client, token)
    await raw.hello(1)
    headers = {"Authorization": f"Bearer {team.issuer.token()}", "Acp-Connection-Id": raw.connection}
    answer = await team.client.post(team.served.http, json={"jsonrpc": "2.0", "method": "x"}, headers=headers)
    assert answer.status_code == 404


@pytest.mark.requirement("K33")
async def test_while_the_issuer_is_away_its_people_wait_and_tokens_go_on(tmp_path: Path) -> None:
    async with openid_issuer() as issuer, http_client() as client:
        issuer.answers = {"/keys": (500, b"")}
        settings = IssuerSettings(issuer=issuer.url, client_id=CLIENT)
        async with gateway(counting(1), tmp_path, issuer=settings) as served:
            team = Team(issuer, served, client, tmp_path)
            assert (await team.bearer(issuer.token())).status_code == 503
            assert (await team.post("/login/oidc/start")).status_code == 503
            assert (await team.bearer(served.token)).status_code == 200


def ends_soon() -> int:
    """The end of a token that counts for a second or two more."""
    return int(time.time()) + 2 - LEEWAY_SECONDS


@pytest.mark.requirement("K34")
@pytest.mark.usefixtures("_often_swept")
async def test_streams_end_with_the_token_and_the_newest_one_of_a_connection_counts(team: Team) -> None:
    raw = RawHttp(team.served, team.client, team.issuer.token(exp=ends_soon()))
    await raw.hello(1)
    first = {"Authorization": f"Bearer {team.issuer.token(exp=ends_soon())}"}
    fresh = {"Authorization": f"Bearer {team.issuer.token()}"}
    async with connect(team.served.ws, additional_headers=first, proxy=None) as socket:
        name, _ = await session(socket, 1)
        body = {"jsonrpc": "2.0", "method": "x"}
        headers = fresh | {"Acp-Connection-Id": raw.connection}
        assert (await team.client.post(team.served.http, json=body, headers=headers)).status_code == 202
        await asyncio.wait_for(socket.wait_closed(), 20)
    assert socket.close_code == 1001
    assert raw.connection in team.served.hub.connections
    assert (await team.client.post(team.served.http, json=hello(1), headers=first)).status_code == 401
    other = {"Authorization": f"Bearer {team.issuer.token(sub='eve')}", "Acp-Connection-Id": name}
    with pytest.raises(InvalidStatus):
        await connect(team.served.ws, additional_headers=other, proxy=None)
    async with connect(team.served.ws, additional_headers=fresh | {"Acp-Connection-Id": name}, proxy=None):
        pass


@pytest.mark.requirement("K34")
@pytest.mark.usefixtures("_often_swept")
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_client_goes_on_with_the_token_that_its_file_has_next(team: Team, scheme: str) -> None:
    file = team.folder / "token"
    file.write_text(team.issuer.token(exp=ends_soon()))
    file.chmod(0o600)
    old = file.read_text()
    url = f"{scheme}://127.0.0.1:{team.served.server.port}"
    async with open_client(url, token_file=file) as client:
        conversation = await client.new_session("/")
        await conversation.ask("go")
        await until(
            lambda: team.served.server._guard._grants.find_bearer(digest_of(old.encode())) is None, "the token's end"
        )
        renew = asyncio.get_running_loop().call_later(0.3, file.write_text, team.issuer.token())
        answer = await conversation.ask("go")
        renew.cancel()
    assert answer.stop_reason == "end_turn"


@pytest.mark.requirement("K33")
async def test_a_token_whose_key_was_taken_back_counts_no_more(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.gateway import issuer as issuer_module

    monkeypatch.setattr(issuer_module, "REFETCH_SECONDS", 0.0)
    old = team.issuer.token()
    assert (await team.bearer(old)).status_code == 200
    team.issuer.rotate("second")
    assert (await team.bearer(team.issuer.token())).status_code == 200
    assert (await team.bearer(old)).status_code == 401


# -- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K35")
async def test_a_person_logs_in_with_a_code_and_has_a_login_like_any_other(team: Team) -> None:
    assert (await team.post("/login/ways")).json() == {"issuer": "127.0.0.1"}
    index = await team.client.get(f"{team.origin}/login/oidc?code=x&state=y", headers={"Sec-Fetch-Site": "cross-site"})
    assert (index.status_code, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
    answer = await team.log_in()
    assert answer.status_code == 200, answer.text
    me = answer.json()
    assert (me["name"], me["scopes"]) == ("oidc:ada", ["read", "prompt"])
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    login = halves_of(answer)
    assert (await team.post("/me", **login)).json()["name"] == "oidc:ada"
    assert (await team.post("/logout", **login)).status_code == 204
    assert (await team.post("/me", **login)).status_code == 401


@pytest.mark.requirement("K35")
@pytest.mark.parametrize(("secret", "method"), [(SECRET, "client_secret_post"), ("", "none")])
async def test_a_client_shows_its_secret_as_its_issuer_wants_it(tmp_path: Path, secret: str, method: str) -> None:
    async with team_of(tmp_path, client_secret=secret, methods=(method,)) as team:
        assert (await team.log_in()).status_code == 200


@pytest.mark.requirement("K35")
async def test_a_login_that_was_not_begun_in_this_tab_is_refused_before_the_issuer_is_asked(team: Team) -> None:
    begun = await team.begin()
    other = await team.begin()
    back = team.come_back(begun)
    for wrong in (
        {"binding": other["binding"]},
        {"binding": ""},
        {"state": parse_qs(urlsplit(other["url"]).query)["state"][0]},
        {"state": back["state"][:-1] + ("A" if back["state"][-1] != "A" else "B")},
        {"state": ""},
        {"code": ""},
    ):
        assert (await team.post("/login/oidc/finish", back | wrong)).status_code == 403, wrong
    assert (await team.post("/login/oidc/finish", [back])).status_code == 400
    assert "/token" not in team.issuer.requests
    assert (await team.post("/login/oidc/finish", back)).status_code == 200


@pytest.mark.requirement("K35")
async def test_a_code_counts_once_and_only_with_its_own_verifier(team: Team) -> None:
    first, second = team.come_back(await team.begin()), team.come_back(await team.begin())
    assert (await team.post("/login/oidc/finish", first | {"code": second["code"]})).status_code == 403
    assert (await team.post("/login/oidc/finish", first)).status_code == 200
    assert (await team.post("/login/oidc/finish", first)).status_code == 403


@pytest.mark.requirement("K35")
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "other"}, "it was made for another login"),
        ({"nonce": None}, "it was made for another login"),
        ({"aud": "other"}, "it is for another audience"),
        ({"aud": [CLIENT, "other"]}, "it is for another audience"),
        ({"azp": "other"}, "it is for another audience"),
        ({"iss": "https://evil.example.org"}, "it is of another issuer"),
        ({"exp": 1}, "it has expired"),
    ],
)
async def test_an_id_token_that_is_not_of_this_login_is_refused(team: Team, claims: Any, reason: str) -> None:
    team.issuer.claims = claims
    answer = await team.log_in()
    assert (answer.status_code, answer.json()) == (403, {"error": f"This login does not count here: {reason}."})


@pytest.mark.requirement("K35")
async def test_a_code_of_another_issuer_is_not_sent_to_ours(team: Team) -> None:
    back = team.come_back(await team.begin())
    answer = await team.post("/login/oidc/finish", back | {"iss": "https://evil.example.org"})
    assert (answer.status_code, "/token" in team.issuer.requests) == (403, False)


@pytest.mark.requirement("K35")
async def test_a_login_takes_ten_minutes_at_most(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    back = team.come_back(await team.begin())
    monkeypatch.setattr(login_module, "STATE_SECONDS", -1)
    answer = await team.post("/login/oidc/finish", back)
    assert answer.json() == {"error": "This login does not count here: it has taken too long."}


@pytest.mark.requirement("K35")
async def test_pages_of_others_and_programs_begin_no_login(team: Team) -> None:
    assert (await team.post("/login/oidc/start", Origin="https://evil.example.org")).status_code == 403
    assert (await team.post("/login/oidc/start", X_Dragoman="0")).status_code == 403
    answer = await team.client.post(f"{team.origin}/login/oidc/start", headers={"X-Dragoman": "1"})
    assert answer.status_code == 400


@pytest.mark.requirement("K34")
async def test_a_login_with_the_issuer_ends_after_half_a_day_and_with_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with team_of(tmp_path) as team:
        monkeypatch.setattr(login_module, "LOGIN_SECONDS", 0.0)
        answer = await team.log_in()
        assert answer.status_code == 401
        monkeypatch.undo()
        answer = await team.log_in()
        login = {
            "Cookie": answer.headers["set-cookie"].partition(";")[0],
            "X_Dragoman_Page_Key": answer.json()["pageKey"],
        }
        assert (await team.post("/me", **login)).status_code == 200
    (tmp_path / "tokens.json").unlink()
    async with team_of(tmp_path) as team:
        assert (await team.post("/me", **login)).status_code == 401


async def test_a_server_without_an_issuer_offers_none(tmp_path: Path) -> None:
    async with http_client() as client, gateway(counting(1), tmp_path) as served:
        team = Team(OpenIdIssuer("https://login.example.org"), served, client, tmp_path)
        assert (await team.post("/login/ways")).json() == {}
        for path in ("/login/oidc/start", "/login/oidc/finish"):
            assert (await team.post(path)).status_code == 401
        assert (await team.bearer(team.issuer.token())).status_code == 401


async def test_who_comes_back_too_often_from_one_address_waits(team: Team) -> None:
    body = {"code": "x", "state": "x", "binding": "x"}
    codes = [(await team.post("/login/oidc/finish", body)).status_code for _ in range(40)]
    assert codes[:30] == [403] * 30
    assert codes[-1] == 429
    assert (await team.post("/login/oidc/finish", {"code": "x" * 20_000})).status_code == 429
