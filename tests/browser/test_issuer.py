"""A person logs in with an OpenID issuer in a real browser: there and back, and a link that an attacker has made."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.gateway.issuer_settings import IssuerSettings
from tests.support.gateway import Served, counting, gateway
from tests.support.openid_issuer import CLIENT, SECRET, OpenIdIssuer, openid_issuer

from .chrome import Tab

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


@pytest.fixture
async def issuer() -> AsyncIterator[OpenIdIssuer]:
    async with openid_issuer() as running:
        yield running


@pytest.fixture
async def served(issuer: OpenIdIssuer, tmp_path: Path) -> AsyncIterator[Served]:
    settings = IssuerSettings(issuer=issuer.url, client_id=CLIENT, client_secret=SECRET)
    async with gateway(counting(1), tmp_path, issuer=settings) as running:
        yield running


@pytest.mark.requirement("K35")
async def test_a_person_goes_to_the_issuer_and_comes_back_logged_in(page: Tab, served: Served) -> None:
    origin = f"http://127.0.0.1:{served.server.port}"
    await page.go(f"{origin}/#")
    await page.until_text("#with-issuer", "Log in with 127.0.0.1")
    await page.click("#with-issuer")
    await page.until_text("#who", "oidc:ada")
    assert await page.js("location.href") == f"{origin}/"
    await page.reload()
    await page.until_text("#who", "oidc:ada")
    await page.click("#logout")
    await page.until("!document.getElementById('login').hidden")


@pytest.mark.requirement("K35")
async def test_a_link_with_the_code_of_another_does_not_log_in(page: Tab, served: Served, issuer: OpenIdIssuer) -> None:
    origin = f"http://127.0.0.1:{served.server.port}"
    await page.go(f"{origin}/login/oidc?code=theirs&state=theirs")
    await page.until_text("#login-trouble", "This login was not begun in this tab.")
    assert await page.js("location.href") == f"{origin}/"
    assert "/token" not in issuer.requests


async def test_a_no_of_the_issuer_is_said_in_its_words(page: Tab, served: Served) -> None:
    words = "error=access_denied&error_description=Ask%20%3Cb%3Eyour%3C/b%3E%20team"
    await page.go(f"http://127.0.0.1:{served.server.port}/login/oidc?{words}")
    await page.until_text("#login-trouble", "The issuer says: Ask <b>your</b> team")
