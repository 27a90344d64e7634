"""Keys for model providers: from the environment, then from `credentials.toml`.

Promise: a key gets into no repr, traceback or log by accident (`Secret`), the file has mode 0600 and is written whole
or not at all, and text from a peer is `without_secrets` before a person sees it.
Reads no environment by itself: it comes in as an argument.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from dragoman.coder.models.known_providers import KNOWN_PROVIDERS
from dragoman.host.private_file import write_private
from dragoman.limits import KIB

# The environment variable that holds each provider's key.
KEY_VARIABLES: Final = {name: known.key_variable for name, known in KNOWN_PROVIDERS.items() if known.key_variable}

# A few keys of a few hundred characters each; more is another file.
_FILE_BYTES: Final = 64 * KIB
# Keys go into HTTP headers: visible ASCII and nothing else. The longest known ones (JWTs) have a few thousand.
_KEY: Final = re.compile(r"[\x21-\x7e]{1,8192}")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HIDDEN: Final = "[hidden]"
# What looks like a secret though we do not know it: keys by their usual beginnings, and passwords inside URLs.
_LOOKS_SECRET: Final = r"""(?ix) \b(?: sk | pk | rk | key | gsk | xai | hf | ghp ) [-_] [a-z0-9*_.-]{6,}
    | \bAIza [a-z0-9*_-]{6,}
    | \b(?: x-api-key | x-goog-api-key | api[-_]?key | authorization | token | password )
      ["']? \s* [:=] \s* ["']? (?: (?: bearer | basic ) \s+ )? \S+
    | \b(?: bearer | basic ) \s+ [a-z0-9*._~+/=-]{6,}
    | \b key = \S+
    | (?<=://) [^\s/@]+ @"""


class Secret:
    """A text that shows itself only to who asks by name."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself: for the header it goes into, and for nothing that is kept."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __str__(self) -> str:
        return _HIDDEN

    def __format__(self, spec: str) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        import hmac

        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not pickled.")


def without_secrets(text: str, known: Iterable[Secret] = ()) -> str:
    """Return the text without the known secrets and without what looks like one."""
    for secret in known:
        value = secret.reveal()
        # A short one would tear words apart, and is no real key.
        if len(value) >= 6:
            text = text.replace(value, _HIDDEN)
    return re.sub(_LOOKS_SECRET, _HIDDEN, text)


class CredentialsError(Exception):
    """The file cannot be used; the text is fit for the user and tells nothing of what is in it."""


class Credentials(NamedTuple):
    """What is in the file: a key for each provider that has one."""

    keys: Mapping[str, Secret] = {}
    # What the owner should know about the file; empty: nothing.
    warning: str = ""

    def find(self, provider: str, environment: Mapping[str, str], variable: str | None = None) -> Secret | None:
        """Return the provider's key: the environment's, else the file's.

        `variable` is asked in place of the usual one.
        """
        variable = variable or KEY_VARIABLES.get(provider)
        value = environment.get(variable, "").strip() if variable else ""
        return Secret(value) if value else self.keys.get(provider)


def check_key(text: str) -> Secret:
    """Return a typed key without the blanks around it. Raise `CredentialsError` if it cannot be a key."""
    text = text.strip()
    if _KEY.fullmatch(text) is None:
        raise CredentialsError("That is no key: a key is one line of letters, digits and signs without spaces.")
    return Secret(text)


# -- the file --------------------------------------------------------------------------------------------------------


def load(path: Path) -> Credentials:
    """Return the file's keys; none if there is no file."""
    keys, warning = {}, ""
    document, mode = _read(path)
    if mode & 0o044:
        warning = f"Other users can read {path.name}, which holds keys. Run: chmod 600 {path}"
    for provider, table in document.items():
        key = table.get("api_key", "")
        if key and _KEY.fullmatch(key) is None:
            raise CredentialsError(f"{path.name}: the api_key of {provider!r} is no key. Run dragoman login again.")
        if key:
            keys[provider] = Secret(key)
    return Credentials(keys, warning)


def save(path: Path, provider: str, key: Secret) -> None:
    """Put a provider's key into the file, in place of the one before."""
    if _PLAIN_NAME.fullmatch(provider) is None:
        raise CredentialsError("That is no name of a provider.")
    with _FileLock(path):
        document, _ = _read(path)
        document[provider] = document.get(provider, {}) | {"api_key": key.reveal()}
        _write(path, document)


def forget(path: Path, provider: str) -> bool:
    """Take a provider's key out of the file. False: there was none."""
    if not path.exists():
        return False
    with _FileLock(path):
        document, _ = _read(path)
        if document.pop(provider, None) is None:
            return False
        _write(path, document)
    return True


class _FileLock:
    """While this is held no other process of ours changes the file; it makes the folder where there is none."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent

    def __enter__(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            raise CredentialsError(f"Cannot use the folder {self._folder}: {error.strerror}.") from None

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


_Document = dict[str, dict[str, str]]


def _read(path: Path) -> tuple[_Document, int]:
    """Return what is in the file, and its permissions."""
    try:
        # Not blocking: the path may be a pipe.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}, 0
    except OSError as error:
        raise CredentialsError(f"Cannot read {path}: {error.strerror}.") from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise CredentialsError(f"{path} is not a file.")
        # Who can write it can have our prompts sent to an account of theirs.
        if status.st_mode & 0o022 or status.st_uid not in (os.geteuid(), 0):
            raise CredentialsError(f"Other users can change {path}, so it is not used. Run: chmod 600 {path}")
        content = file.read(_FILE_BYTES + 1)
    if len(content) > _FILE_BYTES:
        raise CredentialsError(f"{path} is too large to be a file of keys.")
    return _parse(path, content), status.st_mode


def _parse(path: Path, content: bytes) -> _Document:
    import tomllib  # most people have no such file

    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        # The parser's complaint would quote the file.
        raise CredentialsError(f"{path} is not valid TOML. Correct it, or delete it and run dragoman login.") from None
    for provider, table in document.items():
        if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
            raise CredentialsError(f'{path}: expected [{provider}] with api_key = "…" below it.')
    return document


def _write(path: Path, document: _Document) -> None:
    """Write the file whole or not at all, readable by its owner alone from its first byte on."""
    target = Path(os.path.realpath(path))
    try:
        write_private(target, _render(document).encode())
    except OSError as error:
        raise CredentialsError(f"Cannot write {path}: {error.strerror}.") from None


def _render(document: _Document) -> str:
    lines = ["# Keys for model providers. Written by `dragoman login`; comments here do not survive it."]
    for provider, table in document.items():
        lines += [
            "",
            f"[{_toml_string(provider)}]",
            *(f"{_toml_string(name)} = {_toml_string(text)}" for name, text in table.items()),
        ]
    return "\n".join(lines) + "\n"


def _toml_string(text: str) -> str:
    """Return a TOML basic string; a plain name may stand without quotes, but need not."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
