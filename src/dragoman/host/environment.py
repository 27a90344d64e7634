"""What a child process may know: the environment without the keys of this machine's owner.

A coding agent runs what a model wrote. A key in its environment is one `env` away from a prompt, so a name that
looks like a secret is left out unless somebody asked for it by name. It is a list of what is known to be secret,
not of what is known to be harmless: a child without PATH, proxies, locale or toolchain variables is of no use.
Pure: the environment comes in as an argument.
"""

from collections.abc import Mapping
from typing import Final

# Everything called `..._KEY`, `...TOKEN` and so on, in any case, also numbered (`OPENAI_API_KEY_2`). Some of it is
# harmless (Docker's GPG_KEY); leaving that out harms nobody, and `extra` brings it back.
_SECRET_ENDINGS: Final = (
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "TOKEN",
    "CONNECTION_STRING",
    "WEBHOOK_URL",
    "_AUTH",
    "_COOKIE",
    "_DSN",
    "_JWT",
    "_KEY",
    "_PAT",
    "_PWD",
)
# Between underscores, wherever it stands: `API_KEY_PROD`, `TOKEN_OF_CI`. Not `TOKENS`: those are counted.
_SECRET_WORDS: Final = frozenset({"APIKEY", "CREDENTIALS", "KEY", "PASSPHRASE", "PASSWORD", "SECRET", "TOKEN"})
# Secrets, or halves of one, whose names do not say so.
_SECRET_NAMES: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AZURE_STORAGE_CONNECTION_STRING",
        "DOCKER_AUTH_CONFIG",
        "KEY",
        "NETRC",
        "PGPASSFILE",
        "SSHPASS",
        "VAULT_UNSEAL_KEYS",
    }
)
# A proxy may carry a password too, but without it the child has no network at all.
_PROXY_ENDING: Final = "_PROXY"


def child_environment(base: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` without secrets, then `extra` as it is: what is named there was meant."""
    harmless = {name: value for name, value in base.items() if not is_secret(name, value)}
    return harmless | dict(extra or {})


def is_secret(name: str, value: str) -> bool:
    """Whether a variable is, by its name or by a password inside a URL, not for a child to see."""
    upper = name.upper()
    if upper in _SECRET_NAMES or upper.rstrip("0123456789").rstrip("_").endswith(_SECRET_ENDINGS):
        return True
    if not _SECRET_WORDS.isdisjoint(upper.split("_")):
        return True
    return not upper.endswith(_PROXY_ENDING) and _has_password(value)


def _has_password(value: str) -> bool:
    """Whether `value` is a URL with a password: `postgres://user:password@host/`."""
    _, separator, rest = value.partition("://")
    authority = rest.split("/", 1)[0]
    user, at, _ = authority.rpartition("@")
    _, colon, password = user.partition(":")
    return bool(separator and at and colon and password)
