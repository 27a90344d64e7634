"""The page's own routes on the real server: its files, and a token that becomes a login. See tests/browser for use."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from dragoman.gateway import login_store as cookies_module
from dragoman.gateway import pages
from dragoman.gateway import token_store as tokens_module
from dragoman.version import VERSION
from tests.support.gateway import Served, counting, gateway, http_client
from tests.support.messages import hello, texts
from tools import console

from .sockets import hear, say, session

pytestmark = pytest.mark.anyio
OURS = {"X-Dragoman": "1"}
BUILT = console.BUILT
# What the page names itself, without the hashes.
FIRST = {"icon.svg", "index.css", "index.js"}


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(tokens_module, "_CHECK_SECONDS", 0.0)
    async with gateway(counting(3), tmp_path) as running:
        yield running


def origin(served: Served) -> str:
    return f"http://127.0.0.1:{served.server.port}"


class Browser:
    """As much of one as these rules are about."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.cookie = ""
        self.page_key = ""

    async def send(self, method: str, path: str, **headers: str) -> httpx2.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if self.page_key:
            sent["X-Dragoman-Page-Key"] = self.page_key
        async with http_client() as client:
            return await client.request(method, origin(self.served) + path, headers=sent)

    async def post(self, path: str, **headers: str) -> httpx2.Response:
        return await self.send("POST", path, **{"Origin": origin(self.served), "X_Dragoman": "1", **headers})

    async def login(self, token: str = "") -> httpx2.Response:
        answer = await self.post("/login", Authorization=f"Bearer {token or self.served.token}")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        self.page_key = answer.json().get("pageKey", "")
        return answer

    def socket(self, query: str = "", **headers: str) -> Any:
        sent = {"Cookie": self.cookie, "Origin": origin(self.served), **headers}
        return connect(
            self.served.ws + query,
            additional_headers={name: value for name, value in sent.items() if value},
            subprotocols=[Subprotocol("acp"), *([Subprotocol(f"dragoman.{self.page_key}")] if self.page_key else [])],
            compression=None,
            proxy=None,
        )


async def refused(opening: Any) -> int:
    with pytest.raises(InvalidStatus) as caught:
        async with opening:
            pass
    return caught.value.response.status_code


async def test_the_files_are_public_and_have_a_strict_policy(served: Served) -> None:
    browser = Browser(served)
    index = await browser.send("GET", "/")
    assert index.status_code == 200
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    names = set(re.findall(r'"(/console/[^"]+)"', index.text))
    assert {f"/console/{name}" for name in FIRST} <= {re.sub(r"-[\w-]{8}\.", ".", name) for name in names}
    assert names <= {f"/console/{file.name}" for file in BUILT.iterdir()}
    fetched_later = {f"/console/{file.name}" for file in BUILT.glob("*.js")} - names
    assert fetched_later
    for path in ("/", *names, *fetched_later):
        answer = await browser.send("GET", path)
        policy = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
        assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} <= set(policy)
        assert not [rule for rule in policy if "unsafe" in rule or "*" in rule]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        again = await browser.send("GET", path, If_None_Match=answer.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        head = await browser.send("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == answer.headers["content-length"]
    for path in ("/console/", "/console/../pages.py", "/console/%2e%2e/pages.py", "/console/none.js", "/index.html"):
        assert (await browser.send("GET", path)).status_code == 401


async def test_a_file_is_packed_for_a_browser_that_takes_it_and_kept_where_its_name_says_its_content(
    served: Served,
) -> None:
    browser = Browser(served)
    (script,) = re.findall(r'"(/console/index-[^"]+\.js)"', (await browser.send("GET", "/")).text)
    plain = await browser.send("GET", script, Accept_Encoding="identity")
    packed = await browser.send("GET", script, Accept_Encoding="gzip, deflate")
    assert plain.content == packed.content == (BUILT / script.rpartition("/")[2]).read_bytes()
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) * 2 < int(plain.headers["content-length"]) == len(plain.content)
    assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (await browser.send("GET", "/")).headers["cache-control"] == "no-cache"


async def test_what_the_first_view_fetches_has_less_than_150_kib(served: Served) -> None:
    browser = Browser(served)
    names = re.findall(r'"(/console/[^"]+)"', (await browser.send("GET", "/")).text)
    sizes = [int((await browser.send("HEAD", path)).headers["content-length"]) for path in ("/", *names)]
    assert sum(sizes) < 150 * 1024


async def test_a_server_without_a_console_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages._read_files.cache_clear()
    monkeypatch.setattr(pages, "files", lambda package: tmp_path)
    try:
        async with gateway(counting(3), tmp_path) as running:
            answer = await Browser(running).send("GET", "/")
    finally:
        pages._read_files.cache_clear()
    assert (answer.status_code, "./dev setup" in answer.text) == (200, True)


def test_no_part_of_the_console_makes_markup_of_text_or_asks_another_server() -> None:
    files = [file for file in (console.FOLDER / "src").rglob("*") if file.suffix in (".ts", ".tsx", ".css")]
    assert len(files) > 50
    for file in (*files, console.FOLDER / "index.html"):
        text = file.read_text()
        for word in (
            "innerHTML",
            "InnerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            'style="',
        ):
            assert word not in text, (file.name, word)
        assert set(re.findall(r"\w+://[\w.]+", text)) <= {"http://www.w3.org", "https://hooks.example.com"}, file.name
    # Of what libraries bring, the policy of the page lets nothing become markup. Names of the outside are no requests:
    # the policy lets none go there.
    for file in BUILT.glob("*.js"):
        text = file.read_text()
        assert "eval(" not in text and "new Function" not in text, file.name


async def test_a_token_becomes_a_login_that_says_who_it_is(served: Served) -> None:
    browser = Browser(served)
    answer = await browser.login()
    assert answer.status_code == 200
    about = {
        "name": "default",
        "scopes": ["read", "prompt", "admin"],
        "folder": str(Path.cwd()),
        "version": VERSION,
        "principal": "default",
        "administers": True,
    }
    assert answer.json() == about | {"pageKey": browser.page_key}
    assert len(browser.page_key) == 43 and browser.page_key not in browser.cookie
    assert answer.headers["cache-control"] == "no-store"
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert served.token not in browser.cookie
    me = await browser.post("/me")
    assert (me.status_code, me.json()) == (200, about)
    assert me.headers["cache-control"] == "no-store"


async def test_a_proxy_with_tls_before_us_gets_a_secure_cookie(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path) as served:
        served.server._guard._host_check._hosts.add("agent.example")
        browser = Browser(served)
        secure = {"Origin": "https://agent.example", "Host": "agent.example"}
        answer = await browser.post("/login", Authorization=f"Bearer {served.token}", **secure)
        assert answer.headers["set-cookie"].startswith("__Host-dragoman-")
        assert answer.headers["set-cookie"].endswith("; Secure")
        browser.cookie = answer.headers["set-cookie"].partition(";")[0]
        browser.page_key = answer.json()["pageKey"]
        assert (await browser.post("/me", **secure)).status_code == 200


@pytest.mark.parametrize("path", ["/login", "/me", "/logout"])
async def test_every_refusal_of_a_post(served: Served, path: str) -> None:
    browser = Browser(served)
    shown = {"Authorization": f"Bearer {served.token}"} if path == "/login" else {}
    await browser.login()
    assert (await browser.post(path, Origin="http://evil.example", **shown)).status_code == 403
    assert (await browser.post(path, Origin="null", **shown)).status_code == 403
    assert (await browser.post(path, X_Dragoman="", **shown)).status_code == 403
    if path != "/login":
        assert (await browser.post(path, Origin="")).status_code == 403
        assert (await browser.post(path, Origin="", Sec_Fetch_Site="cross-site")).status_code == 403
    assert (await browser.send("GET", path, Sec_Fetch_Site="same-origin")).status_code == 405
    assert (await browser.post("/me")).status_code == 200  # nothing of that has ended it
    key, browser.page_key = browser.page_key, ""
    assert (await browser.post(path)).status_code == 401  # the cookie alone
    browser.cookie, browser.page_key = "", key
    assert (await browser.post(path)).status_code == 401  # the page key alone


async def test_wrong_tokens_are_held_back(served: Served) -> None:
    browser = Browser(served)
    statuses = [(await browser.login("wrong")).status_code for _ in range(30)]
    assert statuses[0] == 401 and statuses[-1] == 429
    assert browser.cookie == ""
    assert (await browser.login()).status_code == 200


async def test_the_cookie_opens_a_socket_for_our_own_page_alone(served: Served) -> None:
    browser = Browser(served)
    await browser.login()
    async with browser.socket() as socket:
        await say(socket, hello(2))
        greeting, _ = await hear(socket, 0)
        assert greeting["result"]["protocolVersion"] == 2
        assert socket.subprotocol == "acp"
        assert browser.page_key not in str(socket.response.headers)  # it is never said again
    assert await refused(browser.socket(Origin="http://evil.example")) == 403
    assert await refused(browser.socket(Origin="")) == 403
    assert await refused(browser.socket(Origin="", **OURS)) == 403
    assert await refused(browser.socket(Cookie="dragoman=x")) == 401
    assert await refused(browser.socket(Cookie=f"dragoman-{served.server.port}=x")) == 401
    browser.page_key = ""
    assert await refused(browser.socket()) == 401
    assert await refused(browser.socket(**OURS)) == 401


async def test_logging_out_ends_the_cookie_and_its_sockets(served: Served) -> None:
    browser, other = Browser(served), Browser(served)
    await browser.login()
    await other.login()
    async with browser.socket() as socket, other.socket() as elsewhere:
        answer = await browser.post("/logout")
        assert (answer.status_code, answer.content) == (204, b"")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(30):
                await socket.recv()
        await say(elsewhere, hello(2))
        await hear(elsewhere, 0)
    assert (await browser.post("/me")).status_code == 401
    assert await refused(browser.socket()) == 401
    assert (await other.post("/me")).status_code == 200


async def test_revoking_the_token_ends_the_cookie(served: Served) -> None:
    token = served.token_of("phone")
    browser, other = Browser(served), Browser(served)
    await browser.login(token)
    await other.login()
    assert served.tokens.revoke("phone")
    assert (await browser.post("/me")).status_code == 401
    assert await refused(browser.socket()) == 401
    assert (await other.post("/me")).status_code == 200


async def test_a_login_and_a_logout_are_answered_when_they_are_on_disk(tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, logins=tmp_path) as served:
        file = tmp_path / f"logins-127.0.0.1-{served.server.port}.json"
        browser = Browser(served)
        await browser.login()
        kept = [
            hashlib.sha256(half.encode()).hexdigest() for half in (browser.cookie.partition("=")[2], browser.page_key)
        ]
        assert all(digest in file.read_text() for digest in kept)
        await browser.post("/logout")
        assert not [digest for digest in kept if digest in file.read_text()]


async def test_a_token_that_expires_ends_the_login(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, other = Browser(served), Browser(served)
    now = time.time()
    await browser.login(served.tokens.make("short", expires=now + 3600))
    await other.login()
    assert (await browser.post("/me")).status_code == 200
    monkeypatch.setattr(served.tokens, "_clock", lambda: now + 3601)
    assert (await browser.post("/me")).status_code == 401
    assert await refused(browser.socket()) == 401
    assert (await other.post("/me")).status_code == 200


async def test_an_old_cookie_is_over(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser(served)
    await browser.login()
    assert (await browser.post("/me")).status_code == 200
    monkeypatch.setattr(cookies_module, "IDLE_SECONDS", 0.0)
    assert (await browser.post("/me")).status_code == 401


async def test_a_cookie_does_what_its_token_may(served: Served) -> None:
    browser = Browser(served)
    await browser.login(served.token_of("reader", ("read",)))
    async with browser.socket() as socket:
        await say(socket, hello(2))
        await hear(socket, 0)
        await say(socket, {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
        answer, _ = await hear(socket, 1)
        assert answer["error"]["data"] == {"reason": "scope"}
    assert (await browser.send("GET", "/metrics", Origin=origin(served))).status_code == 403


async def test_a_socket_goes_on_by_its_query_with_nothing_lost_and_nothing_twice(served: Served) -> None:
    browser = Browser(served)
    await browser.login()
    heard: list[dict[str, Any]] = []
    async with browser.socket() as socket:
        connection, session_id = await session(socket, 1)
        params = {"sessionId": session_id, "prompt": [{"type": "text", "text": "hi"}]}
        await say(socket, {"id": 2, "method": "session/prompt", "params": params})
        while not texts(heard):
            heard.append(msgspec.json.decode(await socket.recv()))
        await socket.close(4000)
    count = 2 + len(heard)  # the answers to initialize and session/new came before
    async with browser.socket(f"?connection={connection}&after={count}") as socket:
        note = msgspec.json.decode(await socket.recv())
        assert (note["method"], note["params"]) == ("_dragoman/resumed", {"received": 3})
        _, more = await hear(socket, 2)
        assert texts(heard + more) == ["0 ", "1 ", "2 "]
        await socket.close(4000)
    async with browser.socket(f"?connection={connection}&after=0") as socket:
        await socket.recv()
        first = msgspec.json.decode(await socket.recv())
        assert first["result"]["connectionId"] == connection


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?connection=unknown&after=0", 404),
        ("?connection=%00%ff&after=x", 404),
        ("?" + "&".join(f"x{n}=1" for n in range(50)), 400),
    ],
)
async def test_a_query_that_names_nothing(served: Served, query: str, status: int) -> None:
    browser = Browser(served)
    await browser.login()
    assert await refused(browser.socket(query)) == status


async def test_another_principal_cannot_take_a_connection_over(served: Served) -> None:
    browser, other = Browser(served), Browser(served)
    await browser.login()
    await other.login(served.token_of("mallory"))
    async with browser.socket() as socket:
        connection, _ = await session(socket, 2)
        assert await refused(other.socket(f"?connection={connection}&after=0")) == 404
