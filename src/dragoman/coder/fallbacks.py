"""Other models that answer while the one that was chosen is limited, overloaded or away.

The user's list (`fallback_models`), in its order; the chosen model stays what the session's option says. A model of the
list is passed over if it cannot be had, if the administrator does not allow it, if it has failed in this turn, or if
the conversation does not fit its window: a summary for its sake would shorten the conversation for good. Images that a
model cannot see are markers in what it is sent, and the notice says so.

It answers to the end of the turn. The next prompt goes to the chosen model again, unless its provider has said how long
it is to be left alone: then not before that time is over.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from dragoman.coder.context import Item, media_of
from dragoman.coder.models.contract import HasThoughtLevels, Model, ModelFailed
from dragoman.coder.models.request_failures import NEVER
from dragoman.coder.retries import in_words, may_pass
from dragoman.coder.setup import COMPACT_ABOVE
from dragoman.errors import RequestFailed
from dragoman.vocabulary.events import BROKEN_OFF, Notice

# A provider that asks for more is believed for a day: a process may run for weeks.
_LONGEST_REST: Final = 24 * 3600.0

_log = logging.getLogger(__name__)


class Answering(NamedTuple):
    """A model that answers, with the system prompt and the level of thought that fit it."""

    model: Model
    system: str
    thought_level: str


class Fallback(NamedTuple):
    """A model that answers in the place of another, and what the user is told."""

    answering: Answering
    notice: Notice


class Fallbacks:
    """The list of one session, and which models are to be left alone for a while."""

    def __init__(
        self,
        names: Sequence[str] = (),
        find: Callable[[str], Model] | None = None,
        refusal: Callable[[str], str] = lambda name: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` returns a model by its name or raises `RequestFailed`; `refusal` says why one may not be used."""
        self._names = tuple(names)
        self._find = find
        self._refusal = refusal
        self._clock = clock
        self._busy_until: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Fallbacks {', '.join(self._names) or 'none'}>"

    @property
    def is_any(self) -> bool:
        """Whether the list has a model at all."""
        return bool(self._names)

    def leave_alone(self, model: Model, failure: ModelFailed) -> None:
        """Record that a provider has said how long it will refuse."""
        if failure.retry_seconds is not None and failure.retry_seconds != NEVER:
            self._busy_until[model.name] = self._clock() + min(failure.retry_seconds, _LONGEST_REST)

    def rest(self, model: Model) -> float:
        """Return for how many seconds a model is to be left alone; 0: it can be asked."""
        return max(self._busy_until.get(model.name, 0.0) - self._clock(), 0.0)

    def candidate(self, passed_over: set[str], tokens: int) -> Model | None:
        """Return the first model of the list that may answer a conversation of so many tokens; None: there is none."""
        for name in self._names:
            if (model := self._usable(name)) is None or model.name in passed_over or self.rest(model):
                continue
            if model.window is not None and tokens > COMPACT_ABOVE * model.window:
                _log.info("%s does not take over: the conversation does not fit its window", model.name)
                continue
            return model
        return None

    def _usable(self, name: str) -> Model | None:
        try:
            model = None if self._find is None else self._find(name)
        except RequestFailed as error:
            _log.info("fallback model %s cannot be used: %s", name, error.code)
            return None
        return None if model is None or self._refusal(model.name) else model

    def problems(self) -> list[str]:
        """Return a sentence for each model of the list that cannot be used."""
        found = []
        for name in self._names:
            try:
                reason = "" if self._find is None else self._refusal(self._find(name).name)
            except RequestFailed as error:
                reason = error.message
            if reason:
                found.append(f"{name} of fallback_models is not used: {reason}")
        return found


class TurnFallbacks:
    """The models that one turn may fall back to. `prepare` makes a model ready to answer in it."""

    def __init__(self, fallbacks: Fallbacks, prepare: Callable[[Model], Awaitable[Answering]]) -> None:
        self._fallbacks = fallbacks
        self._prepare = prepare
        self._passed_over: set[str] = set()

    def is_there(self, model: Model, tokens: int) -> bool:
        """Return whether another model can answer in the place of `model`."""
        return self._fallbacks.candidate(self._passed_over | {model.name}, tokens) is not None

    async def first(self, chosen: Model, items: Sequence[Item], tokens: int) -> Fallback | None:
        """Return the model for a turn whose chosen one is to be left alone still; None: the chosen one answers."""
        rest = self._fallbacks.rest(chosen)
        if not rest:
            return None
        return await self._fall_back(
            chosen, f"{chosen.name} is not to be asked for another {in_words(rest)}", items, tokens
        )

    async def after(
        self, model: Model, failure: ModelFailed, items: Sequence[Item], tokens: int, *, is_broken_off: bool
    ) -> Fallback | None:
        """Return the model that answers after this failure of `model`; None: there is none, or it would not help."""
        if not may_pass(failure):
            return None
        self._fallbacks.leave_alone(model, failure)
        return await self._fall_back(model, str(failure), items, tokens, is_broken_off=is_broken_off)

    async def _fall_back(
        self, model: Model, why: str, items: Sequence[Item], tokens: int, *, is_broken_off: bool = False
    ) -> Fallback | None:
        self._passed_over.add(model.name)
        other = self._fallbacks.candidate(self._passed_over, tokens)
        if other is None:
            return None
        _log.info("%s answers in the place of %s", other.name, model.name)
        answering = await self._prepare(other)
        blind = "" if "image" in other.sees or not any(map(media_of, items)) else "; it does not see the images"
        notice = Notice("warning", f"{why}. {other.name} answers to the end of this turn{blind}")
        return Fallback(answering, broken_off(notice) if is_broken_off else notice)


def broken_off(notice: Notice) -> Notice:
    """Return a notice that also tells that the answer so far is broken off, and begins anew."""
    return msgspec.structs.replace(notice, meta={BROKEN_OFF: True})


def level_for(model: Model, wanted: str) -> str:
    """Return the level of thought for a model that takes over: the wanted one if it has that, else as it likes."""
    return wanted if isinstance(model, HasThoughtLevels) and wanted in model.thought_levels else ""
