"""`--trace FILE`: each frame as a JSON line, with the time and the direction; secrets are left out.

What is a secret: the value of anything named like one (a key of an object, an environment variable, a header, an
option of a command), the value of such a variable in our own environment wherever it stands, and text that has the
form of a known kind of key. A person who pastes a password into a prompt is beyond this. A path that exists is no
secret, whatever its variable is called: a trace without its paths cannot be read.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from dragoman.cli.errors import CommandError
from dragoman.host.environment import is_harmless_name, is_secret

Trace = Callable[[Literal["in", "out"], bytes], None]

_REDACTED: Final = "[redacted]"
# Shorter values of our environment are words like `true` that stand everywhere.
_SECRET_LENGTH: Final = 8
_NAMES: Final = r"(?:api|access|private|ssh|signing)[-_.]?keys?|credentials?|passw(?:or)?d|passphrase|secret|tokens?\b"
_SECRET_NAME: Final = re.compile(
    rf"{_NAMES}|authorization$|^auth$|cookie|(?:^|[-_])(?:auth|key|pat|dsn)$|[-_]pwd$|token$", re.IGNORECASE
)
# Values that stand for a missing or public password; hiding such a word wherever it stands makes a trace unreadable.
_COMMON_VALUES: Final = frozenset(
    {
        *("password", "passw0rd", "changeme", "change-me", "example.com", "localhost", "127.0.0.1", "postgres"),
        *("anonymous", "username", "disabled", "undefined", "required", "optional", "development", "production"),
    }
)
_SECRET_OPTION: Final = re.compile(rf"--?[\w-]*(?:{_NAMES}|auth)", re.IGNORECASE)
_SECRET_TEXT: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|xox[abprs]-[\w-]{10,}|AIza[\w-]{20,}|AKIA[A-Z0-9]{12,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=\bBearer )[\w.~+/=-]{8,}|(?<=\bBasic )[\w+/=]{8,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)",
    re.DOTALL,
)
_ASSIGNMENT: Final = re.compile(rf"([\w-]*(?:{_NAMES})[\w-]*=)[^\s&\"';]+", re.IGNORECASE)


def open_trace(path: str) -> Trace:
    """Return a trace that appends to a file only its owner can read; line by line, as crashes are what it is for."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    except OSError as error:
        raise CommandError(f"{path}: cannot write the trace: {error.strerror}") from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)  # it may be older than this trace
    known = secrets_of(os.environ)

    def trace(direction: Literal["in", "out"], frame: bytes) -> None:
        line = {"time": round(time.time(), 6), "direction": direction, "frame": redact(frame, known)}
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError:
            pass  # a full disk must not stop the conversation

    return trace


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values that must not be written, wherever they turn up.

    The longest first, as one may contain another.
    """
    found = {value for name, value in environment.items() if is_secret(name, value)}
    return sorted((value for value in found if _is_worth_hiding(value)), key=len, reverse=True)


def _is_secret_pair(name: str, value: str) -> bool:
    """Return whether a variable or header of a frame has a value that is not written."""
    return is_secret(name, value) or (not is_harmless_name(name) and _SECRET_NAME.search(name) is not None)


def _is_worth_hiding(value: str) -> bool:
    """Return whether a secret's value is hidden wherever it stands: not a short or common word, not a path."""
    if len(value) < _SECRET_LENGTH or value.lower() in _COMMON_VALUES:
        return False
    try:
        return not os.path.exists(value)
    except ValueError:
        return True


def redact(frame: bytes, known: Iterable[str] = ()) -> object:
    """Return the frame as JSON without secrets; as text where it is no JSON."""
    try:
        return _clean(msgspec.json.decode(frame), known)
    except (ValueError, RecursionError):
        return _clean_text(frame.decode("utf-8", "replace"), known)


def _clean(value: object, known: Iterable[str]) -> object:
    if isinstance(value, dict):
        named = value.get("name")
        inner_value = value.get("value")
        hides = isinstance(named, str) and isinstance(inner_value, str) and _is_secret_pair(named, inner_value)
        return {
            key: _hidden(item, known) if _SECRET_NAME.search(key) or (hides and key == "value") else _clean(item, known)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _clean(item, known) if not _is_option(before) else _hidden(item, known) for before, item in _pairs(value)
        ]
    return _clean_text(value, known) if isinstance(value, str) else value


def _hidden(value: object, known: Iterable[str]) -> object:
    """Return what stands under a secret's name. An object there has names of its own, such as the capability `auth`."""
    if isinstance(value, list):
        return [_hidden(item, known) for item in value]
    return _REDACTED if isinstance(value, str) and value else _clean(value, known)


def _pairs(values: list[object]) -> Iterable[tuple[object, object]]:
    return zip([None, *values], values, strict=False)


def _is_option(value: object) -> bool:
    """Return whether the next argument of a command is the value of a secret option: `["--api-key", "…"]`."""
    return isinstance(value, str) and "=" not in value and _SECRET_OPTION.fullmatch(value) is not None


def _clean_text(text: str, known: Iterable[str]) -> str:
    for secret in known:
        text = text.replace(secret, _REDACTED)
    return _ASSIGNMENT.sub(rf"\1{_REDACTED}", _SECRET_TEXT.sub(_REDACTED, text))
