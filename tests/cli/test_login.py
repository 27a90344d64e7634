"""`dragoman login` asks the provider whether it accepts the key before it is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Called, call
from tests.support.provider_server import KEY, ProviderServer, provider_server

WRONG = "sk-wrong-0123456789abcdef"


@pytest.fixture
def up() -> Iterator[ProviderServer]:
    with provider_server() as server:
        yield server


def login(home: Path, up: ProviderServer, key: str, *options: str, own_key: str | None = None) -> Called:
    return call(
        "login",
        "openai",
        *options,
        said=f"{key}\n",
        DRAGOMAN_HOME=str(home),
        DRAGOMAN_LIST_MODELS="true",
        OPENAI_BASE_URL=f"{up.url}/v1",
        OPENAI_API_KEY=own_key,
    )


def is_kept(home: Path, key: str) -> bool:
    file = home / "credentials.toml"
    return file.exists() and key in file.read_text()


def test_an_accepted_key_is_kept_and_its_models_are_named(tmp_path: Path, up: ProviderServer) -> None:
    up.lists(*(f"gpt-{letter}" for letter in "abcdefg"))
    done = login(tmp_path, up, KEY)
    first, second, *_ = done.out.splitlines()
    assert (done.code, is_kept(tmp_path, KEY), first) == (0, True, "openai accepts the key.")
    assert second == "Its models: gpt-a, gpt-b, gpt-c, gpt-d, gpt-e and 2 more: `dragoman models list`"
    assert len(up.heard) == 1


def test_the_account_is_named_where_the_provider_tells_it(tmp_path: Path, up: ProviderServer) -> None:
    up.lists("gpt-a")
    up.headers = {"openai-organization": "acme-corp"}
    assert login(tmp_path, up, KEY).out.startswith("openai accepts the key. It is of the account acme-corp.\n")


def test_a_refused_key_is_not_kept(tmp_path: Path, up: ProviderServer) -> None:
    done = login(tmp_path, up, WRONG)
    assert (done.code, is_kept(tmp_path, WRONG), WRONG in done.out + done.error) == (1, False, False)
    assert "does not accept the key" in done.error
    assert "--keep keeps one without asking" in done.error


def test_a_key_is_kept_unasked_where_the_user_says_so(tmp_path: Path, up: ProviderServer) -> None:
    assert login(tmp_path, up, WRONG, "--keep").code == 0
    assert (is_kept(tmp_path, WRONG), up.heard) == (True, [])


def test_a_key_that_cannot_be_checked_is_kept_and_that_is_said(tmp_path: Path, up: ProviderServer) -> None:
    up.status = 500
    done = login(tmp_path, up, KEY)
    assert (done.code, is_kept(tmp_path, KEY), "could not be checked" in done.error) == (0, True, True)


def test_it_is_the_typed_key_that_is_asked_about_and_not_that_of_the_environment(
    tmp_path: Path, up: ProviderServer
) -> None:
    assert login(tmp_path, up, WRONG, own_key=KEY).code == 1
    assert not is_kept(tmp_path, WRONG)
