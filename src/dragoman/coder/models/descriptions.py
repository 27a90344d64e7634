"""What is said of a model: by the user in config.toml, or by its provider in the list of its models.

Owns the keys of a description and their check, in sentences for the user. `[providers.NAME]` of config.toml describes
every model of a provider, `[providers.NAME.models."MODEL"]` one of them; what neither says is looked up elsewhere
(`facts`).
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

OFF: Final = "off"
# From none to most; a provider knows some of them.
LEVELS: Final = (OFF, "minimal", "low", "medium", "high", "xhigh", "max")
# No model has more tokens; a larger figure is a mistake.
MOST_TOKENS: Final = 1_000_000_000
Tokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
_MOST_DOLLARS: Final = 1_000_000.0


class Prices(NamedTuple):
    """Dollars for a million tokens. What the provider's cache reads or writes costs like input where it is None."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelDescription(NamedTuple):
    """What is said of a model; None: nothing. `window` and `max_output` in tokens."""

    window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    thought_levels: tuple[str, ...] | None = None
    prices: Prices | None = None
    web_search: bool | None = None
    documents: bool | None = None

    def over(self, other: "ModelDescription") -> "ModelDescription":
        """Return this description, with what only the other says."""
        missing = {name: value for name, value in other._asdict().items() if getattr(self, name) is None}
        return self._replace(**missing)


NOTHING: Final = ModelDescription()


class ListedModel(NamedTuple):
    """A model by its name at the provider, and what the provider's list says of it."""

    name: str
    window: Tokens | None = None
    images: bool | None = None
    documents: bool | None = None

    @property
    def description(self) -> ModelDescription:
        """What the list says, as a description."""
        return ModelDescription(window=self.window, images=self.images, documents=self.documents)


def read_description(table: Mapping[str, object]) -> ModelDescription:
    """Read the keys of a description; `ValueError` with the end of a sentence that begins with the table's place."""
    for name in table:
        if name not in KEYS:
            raise ValueError(f"unknown {name}; known are {', '.join(sorted(KEYS))}")
    return ModelDescription(**{name: KEYS[name](name, value) for name, value in table.items()})


def _tokens(name: str, value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{name} has the wrong type; it is a number of tokens")
    if not 1 <= value <= MOST_TOKENS:
        raise ValueError(f"{name} must be 1 or more, and at most {MOST_TOKENS:,}")
    return value


def _flag(name: str, value: object) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{name} has the wrong type; it is true or false")
    return value


def _levels(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(level, str) for level in value):
        raise ValueError(f'{name} has the wrong type; it is a list such as ["low", "high"]')
    if unknown := [level for level in value if level not in LEVELS]:
        raise ValueError(f"{name} has no level {unknown[0]!r}; there are {', '.join(LEVELS)}")
    return tuple(level for level in LEVELS if level in value)


def _prices(name: str, value: object) -> Prices:
    if not isinstance(value, dict):
        raise ValueError(f"{name} has the wrong type; it is a table such as {{ input = 0.5, output = 2.0 }}")
    for key, amount in value.items():
        if key not in Prices._fields:
            raise ValueError(f"{name} has an unknown {key}; known are {', '.join(Prices._fields)}")
        if type(amount) not in (int, float) or not 0 <= amount <= _MOST_DOLLARS:
            raise ValueError(f"{name}: {key} must be dollars for a million tokens, 0 or more")
    if missing := [key for key in ("input", "output") if key not in value]:
        raise ValueError(f"{name} needs {' and '.join(missing)}, in dollars for a million tokens")
    return Prices(**value)


KEYS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "window": _tokens,
    "max_output": _tokens,
    "images": _flag,
    "thought_levels": _levels,
    "prices": _prices,
    "web_search": _flag,
    "documents": _flag,
}
