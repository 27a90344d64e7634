"""Options of `dragoman serve` for an OpenID issuer; `[oidc]` of `config.toml` has the same, the command line wins."""

import argparse
import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.cli.settings import Settings
    from dragoman.gateway.issuer_settings import IssuerSettings
    from dragoman.gateway.token_types import Scope

# A secret has some 40 characters; a file with more is a wrong one.
_SECRET_BYTES: Final = 4096
# What says that a person without a rule gets nothing.
_NOTHING: Final = "none"


def add_issuer_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("people of an OpenID issuer, beside tokens; or [oidc] in config.toml")
    group.add_argument("--oidc-issuer", metavar="URL", help="who people log in with, as it writes itself")
    group.add_argument("--oidc-client-id", metavar="ID", help="what this server is called there")
    group.add_argument(
        "--oidc-client-secret-file",
        metavar="F",
        help="a file with its secret, which only you can read; without one it is a public client",
    )
    group.add_argument(
        "--oidc-audience",
        metavar="A",
        action="append",
        help="of tokens that programs send; the client's ID, if not given; can be given several times",
    )
    group.add_argument(
        "--oidc-principal-claim", metavar="C", help="the claim that names a principal; sub, if not given"
    )
    group.add_argument("--oidc-scope-claim", metavar="C", help="the claim that --oidc-scopes is about; groups")
    group.add_argument(
        "--oidc-scopes",
        metavar="VALUE=S",
        action="append",
        help="who has VALUE in that claim gets the scopes S, as in developers=read,prompt; can be given several times",
    )
    group.add_argument("--oidc-default-scopes", metavar="S", help="of everyone else there; read, if not given; or none")
    group.add_argument(
        "--oidc-request", metavar="S", help='what a login asks for; "openid profile email", if not given'
    )
    group.add_argument(
        "--oidc-ca-file", metavar="F", help="believe the issuer by the authorities in this PEM file alone"
    )


def issuer_settings(arguments: argparse.Namespace) -> "IssuerSettings | None":
    """Return the issuer that a server believes; None: it has none. Raise `CommandError` for what is wrong."""
    from dragoman.cli.settings import read_settings
    from dragoman.errors import how_to_install
    from dragoman.gateway.issuer import is_safe_address
    from dragoman.gateway.issuer_settings import IssuerSettings

    settings = read_settings()
    issuer = _text(arguments, settings, "issuer")
    client_id = _text(arguments, settings, "client_id")
    if not issuer:
        if client_id:
            raise CommandError("--oidc-client-id needs --oidc-issuer")
        return None
    if not client_id:
        raise CommandError("--oidc-issuer needs --oidc-client-id: what this server is called there")
    if not is_safe_address(issuer, plain=True) or "?" in issuer:
        raise CommandError(f"--oidc-issuer {issuer}: write https://HOST/PATH, as the issuer writes itself")
    if importlib.util.find_spec("jwt") is None or importlib.util.find_spec("cryptography") is None:
        raise CommandError(f"logins with an issuer need an extra: {how_to_install('oidc')}")
    request = tuple(_text(arguments, settings, "request").split())
    if "openid" not in request:
        raise CommandError("--oidc-request has to name openid")
    return IssuerSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=_secret(_text(arguments, settings, "client_secret_file")),
        audiences=tuple(_texts(arguments, settings, "audience")),
        principal_claim=_text(arguments, settings, "principal_claim"),
        scope_claim=_text(arguments, settings, "scope_claim"),
        scopes=dict(_rule(text) for text in _texts(arguments, settings, "scopes")),
        default_scopes=_scopes(_text(arguments, settings, "default_scopes"), "--oidc-default-scopes"),
        request=request,
        ca_file=_ca_file(_text(arguments, settings, "ca_file")),
    )


def secret_file(arguments: argparse.Namespace) -> str:
    """Return the path of the file with the client's secret; empty: there is none."""
    from dragoman.cli.settings import read_settings

    return _text(arguments, read_settings(), "client_secret_file")


def _text(arguments: argparse.Namespace, settings: "Settings", name: str) -> str:
    given: str | None = getattr(arguments, f"oidc_{name}")
    return settings.text(f"oidc.{name}") if given is None else given


def _texts(arguments: argparse.Namespace, settings: "Settings", name: str) -> Sequence[str]:
    given: list[str] | None = getattr(arguments, f"oidc_{name}")
    return settings.texts(f"oidc.{name}") if given is None else given


def _rule(text: str) -> "tuple[str, tuple[Scope, ...]]":
    # The last one: a group may be called by a name of a directory, as in `cn=developers`.
    value, equals, scopes = text.rpartition("=")
    if not equals or not value:
        raise CommandError(f"--oidc-scopes {text}: write VALUE=SCOPES, as in developers=read,prompt")
    return value, _scopes(scopes, f"--oidc-scopes {text}")


def _scopes(text: str, option: str) -> "tuple[Scope, ...]":
    from dragoman.gateway.token_types import scopes_of

    if text == _NOTHING:
        return ()
    try:
        return scopes_of(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None


def _secret(file: str) -> str:
    """Return the secret in a file, without the end of its line; empty: there is no file."""
    import os

    from dragoman.host.private_file import check_private
    from dragoman.host.regular_file import read_whole

    if not file:
        return ""
    where = f"--oidc-client-secret-file {file}"
    try:
        secret = read_whole(os.path.expanduser(file), _SECRET_BYTES, check=check_private).decode("ascii").strip()
    except OSError as error:
        raise CommandError(f"{where}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeDecodeError:
        secret = ""
    if not secret or not secret.isprintable():
        raise CommandError(f"{where}: there is no secret in it")
    return secret


def _ca_file(file: str) -> str:
    """Return the path of a file of authorities, checked; empty: there is none."""
    import os

    from dragoman.host.tls import trust_only

    if not file:
        return ""
    path = os.path.expanduser(file)
    trust_only(path)  # so that a wrong one is named at the start
    return path
