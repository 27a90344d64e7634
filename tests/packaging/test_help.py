"""Every --help can be read by a person in 80 columns, and leaves nothing unexplained."""

import argparse
from collections.abc import Iterator

import pytest

from dragoman.cli.main import COMMANDS, command_line


def parsers(parser: argparse.ArgumentParser, name: str = "dragoman") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


EVERY = dict(parsers(command_line()))


def test_every_command_is_here() -> None:
    assert {f"dragoman {name}" for name in COMMANDS} <= EVERY.keys()
    assert "dragoman sessions export" in EVERY


@pytest.mark.parametrize("name", EVERY)
def test_help_fits_80_columns_and_explains_everything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = EVERY[name]
    shown = parser.format_help()
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert parser.description
    assert shown.startswith(f"usage: {name}")
    unexplained = [
        action.dest
        for action in parser._actions
        if action.help is None and not isinstance(action, argparse._SubParsersAction) and action.option_strings
    ]
    assert unexplained == []
