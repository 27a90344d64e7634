"""`dragoman serve --oidc-…`: what is wrong is named before anything listens, and a person is in the audit."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.cli.errors import CommandError
from dragoman.cli.issuer_options import issuer_settings
from dragoman.cli.main import command_line
from dragoman.gateway.issuer_settings import IssuerSettings
from tests.support.command import call
from tests.support.openid_issuer import CLIENT, SECRET, openid_issuer
from tests.support.principals import Household, bash, calling

URL = "https://login.example.org"
GIVEN = ("--oidc-issuer", URL, "--oidc-client-id", CLIENT)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))


def settings_of(*words: str) -> IssuerSettings | None:
    return issuer_settings(command_line("serve").parse_args(["serve", *words]))


def test_without_an_issuer_there_are_tokens_alone() -> None:
    assert settings_of() is None


def test_two_options_are_enough_and_everyone_may_read() -> None:
    assert settings_of(*GIVEN) == IssuerSettings(issuer=URL, client_id=CLIENT, default_scopes=("read",))


def test_every_option_reaches_the_server(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    more = ["--oidc-client-secret-file", str(secret), "--oidc-audience", "a", "--oidc-audience", "b"]
    more += ["--oidc-principal-claim", "email", "--oidc-scope-claim", "roles", "--oidc-default-scopes", "none"]
    more += ["--oidc-scopes", "cn=ops,dc=x=admin", "--oidc-scopes", "dev=read,prompt", "--oidc-request", "openid roles"]
    assert settings_of(*GIVEN, *more) == IssuerSettings(
        issuer=URL,
        client_id=CLIENT,
        client_secret=SECRET,
        audiences=("a", "b"),
        principal_claim="email",
        scope_claim="roles",
        scopes={"cn=ops,dc=x": ("admin",), "dev": ("read", "prompt")},
        default_scopes=(),
        request=("openid", "roles"),
    )
    assert SECRET not in repr(settings_of(*GIVEN, *more))


def test_the_table_of_the_configuration_says_the_same_and_the_command_line_wins(tmp_path: Path) -> None:
    table = f'[oidc]\nissuer = "{URL}"\nclient_id = "written"\nscopes = ["dev=read,prompt"]\ndefault_scopes = "none"\n'
    (tmp_path / "config.toml").write_text(table)
    rules = {"dev": ("read", "prompt")}
    written = IssuerSettings(issuer=URL, client_id="written", scopes=rules, default_scopes=())  # type: ignore[arg-type]
    assert settings_of() == written
    given = settings_of("--oidc-client-id", CLIENT, "--oidc-scopes", "ops=admin")
    assert given == IssuerSettings(issuer=URL, client_id=CLIENT, scopes={"ops": ("admin",)}, default_scopes=())


CLEAR = ("--oidc-issuer", "http://login.example.org", "--oidc-client-id", CLIENT)
WRONG = {
    GIVEN[:2]: "--oidc-issuer needs --oidc-client-id: what this server is called there",
    GIVEN[2:]: "--oidc-client-id needs --oidc-issuer",
    CLEAR: "--oidc-issuer http://login.example.org: write https://HOST/PATH, as the issuer writes itself",
    (*GIVEN, "--oidc-scopes", "dev"): "--oidc-scopes dev: write VALUE=SCOPES, as in developers=read,prompt",
    (*GIVEN, "--oidc-scopes", "dev=x"): "--oidc-scopes dev=x: there is no scope 'x'; there are read, prompt, admin",
    (*GIVEN, "--oidc-default-scopes", ""): "--oidc-default-scopes: name at least one scope of read, prompt, admin",
    (*GIVEN, "--oidc-request", "profile"): "--oidc-request has to name openid",
    (*GIVEN, "--oidc-client-secret-file", "nowhere"): "--oidc-client-secret-file nowhere: no such file or directory",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_named_before_anything_listens(words: tuple[str, ...], tmp_path: Path) -> None:
    done = call("serve", "--model", "demo", *words, DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.error) == (2, f"dragoman: {WRONG[words]}\n")


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o644)
    with pytest.raises(CommandError, match="others can read or change it"):
        settings_of(*GIVEN, "--oidc-client-secret-file", str(secret))
    secret.chmod(0o600)
    secret.write_text(" \n")
    with pytest.raises(CommandError, match="there is no secret in it"):
        settings_of(*GIVEN, "--oidc-client-secret-file", str(secret))


@pytest.mark.requirement("K32")
def test_who_allowed_what_names_the_person_of_the_issuer(tmp_path: Path) -> None:
    house = Household(tmp_path)
    session_id = asyncio.run(_worked(house, tmp_path / "work"))
    done = call("sessions", "audit", session_id, DRAGOMAN_HOME=str(house.home))
    (line,) = map(json.loads, done.out.splitlines())
    assert (line["principal"], line["token"], line["by"]) == ("oidc:ada", "oidc:ada", "user")


async def _worked(house: Household, work: Path) -> str:
    """The session of a person of the issuer, who has said yes to a command."""
    work.mkdir()
    house.token("default")
    async with openid_issuer() as issuer:
        rule = "developers=read,prompt,admin"
        words = ["--oidc-issuer", issuer.url, "--oidc-client-id", CLIENT, "--oidc-scopes", rule]
        script = calling(bash("touch a"))
        async with house.served(script, *words), house.client(issuer.token()) as client:
            conversation = await client.new_session(work)
            await conversation.ask("go")
            return conversation.id
