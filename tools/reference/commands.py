"""What `--help` says, from the parsers themselves."""

import argparse
import os
from collections.abc import Iterator


def commands_page() -> str:
    from dragoman.cli.main import command_line

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"  # argparse asks for the width of a terminal
    try:
        parser = command_line()
        parts = ["# Commands", "What `--help` says. Exit codes and settings are on [their own page](settings.md)."]
        parts += [f"## dragoman\n\n```text\n{parser.format_help().rstrip()}\n```"]
        for name, command in subcommands(parser):
            parts += [f"## dragoman {name}\n\n```text\n{command.format_help().rstrip()}\n```"]
            parts += [
                f"### dragoman {name} {action}\n\n```text\n{deeper.format_help().rstrip()}\n```"
                for action, deeper in subcommands(command)
            ]
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n\n".join(parts) + "\n"


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
