"""What a generated module consists of: the values between reading a schema and writing Python."""

import keyword
import re
from dataclasses import dataclass, field

# Names that `Wire` and `MetaWire` already use, or that Python does.
TAKEN = frozenset({"extras", "meta", *keyword.kwlist})


@dataclass(frozen=True)
class Property:
    """One attribute of a struct."""

    wire: str
    type: str
    required: bool = True
    nullable: bool = False
    lenient: str = ""
    default: str | None = None
    constant: str | None = None
    stable: bool = True

    @property
    def attribute(self) -> str:
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.wire.lstrip("_")).lower()
        return f"{name}_" if name in TAKEN else name


@dataclass
class Struct:
    """A class to write; `base` is another struct whose attributes it has as well."""

    name: str
    properties: list[Property]
    meta: bool = False
    base: str | None = None
    tag_field: str | None = None
    tag: str | None = None
    check: tuple[str, list[str]] | None = None

    def needs(self) -> set[str]:
        return _names(" ".join(p.type for p in self.properties)) | ({self.base} if self.base else set())


@dataclass
class Alias:
    """Another name for a type."""

    name: str
    type: str

    def needs(self) -> set[str]:
        return _names(self.type)


@dataclass
class Union:
    """A tagged union: `members` by tag, `bare` for an object without tag, `nested` for a second discriminator."""

    name: str
    tag_field: str
    members: list[str] = field(default_factory=list)
    bare: str | None = None
    nested: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def needs(self) -> set[str]:
        return {*self.members, *([self.bare] if self.bare else []), *(c for _, by in self.nested for c in by.values())}


@dataclass
class Either:
    """An untagged union: the first type that fits; with a `tag_field` it may also be unknown."""

    name: str
    types: list[str]
    tag_field: str | None = None

    def needs(self) -> set[str]:
        return _names(" ".join(self.types))


Item = Struct | Alias | Union | Either


@dataclass
class Module:
    """Everything one generated file holds, in an order in which each item needs only items before it."""

    items: list[Item]
    stable: list[str]
    flattened: list[str]
    methods: dict[tuple[str, str], tuple[str | None, str | None]]
    notifications: dict[tuple[str, str], str]


def _names(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Z]\w+", re.sub(r'"[^"]*"', "", text)))
