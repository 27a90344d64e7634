"""What of a frame is written to a trace: all but secrets, and byte for byte where there is none.

What is a secret: the value of anything named like one (a key of an object, an environment variable, a header, an
option of a command), the value of such a variable in our own environment wherever it stands, and text that has the
form of a known kind of key. A person who pastes a password into a prompt is beyond this. A path that exists is no
secret, whatever its variable is called: a trace without its paths cannot be read.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from dragoman.host.environment import is_harmless_name, is_secret

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
# Possessive, and never begun inside of a word: a picture in base64 is one word of megabytes.
_ASSIGNMENT: Final = re.compile(r"(?<![\w.-])([\w.-]++)=([^\s&\"';]++)")
_ASSIGNED_NAME: Final = re.compile(_NAMES, re.IGNORECASE)
# A pair of an object, in text that is no JSON as a whole.
_PAIR: Final = re.compile(r'("([^"\\]{1,100})"\s{0,9}:\s{0,9}")((?:[^"\\]|\\.)++)')


class RedactedFrame(NamedTuple):
    """A frame as it is written: its text, and whether that differs from what passed."""

    text: str
    is_changed: bool


def redact_frame(frame: bytes, known: Iterable[str] = ()) -> RedactedFrame:
    """Return the text of a frame without secrets; the very text that passed, if it has none."""
    try:
        text = frame.decode()
        message = msgspec.json.decode(frame)
        cleaned = _clean(message, known)
        if cleaned == message and not _repeats_a_key(text, message):
            return RedactedFrame(text, is_changed=False)
        return RedactedFrame(msgspec.json.encode(cleaned).decode(), is_changed=True)
    except (ValueError, RecursionError):
        text = frame.decode("utf-8", "replace")
        cleaned_text = _clean_broken(text, known)
        return RedactedFrame(cleaned_text, is_changed=cleaned_text.encode() != frame)


def _repeats_a_key(text: str, message: object) -> bool:
    """Return whether an object of the text has a key twice: only the last value was decoded, so only that was judged.

    A text that is as long as the message when it is written again cannot hide a value; most are.
    """
    if len(text) == len(msgspec.json.encode(message).decode()):
        return False
    repeats = False

    def note(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeats
        repeats = repeats or len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=note)
    return repeats


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
        return _clean_broken(frame.decode("utf-8", "replace"), known)


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


def redact_value(value: object, known: Iterable[str] = ()) -> object:
    """Return any JSON without secrets, such as the words of a command or what a program wrote."""
    return _clean(value, known)


def _clean_text(text: str, known: Iterable[str]) -> str:
    for secret in known:
        text = text.replace(secret, _REDACTED)
    return _ASSIGNMENT.sub(_assignment, _SECRET_TEXT.sub(_REDACTED, text))


def _assignment(found: "re.Match[str]") -> str:
    return f"{found[1]}={_REDACTED}" if _ASSIGNED_NAME.search(found[1]) else found[0]


def _clean_broken(text: str, known: Iterable[str]) -> str:
    """Return text that may be the beginning of a message, without secrets."""
    return _PAIR.sub(
        lambda found: f"{found[1]}{_REDACTED}" if _SECRET_NAME.search(found[2]) else found[0], _clean_text(text, known)
    )
