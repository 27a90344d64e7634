"""The models that providers list, as far as they are known here: in memory, and for a day on disk.

A list is a help for pickers and decides nothing: any name of a provider can be used without being listed. So everything
here fails quietly, with a line in the debug log: without a list a picker shows the defaults.

On disk a list is a file of names and descriptions for one provider at one address, in `models` of the cache folder,
readable by its owner alone. No key is in it, nor made from one.
"""

import asyncio
import hashlib
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from dragoman.background import call_in_background
from dragoman.coder.models.descriptions import NOTHING, ListedModel, ModelDescription
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.names import is_model_name
from dragoman.host.private_file import write_private
from dragoman.host.regular_file import read_whole
from dragoman.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Clock = Callable[[], float]
    Lister = Callable[[Endpoint], Awaitable[list[ListedModel]]]

FRESH_SECONDS: Final = 24 * 3600.0
# A provider that could not be asked is not asked again at every session.
_RETRY_SECONDS: Final = 600.0
_FILE_BYTES: Final = 512 * KIB

_log = logging.getLogger(__name__)


class _ModelList(NamedTuple):
    """Models, and when they were listed, in seconds since the epoch."""

    models: tuple[ListedModel, ...]
    at: float


class ModelCatalog:
    """The lists of one process. `folder` is the cache folder; empty: nothing is written to disk."""

    def __init__(self, folder: str, clock: "Clock" = time.time) -> None:
        self._folder = os.path.join(folder, "models") if folder else ""
        self._clock = clock
        self._lists: dict[str, _ModelList] = {}
        self._failed: dict[str, float] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"ModelCatalog({len(self._lists)} lists, {len(self._failed)} failed)"

    def names(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the names of the provider's list, however old; reads a small file the first time."""
        return tuple(model.name for model in self._list_of(_key(endpoint)).models)

    def description(self, endpoint: Endpoint) -> ModelDescription:
        """Return what the provider's list says of this endpoint's model, however old; reads a file as `names` does."""
        models = self._list_of(_key(endpoint)).models
        return next((model.description for model in models if model.name == endpoint.model), NOTHING)

    def is_due(self, endpoint: Endpoint) -> bool:
        """Return whether to ask the provider: there is no list of today, and asking has not just failed."""
        failed_at = self._failed.get(_key(endpoint), -_RETRY_SECONDS)
        return self._clock() - failed_at >= _RETRY_SECONDS and self.is_old(endpoint)

    def is_old(self, endpoint: Endpoint) -> bool:
        """Return whether there is no list of today."""
        # A list from the future is one that was written before the clock was set right.
        return not 0 <= self._clock() - self._list_of(_key(endpoint)).at < FRESH_SECONDS

    async def refresh(self, endpoint: Endpoint) -> None:
        """Ask the provider, if that is due. One request at a time for each list: a second call waits for the first."""
        key = _key(endpoint)
        async with self._asking.setdefault(key, asyncio.Lock()):
            if not self.is_due(endpoint):
                return
            try:
                await self.ask(endpoint)
            except Exception as error:  # a picker works without the list, so no failure may reach it
                _log.debug("no list of models of %s: %s", endpoint.provider, error)

    async def ask(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Ask the provider now; `ListingFailed` or `ImportError` where that does not work."""
        key = _key(endpoint)
        self._failed[key] = self._clock()  # until the opposite is known
        list_models = await call_in_background(_load)
        models = tuple(await list_models(endpoint))
        self._lists[key] = _ModelList(models, self._clock())
        del self._failed[key]
        await asyncio.to_thread(self._write, key, self._lists[key])
        return self.names(endpoint)

    def _list_of(self, key: str) -> _ModelList:
        if key not in self._lists:
            self._lists[key] = self._read(key)
        return self._lists[key]

    def _read(self, key: str) -> _ModelList:
        nothing = _ModelList((), -FRESH_SECONDS)
        if not self._folder:
            return nothing
        try:
            data = read_whole(os.path.join(self._folder, f"{key}.json"), _FILE_BYTES)
            found = msgspec.json.decode(data, type=_ModelList)
        except (OSError, ValueError, RecursionError):
            return nothing
        return found if all(is_model_name(model.name) for model in found.models) else nothing

    def _write(self, key: str, listed: _ModelList) -> None:
        if not self._folder:
            return
        try:
            write_private(Path(self._folder) / f"{key}.json", msgspec.json.encode(listed))
        except OSError as error:
            _log.debug("a list of models cannot be kept: %s", error.strerror)


def _key(endpoint: Endpoint) -> str:
    """Return one name for a provider at an address, fit for a file."""
    place = hashlib.sha256(endpoint.base_url.encode()).hexdigest()[:16]
    return f"{endpoint.provider}-{place}"


def _load() -> "Lister":
    """Import what asks a provider; it brings the HTTP library along."""
    from dragoman.coder.models.loading import loading

    with loading():
        from dragoman.coder.models.listing import list_models
    return list_models
