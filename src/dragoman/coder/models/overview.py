"""What is known of the models that can be chosen, each in one value: for a list that a person or a script reads.

Imports the price list, so it is imported by the command that shows it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dragoman.coder.models.descriptions import Prices
from dragoman.coder.models.facts import model_facts
from dragoman.coder.models.prices import prices_of, window_of

if TYPE_CHECKING:
    from dragoman.coder.model_registry import ModelRegistry


class KnownModel(NamedTuple):
    """A model that can be chosen. `window` in tokens; None, or no levels: unknown."""

    name: str
    provider: str
    is_current: bool
    window: int | None = None
    prices: Prices | None = None
    images: bool = False
    documents: bool = False
    web_search: bool = False
    thought_levels: tuple[str, ...] = ()


def known_models(models: "ModelRegistry") -> Iterator[KnownModel]:
    """Yield every model that an editor is offered, in that order. Reads lists, and asks no provider."""
    current = models.current()
    for choice in models.choices():
        name = choice.value
        found = models.known(name)
        if found is None:
            yield KnownModel(name, name.partition("/")[0], name == current)
            continue
        endpoint, listed = found
        facts = model_facts(endpoint, listed)
        yield KnownModel(
            name,
            endpoint.provider,
            name == current,
            facts.window or window_of(endpoint),
            prices_of(endpoint),
            facts.images,
            facts.documents,
            facts.web_search,
            facts.thought_levels,
        )
