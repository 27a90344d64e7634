"""What a child process may know: the environment without the credentials of this machine's owner.

A coding agent runs what a model wrote. A key in its environment is one `env` away from a prompt, so a variable that is
a secret by its name, by its value or by the user's configuration (`keep_back`) is left out, unless a caller names it
in `extra`. It is a list of what is known to be secret, not of what is known to be harmless: a child without PATH,
locale or toolchain variables is of no use. Every child's environment is built by `child_environment`; a confined
command's is stricter (`secrets.confined_environment`) and asks `is_secret` as well.

The environment comes in as an argument. The only state is the set of configured names, which a process fills once.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

# Secrets, or halves of one, whose names do not say so.
_NAMES: Final = frozenset({"DOCKER_AUTH_CONFIG", "NETRC", "PGPASSFILE"})
# Wherever such a word stands between underscores: `API_KEY_PROD`, `TOKEN_OF_CI`, `TOKENS_JSON`. Some of it is harmless
# (`SSH_KEY_PATH`); leaving that out does little harm, and `extra` brings it back.
_WORDS: Final = frozenset(
    {
        *("APIKEY", "APIKEYS", "KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "BEARER", "MNEMONIC"),
        *("PASS", "PASSWD", "PASSWORD", "PASSWORDS", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "CREDENTIALS", "CREDS"),
    }
)
# How a name ends, glued to the word before it or not (`PRIVATEKEY`, `PGPASSWORD`).
_GLUED_ENDINGS: Final = (
    *("KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASS", "PASSWD", "PASSWORD", "PASSPHRASE"),
    *("CREDENTIAL", "CREDENTIALS", "MNEMONIC", "CONNECTION_STRING", "CONN_STR", "CONNSTR"),
)
# How a name ends, or all of it.
_WORD_ENDINGS: Final = (
    *("AUTH", "OAUTH", "COOKIE", "COOKIES", "DSN", "JWT", "PAT", "PWD", "SALT", "SEED", "SEED_PHRASE", "SAS"),
    *("WEBHOOK", "WEBHOOKS", "WEBHOOK_URL", "WEBHOOK_URLS", "WEBHOOK_URI", "HEADERS"),
)
# English that ends like a secret, programs that ask for a password, and settings of the keyboard.
_OTHER_WORDS: Final = (
    *("MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY", "LESSKEY"),
    *("MONKEYS", "DONKEYS", "HOTKEYS"),
    *("BYPASS", "COMPASS", "SURPASS", "TRESPASS", "OVERPASS", "UNDERPASS", "ASKPASS"),
)
# The names of git's settings. Git refuses to run where one is missing that GIT_CONFIG_COUNT counts.
_OF_GIT: Final = "GIT_CONFIG_KEY_"
# Variables that name a program to run.
_PROGRAMS: Final = ("_COMMAND", "_CMD", "_HELPER", "_PROGRAM")
# The working folder, now and before.
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
# How long a fingerprint is, in hexadecimal digits.
_FINGERPRINT: Final = 40
# Such a value is a switch, whatever its variable is called.
_SWITCHES: Final = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off", "none", "null", "auto"})
# Words whose numbers are counts and seeds (`MAX_TOKENS=4096`); a password may be a number.
_COUNTED: Final = ("KEYS", "TOKENS", "SECRETS", "SEED", "COOKIES", "HEADERS")
_PROXY: Final = "_PROXY"

_configured: Final[set[str]] = set()


def keep_back(names: Iterable[str]) -> None:
    """Treat these variables as secret from now on: the configuration says that they hold keys or tokens."""
    _configured.update(name for name in names if name)


def child_environment(base: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` without secrets, then `extra` as it is: what is named there was meant.

    A proxy is passed on without the user and password in its address.
    """
    passed: dict[str, str] = {}
    for name, value in base.items():
        is_proxy = name.upper().endswith(_PROXY)
        bare = _userinfo().sub(r"\1", value) if is_proxy else value
        if not is_secret(name, bare):
            passed[name] = bare
    return passed | dict(extra or {})


def without_keys(value: str, mark: str) -> str:
    """Replace by `mark` every credential in a value that is one by its looks.

    What may be a path stays: a program that is loaded (`LD_PRELOAD=bearer ./x.so`) must be seen and known.
    """

    def marked(found: "re.Match[str]") -> str:
        is_path = "/" in found[0].partition("://")[2] or ("/" in found[0] and "://" not in found[0])
        return found[0] if is_path and not found[0].startswith("-----BEGIN") else mark

    return _looks_secret().sub(marked, value)


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable is not for a child to see, by the configuration, by its name or by its value."""
    return _is_secret_name(name, value) or _looks_secret().search(value) is not None


def is_kept_unseen(name: str, value: str) -> bool:
    """Return whether a configuration's value is shown and written down nowhere: a secret by its name, and no program.

    A value that only looks like a secret is not one of these: `without_keys` is for its parts. Something to run could
    hide beside a password otherwise.
    """
    return _is_secret_name(name, value) and not name.upper().endswith(_PROGRAMS)


def _is_secret_name(name: str, value: str) -> bool:
    if name in _configured:
        return True
    if value.strip().lower() in _SWITCHES:
        return False
    upper = name.upper()
    if upper in _NAMES:
        return True
    if upper.startswith(_OF_GIT):
        return False
    plain = _without_number(upper)
    if is_harmless_name(name):
        return False
    if plain.startswith("GPG_KEY") and _is_fingerprint(value):
        return False  # the name of a public key, as images of Docker have it
    words = plain.replace("-", "_").replace(".", "_").split("_")
    if value.isdecimal() and any(word in _COUNTED for word in words):
        return False
    if plain.endswith(_GLUED_ENDINGS) or not _WORDS.isdisjoint(words):
        return True
    return f"_{plain}".endswith(tuple(f"_{ending}" for ending in _WORD_ENDINGS))


def is_harmless_name(name: str) -> bool:
    """Return whether a variable's name only looks like that of a secret: the working folder, or another word."""
    plain = _without_number(name.upper())
    return plain in _NO_SECRETS or plain.endswith(_OTHER_WORDS)


def _is_fingerprint(value: str) -> bool:
    return len(value) == _FINGERPRINT and all(character in "0123456789abcdefABCDEF" for character in value)


def _without_number(upper: str) -> str:
    """Return the name without the number of `OPENAI_API_KEY_2`."""
    return upper.rstrip("0123456789").rstrip("_")


# Compiled when they are first needed: this module is part of the start of every child, and of our own.
@cache
def _looks_secret() -> "re.Pattern[str]":
    """Values that are credentials whatever their variable is called.

    A key stands alone or behind a blank, quote, colon, comma or equals sign: as part of a path it is none.
    """
    return re.compile(
        r"""(?x)
        # A URL with a password, or with a token in place of a user.
        [A-Za-z][A-Za-z0-9+.-]*://(?: [^/\s:@]*:[^/\s@]+ | [^/\s:@]{20,} )@
        # A password as a parameter of a URL or of a connection string.
        | (?: ^ | [?&;\s] )(?i: password | passwd | pwd | token | access_token | api_?key | client_secret | secret
            | accountkey | sharedaccesskey )=(?: [^&;:,\s]+ | [:,] )
        | (?i: \b(?: bearer | basic )\s+[a-z0-9._~+/=-]{16,} )
        | -----BEGIN[ ](?: [A-Z0-9 ]+-----(?: \s*[A-Za-z0-9+/=]{40,} )* )?
        | (?<! [\w/.-] )(?:
            sk-(?= [\w-]*\d )[\w-]{20,}
            | (?: ghp | gho | ghu | ghs | ghr )_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
            | xox[a-z]-[\w-]{10,} | xapp-[\w-]{10,} | (?: AKIA | ASIA )[A-Z0-9]{16}\b | AIza[\w-]{30,}
            | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{20,} | pypi-[\w-]{20,} | gsk_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,}
            | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*
        )"""
    )


@cache
def _userinfo() -> "re.Pattern[str]":
    """Return the address of a proxy up to its host; a password may hold any character."""
    return re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://|)\S*@")
