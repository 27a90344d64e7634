"""An OpenID issuer that is asked over the network: keys that change, and everything it can do wrong."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from dragoman.gateway import issuer as issuer_module
from dragoman.gateway.issuer import ANSWER_BYTES, KEYS, REFETCH_SECONDS, STALE_SECONDS, Issuer, is_safe_address
from dragoman.gateway.issuer_jwt import JwtHead
from dragoman.gateway.issuer_settings import IssuerAway, IssuerSettings, NotAccepted
from tests.support.openid_issuer import CLIENT, OpenIdIssuer, openid_issuer

pytestmark = pytest.mark.anyio
DOCUMENT = "/.well-known/openid-configuration"


class Asked(NamedTuple):
    """Our side of an issuer, with a clock of the test's own: `now[0]`."""

    far: OpenIdIssuer
    near: Issuer
    now: list[float]
    reports: list[str]
    keys: list[Sequence[object]]

    async def knows(self, key_id: str) -> bool:
        try:
            await self.near.key(JwtHead("ES256", key_id))
        except NotAccepted:
            return False
        return True

    async def is_away(self) -> bool:
        try:
            await self.near.document()
        except IssuerAway:
            return True
        return False


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    async with openid_issuer() as far:
        now, reports, keys = [0.0], list[str](), list[Sequence[object]]()
        settings = IssuerSettings(issuer=far.url, client_id=CLIENT)
        near = Issuer(settings, reports.append, keys.append, lambda: now[0])
        yield Asked(far, near, now, reports, keys)
        await near.close()


@pytest.mark.requirement("K33")
async def test_a_new_key_is_found_and_a_key_that_was_taken_back_counts_no_more(asked: Asked) -> None:
    assert await asked.knows("first")
    asked.far.rotate("second")
    asked.now[0] += REFETCH_SECONDS
    assert await asked.knows("second")
    assert not await asked.knows("first")
    assert asked.keys == [["first"], ["second"]]


@pytest.mark.requirement("K33")
async def test_a_flood_of_made_up_keys_costs_one_look_in_ten_seconds(asked: Asked) -> None:
    assert await asked.knows("first")
    asked.now[0] += REFETCH_SECONDS
    found = await asyncio.gather(*(asked.knows(f"made-up-{number}") for number in range(200)))
    assert not any(found)
    assert asked.far.requests == [DOCUMENT, "/keys"] * 2
    assert await asked.knows("first")


@pytest.mark.requirement("K33")
async def test_an_issuer_that_is_away_counts_for_an_hour_as_it_was(asked: Asked) -> None:
    assert await asked.knows("first")
    asked.far.answers = {DOCUMENT: (500, b"")}
    asked.now[0] += STALE_SECONDS
    assert await asked.knows("first")
    asked.now[0] += 1
    assert await asked.is_away()
    asked.far.answers = {}
    asked.now[0] += REFETCH_SECONDS
    assert await asked.knows("first")
    assert asked.reports == [f"it answered 500 for {asked.far.url}{DOCUMENT}"]


@pytest.mark.requirement("K33")
@pytest.mark.parametrize(
    ("answers", "report"),
    [
        ({DOCUMENT: (200, b"<html>")}, "its description cannot be read"),
        ({DOCUMENT: (200, b"[" * 100_000)}, "its description cannot be read"),
        ({DOCUMENT: (200, b" " * (ANSWER_BYTES + 1))}, f"it answered with more than {ANSWER_BYTES} bytes"),
        ({"/keys": (200, b" " * (ANSWER_BYTES + 1))}, f"it answered with more than {ANSWER_BYTES} bytes"),
        ({"/keys": (200, msgspec.json.encode({"keys": [{}] * (KEYS + 1)}))}, "its set of keys cannot be read"),
        ({"/keys": (200, b'{"keys": [1]}')}, "its set of keys cannot be read"),
    ],
)
async def test_what_an_issuer_says_is_bounded_and_nothing_is_believed_of_half_of_it(
    asked: Asked, answers: Any, report: str
) -> None:
    asked.far.answers = answers
    assert await asked.is_away()
    assert asked.reports == [report]


@pytest.mark.requirement("K33")
async def test_a_redirect_is_not_followed(asked: Asked) -> None:
    asked.far.answers = {"/keys": (302, b"")}
    assert await asked.is_away()
    assert asked.reports == [f"it answered 302 for {asked.far.url}/keys"]


@pytest.mark.requirement("K33")
async def test_an_issuer_of_another_name_or_with_pages_in_the_clear_is_none(asked: Asked) -> None:
    asked.far.document = {"issuer": asked.far.url + "/"}
    assert await asked.is_away()
    asked.far.document = {"jwks_uri": "http://keys.example.org/"}
    asked.now[0] += REFETCH_SECONDS
    assert await asked.is_away()
    name = "it calls itself otherwise; --oidc-issuer has to be that name, to the last slash"
    assert asked.reports == [name, "its jwks_uri is no address with https"]


@pytest.mark.requirement("K33")
async def test_a_slow_issuer_is_waited_for_within_a_bound(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_module, "ANSWER_SECONDS", 0.05)
    asked.far.delay = 0.2
    assert await asked.is_away()
    assert asked.reports == ["it did not answer within 0.05 seconds"]


async def test_an_issuer_that_cannot_be_reached_is_away() -> None:
    reports: list[str] = []
    near = Issuer(IssuerSettings(issuer="http://127.0.0.1:9", client_id=CLIENT), reports.append, lambda keys: None)
    with pytest.raises(IssuerAway):
        await near.document()
    await near.close()
    assert reports == ["it cannot be asked (ConnectError)"]


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://login.example.org", True),
        ("https://login.example.org:8443/realms/team", True),
        ("http://127.0.0.1:9000", True),
        ("http://login.example.org", False),
        ("https://user@login.example.org", False),
        ("https://login.example.org/#x", False),
        ("https://login.example.org:x", False),
        ("file:///etc/passwd", False),
        ("https://", False),
        ("https://login.example.org/\n", False),
    ],
)
def test_an_issuer_is_asked_by_https_or_on_this_machine(url: str, *, is_safe: bool) -> None:
    assert is_safe_address(url, plain=True) is is_safe


def test_plain_http_is_not_followed_from_an_issuer_with_https() -> None:
    assert not is_safe_address("http://127.0.0.1:9000", plain=False)
