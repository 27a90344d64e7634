"""Objects of a configuration file whose values are what they must be, or an error that names the line. Pure."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import cast

from dragoman.client.located_json import ConfigMistake, LocatedJson, Path, key_text
from dragoman.host.variables import is_passable


class ConfigTable:
    """An object of the file, whose values are what they must be."""

    def __init__(self, located: LocatedJson, place: Path, value: object, keys: frozenset[str] | None) -> None:
        self.place = place
        self._located = located
        if not isinstance(value, dict):
            name = located.name(place) or "the file"
            raise config_mistake(located, place, f"{name} must be an object, not {kind_of(value)}")
        self._value: dict[str, object] = value
        for key in value:
            if keys is not None and key not in keys:
                near = _near(key, keys)
                hint = f"; did you mean {near}?" if near else ""
                raise config_mistake(located, (*place, key), f"unknown key {key!r}{hint}")

    @property
    def line(self) -> int:
        """Return the line where it begins."""
        return self._located.line(self.place)

    def given(self, key: str) -> object:
        return self._value.get(key)

    def wrong(self, key: str, message: str) -> ConfigMistake:
        return config_mistake(self._located, (*self.place, key), message)

    def text(self, key: str) -> str | None:
        return cast(str | None, self._typed(key, "text", lambda value: isinstance(value, str)))

    def flag(self, key: str) -> bool | None:
        return cast(bool | None, self._typed(key, "true or false", lambda value: isinstance(value, bool)))

    def number(self, key: str, most: int, least: int = 1) -> int | None:
        """Return a whole number within bounds; None if the key is not there."""
        number = cast(int | None, self._typed(key, "a whole number", lambda value: type(value) is int))
        if number is not None and not least <= number <= most:
            raise self.wrong(key, f"{key} must be from {least} to {most}")
        return number

    def choice(self, key: str, choices: tuple[str, ...]) -> str | None:
        text = self.text(key)
        if text is not None and text not in choices:
            raise self.wrong(key, f"{key} is one of {', '.join(choices)}, not {text!r}")
        return text

    def texts(self, key: str) -> tuple[str, ...] | None:
        found = self._typed(key, "a list of texts", _is_texts)
        return None if found is None else tuple(cast(list[str], found))

    def map(self, key: str) -> dict[str, object] | None:
        return cast(dict[str, object] | None, self._typed(key, "an object", lambda value: isinstance(value, dict)))

    def env(self, key: str) -> dict[str, str] | None:
        """Return a map of texts, written as an object or as a list of `{name, value}`."""
        value = self._value.get(key)
        if isinstance(value, list):
            pairs = [(one.text("name"), one.text("value")) for one in self.tables(key, frozenset({"name", "value"}))]
            if not all(name and text is not None for name, text in pairs):
                raise self.wrong(key, f"each entry of {key} has a name and a value")
            return {cast(str, name): cast(str, text) for name, text in pairs}
        found = self.map(key)
        for name, text in (found or {}).items():
            if not isinstance(text, str):
                sentence = f"{key}.{key_text(name)} must be text, not {kind_of(text)}"
                raise config_mistake(self._located, (*self.place, key, name), sentence)
        return cast(dict[str, str] | None, found)

    def table(self, key: str, keys: frozenset[str] | None) -> "ConfigTable":
        return ConfigTable(self._located, (*self.place, key), self._value.get(key), keys)

    def tables(self, key: str, keys: frozenset[str]) -> "list[ConfigTable]":
        """Return a list of objects."""
        found = self._typed(key, "a list", lambda value: isinstance(value, list))
        rows = cast(list[object], found or [])
        return [ConfigTable(self._located, (*self.place, key, at), value, keys) for at, value in enumerate(rows)]

    def _typed(self, key: str, wanted: str, fits: Callable[[object], bool]) -> object:
        value = self._value.get(key)
        if value is not None and not fits(value):
            raise self.wrong(key, f"{key} must be {wanted}, not {kind_of(value)}")
        if not is_passable(value):
            raise self.wrong(key, f"{key} has a NUL or half a character in it, which no program can be given")
        if value is None and key in self._value:
            raise self.wrong(key, f"{key} must be {wanted}, not null; leave it out instead")
        return value


def config_mistake(located: LocatedJson, place: Path, message: str) -> ConfigMistake:
    """Return the error for something at a place in the file."""
    return ConfigMistake(located.line(place), message, place)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def kind_of(value: object) -> str:
    """Return what a value is, in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")


def _near(key: str, keys: frozenset[str]) -> str:
    return next(iter(get_close_matches(key, keys, n=1)), "")
