"""How long a provider asks us to wait, wherever it says so: in a header, in the body of its error, in its words. Pure.

What is said more exactly comes first: `Retry-After` and its milliseconds, then the resets of limits that are used up,
then Google's `RetryInfo`, then words such as "Please try again in 1m2s", which OpenAI puts into errors of a stream. A
hint that is no time to go by (negative, not finite, unreadable) counts as none.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, cast

from dragoman.coder.models.wires.errors import error_fields

# A limit of a day is used up: what Google asks us to wait beside it is the limit of a minute.
WHOLE_DAY: Final = math.inf

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_IN_WORDS: Final = re.compile(
    r"(?:try again|retry|wait)\s+(?:in|after|for)?\s*(?P<time>(?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d)(?![a-z])\s?)+"
    r"|\d+(?:\.\d+)?\s+(?:second|minute|hour)s?)",
    re.IGNORECASE,
)
_WORD_UNITS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
# Of a message, what is looked through.
_WORDS: Final = 2_000
# Seconds since the epoch, and milliseconds: a reset that is no duration.
_EPOCH: Final = 1e9
_EPOCH_MS: Final = 1e12

# Each limit as the header of what is left of it, and the header of its reset; in OpenAI's and in Anthropic's names.
_LIMITS: Final = (
    *((f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}") for what in ("requests", "tokens")),
    *(
        (f"anthropic-ratelimit-{what}-remaining", f"anthropic-ratelimit-{what}-reset")
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("", "anthropic-ratelimit-unified-reset"),
)


def wait_from_headers(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the headers of an answer ask for; `now` is the time since the epoch. None: they do not.

    The names in `headers` are looked up in small letters.
    """
    now = _time_of_server(headers, now)
    if (wait := _number(headers.get("retry-after-ms", ""))) is not None:
        return _usable(wait / 1000)
    if said := headers.get("retry-after", ""):
        wait = _number(said)
        if wait is None and (at := _date(said)) is not None:
            wait = max(at - now, 0.0)
        if (usable := _usable(wait)) is not None:
            return usable
    return _reset(headers, now)


def wait_from_body(body: object) -> float | None:
    """Return the seconds that the body of an error asks for; `WHOLE_DAY` where a limit of a day is used up."""
    fields = error_fields(body)
    details = fields.get("details")
    parts = [cast(dict[str, object], one) for one in details if isinstance(one, dict)] if type(details) is list else []
    if any(_is_daily(part) for part in parts):
        return WHOLE_DAY
    for part in parts:
        if str(part.get("@type", "")).endswith("google.rpc.RetryInfo"):
            return _usable(_duration(str(part.get("retryDelay", ""))))
    words = fields.get("message")
    return wait_from_words(words if isinstance(words, str) else body if isinstance(body, str) else "")


def wait_from_words(words: str) -> float | None:
    """Return the seconds that a sentence asks for, such as "Please try again in 1m2.5s"."""
    found = _IN_WORDS.search(words[:_WORDS])
    if found is None:
        return None
    time = found["time"].lower()
    for unit, seconds in _WORD_UNITS.items():
        if unit in time:
            return float(time.split()[0]) * seconds
    return _usable(_duration(time.replace(" ", "")))


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return when the limits that are used up begin anew; where none says how much is left, the first that does."""
    used_up, unknown = [], []
    for left, reset in _LIMITS:
        wait = _moment(headers.get(reset, ""), now)
        if wait is None:
            continue
        remaining = _number(headers.get(left, ""))
        if remaining is None:
            unknown.append(wait)
        elif remaining <= 0:
            used_up.append(wait)
    return max(used_up) if used_up else min(unknown, default=None)


def _moment(said: str, now: float) -> float | None:
    """Return the seconds until a reset: a duration, a number of seconds, a time since the epoch, or a date."""
    if not said:
        return None
    number = _number(said)
    if number is None:
        at = _iso(said)
        return _usable(_duration(said) if at is None else max(at - now, 0.0))
    if number >= _EPOCH:
        number = max((number / 1000 if number >= _EPOCH_MS else number) - now, 0.0)
    return _usable(number)


def _is_daily(part: Mapping[str, object]) -> bool:
    violations = part.get("violations")
    found: Iterable[object] = violations if isinstance(violations, list) else ()
    return any(isinstance(one, dict) and "PerDay" in str(one.get("quotaId", "")) for one in found)


def _time_of_server(headers: Mapping[str, str], now: float) -> float:
    """Return the server's time, which its dates are in; our clock may be wrong."""
    at = _date(headers.get("date", ""))
    return now if at is None else at


def _duration(text: str) -> float | None:
    """Return the seconds of a duration such as `1m2.5s`."""
    if _DURATION.fullmatch(text) is None:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _date(text: str) -> float | None:
    try:
        found = parsedate_to_datetime(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _iso(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _usable(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 <= seconds < math.inf else None
