"""`script:FILE`: a model that plays a script. For tests, and for anyone who wants an exact agent.

Each prompt of a session plays the next turn, the last one again when none is left. Calls that stand together are one
response of the model; what follows them is the next response.
"""

import itertools
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Final, NamedTuple, cast

import msgspec

from dragoman.coder.models.contract import (
    FAILURE_KINDS,
    FailureKind,
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.request_failures import ProviderBusy

# A script is exact, so its retries are quick.
_RETRY_SECONDS: Final = 0.01
_ENDS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error")
_FAILURES: Final = {
    "auth": "The model wants a login",
    "rate_limit": "The model's rate limit is reached",
    "network": "The model cannot be reached",
    "server": "The model's server failed",
    "garbage": "The model's answer cannot be read",
}


class ScriptError(Exception):
    """A script that cannot be played; the text says where."""


class Say(NamedTuple):
    """Text or a thought, said `repeat` times, each after a wait."""

    text: str
    thought: bool
    repeat: int
    seconds: float


class Fail(NamedTuple):
    """The model call fails; None: every time. `retry_after`: as a provider that asks to wait so many seconds."""

    kind: FailureKind
    times: int | None
    retry_after: float | None = None

    def failure(self) -> ModelFailed:
        """Return the failure that the model is to raise."""
        if self.retry_after is None:
            return ModelFailed(self.kind, _FAILURES[self.kind])
        return ProviderBusy(self.kind, _FAILURES[self.kind], self.retry_after)


Step = Say | ToolCallRequested | UsageReported | ModelFinished | Fail


class Script(NamedTuple):
    """A whole script."""

    turns: tuple[tuple[Step, ...], ...]
    window: int | None
    agents: dict[str, "Script"]


def load(path: str) -> Script:
    """Read a script from a file."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScriptError(f"cannot read the script: {reason}") from error
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"the script is not JSON: {_json_error(text, error)}") from error
    return parse(value)


def parse(value: object, place: str = "$") -> Script:
    """Return a script from plain JSON values, or `ScriptError` with the place."""
    body = _object(value, place, {"turns", "window", "agents"})
    turns = _list(body.get("turns"), f"{place}.turns")
    if not turns:
        raise ScriptError(f"{place}.turns: a script needs at least one turn")
    agents = body.get("agents", {})
    if not isinstance(agents, dict):
        raise ScriptError(f"{place}.agents: must be an object")
    return Script(
        tuple(_turn(turn, f"{place}.turns[{index}]") for index, turn in enumerate(turns)),
        _count(body["window"], f"{place}.window", 1) if "window" in body else None,
        {str(name): parse(agent, f"{place}.agents.{name}") for name, agent in agents.items()},
    )


class ScriptModel:
    """Plays a script for one session."""

    def __init__(self, script: Script) -> None:
        self.name = "script"
        self.window = script.window
        self.sees: frozenset[str] = frozenset({"image", "audio"})
        self.helper_kinds = tuple(script.agents)
        self._script = script
        # How often each assistant was asked for: the next one plays the next turn.
        self._assistants: dict[str, int] = {}
        self._turn = -1
        self._step = 0
        self._failures = 0

    def begin_turn(self) -> None:
        """Go to the next turn of the script; after the last one, play that again."""
        self._turn = min(self._turn + 1, len(self._script.turns) - 1)
        self._step = 0
        self._failures = 0

    def assistant(self, name: str) -> "ScriptModel":
        """Return a model that plays the next turn of what the script has under this name; without that, nothing.

        A new one each time: assistants of one name may run at the same time.
        """
        asked_before = self._assistants.get(name, 0)
        self._assistants[name] = asked_before + 1
        found = ScriptModel(self._script.agents.get(name, Script(((),), self.window, {})))
        found._turn = asked_before - 1
        return found

    def retry_seconds(self, attempt: int) -> float:
        """Return a short constant delay: a scripted failure needs no back-off."""
        return _RETRY_SECONDS

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Yield the next response of this turn; after a failure, what is left of it."""
        if request.purpose == "summary":
            yield TextDelta(f"A summary of {len(request.items) - 1} items.")
            return
        from asyncio import sleep  # not before `initialize` is answered

        steps = self._script.turns[self._turn]
        called = False
        while self._step < len(steps):
            step = steps[self._step]
            if called and not isinstance(step, ToolCallRequested):
                return
            if isinstance(step, Fail) and self._fails(step):
                raise step.failure()
            self._step += 1
            match step:
                case Say():
                    for piece in _pieces(step):
                        if step.seconds:
                            await sleep(step.seconds)
                        yield piece
                case ToolCallRequested():
                    called = True
                    yield step
                case UsageReported():
                    yield step
                case ModelFinished():
                    yield step
                    return
                case Fail():
                    self._failures = 0

    def _fails(self, step: Fail) -> bool:
        """Return whether the call fails once more."""
        if step.times is not None and self._failures >= step.times:
            return False
        self._failures += 1
        return True


def _pieces(step: Say) -> Iterator[Piece]:
    piece = ThoughtDelta(step.text) if step.thought else TextDelta(step.text)
    return itertools.repeat(piece, step.repeat)


def _json_error(text: bytes, error: Exception) -> str:
    """Return the complaint of the JSON parser, with line and column where it names a byte."""
    place = re.search(r" \(byte (\d+)\)$", str(error))
    if place is None:
        return str(error)
    before = text[: int(place[1])]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"{str(error)[: place.start()]} (line {line}, column {column})"


# -- reading ---------------------------------------------------------------------------------------------------------


def _turn(value: object, place: str) -> tuple[Step, ...]:
    body = _object(value, place, {"steps"})
    steps = _list(body.get("steps"), f"{place}.steps")
    return tuple(_step(step, f"{place}.steps[{index}]") for index, step in enumerate(steps))


def _step(value: object, place: str) -> Step:
    if not isinstance(value, dict):
        raise ScriptError(f"{place}: a step must be an object")
    named = [name for name in ("say", "think", "call", "stop", "fail", "usage") if name in value]
    if len(named) != 1:
        raise ScriptError(f"{place}: a step is one of say, think, call, stop, fail, usage")
    match named[0]:
        case "say" | "think" as kind:
            body = _object(value, place, {kind, "repeat", "delay_ms"})
            repeat = _count(body.get("repeat", 1), f"{place}.repeat", 0)
            delay = _count(body.get("delay_ms", 0), f"{place}.delay_ms", 0)
            return Say(_text(body[kind], f"{place}.{kind}"), kind == "think", repeat, delay / 1000)
        case "call":
            body = _object(value, place, {"call", "input"})
            return ToolCallRequested(
                _text(body["call"], f"{place}.call"), _object(body.get("input", {}), f"{place}.input", None)
            )
        case "stop":
            body = _object(value, place, {"stop"})
            return ModelFinished(_one_of(body["stop"], _ENDS, f"{place}.stop"))
        case "fail":
            body = _object(value, place, {"fail", "times", "retry_after"})
            kind_of = cast(FailureKind, _one_of(body["fail"], FAILURE_KINDS, f"{place}.fail"))
            times = _count(body["times"], f"{place}.times", 1) if "times" in body else None
            return Fail(kind_of, times, _amount(body, "retry_after", place))
        case _:
            body = _object(value["usage"], f"{place}.usage", {"input", "output", "cost"})
            given, made = (_count(body.get(name, 0), f"{place}.usage.{name}", 0) for name in ("input", "output"))
            return UsageReported(given, made, _amount(body, "cost", f"{place}.usage"))


def _object(value: object, place: str, known: set[str] | None) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ScriptError(f"{place}: must be an object")
    for name in value:
        if known is not None and name not in known:
            raise ScriptError(f"{place}.{name}: unknown; known here: {', '.join(sorted(known))}")
    return cast(dict[str, object], value)


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise ScriptError(f"{place}: must be a list")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ScriptError(f"{place}: must be text")
    return value


def _count(value: object, place: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise ScriptError(f"{place}: must be a whole number, {least} or more")
    return value


def _amount(body: dict[str, object], name: str, place: str) -> float | None:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | None) or not 0 <= (value or 0) < float("inf"):
        raise ScriptError(f"{place}.{name}: must be a number, 0 or more")
    return None if value is None else float(value)


def _one_of(value: object, known: tuple[str, ...], place: str) -> str:
    if value not in known:
        raise ScriptError(f"{place}: must be one of {', '.join(known)}")
    return str(value)
