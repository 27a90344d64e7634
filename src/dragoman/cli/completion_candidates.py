"""What may come next on a command line that is being written; for shells that complete it.

The parsers say which commands, options and choices there are. Values that only this machine knows (agents, sessions)
are looked up when they are asked for, and whatever goes wrong with that, there is simply nothing to offer.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

# Not words of ours: the shell completes paths by itself.
FILES: Final = ":files"
FOLDERS: Final = ":folders"
# Sessions offered at most: a longer list is not read.
SESSIONS: Final = 50


class CompletionCandidate(NamedTuple):
    """A word, or FILES or FOLDERS; and what it is for, in a line."""

    word: str
    about: str = ""


class _Place(NamedTuple):
    """Where the last word stands: whose words come before it, and how many arguments there were already."""

    parser: argparse.ArgumentParser
    given: int
    used: frozenset[str]


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[CompletionCandidate]:
    """Return what the last of the words may become; the words come after the program's name."""
    *before, last = [*words] or [""]
    lead = ""
    if last == "=":  # bash makes three words of --option=value
        before, last = [*before, "="], ""
    if len(before) > 1 and before[-1] == "=":
        before = before[:-1]
    elif last.startswith("--") and "=" in last:
        option, _, last = last.partition("=")
        before, lead = [*before, option], f"{option}="
    if "--" in before:
        return [CompletionCandidate(FILES)]  # the command of another program
    place, waiting = _walk(parser, before)
    if waiting is not None and (not last.startswith("-") or lead):
        found = _values(waiting)
    elif last.startswith("-"):
        found = _options(place)
    else:
        found = _arguments(place) or _options(place)
    return [
        CompletionCandidate(word if word in (FILES, FOLDERS) else lead + word, about)
        for word, about in found
        if word in (FILES, FOLDERS) or word.startswith(last)
    ]


def _walk(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[_Place, argparse.Action | None]:
    """Follow the words through the parsers; the option that still waits for its value is the second part."""
    given, used, waiting = 0, set[str](), None
    for word in words:
        if word.startswith("-"):
            option, equals, _ = word.partition("=")
            action = parser._option_string_actions.get(option)
            used.update(action.option_strings if action is not None else ())
            waiting = action if action is not None and action.nargs != 0 and not equals else None
        elif waiting is not None:
            waiting = None
        else:
            commands = _commands(parser)
            if commands is not None and word in commands:
                parser, given, used = commands[word], 0, set()
            else:
                given += 1
    return _Place(parser, given, frozenset(used)), waiting


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def _options(place: _Place) -> list[CompletionCandidate]:
    return [
        CompletionCandidate(max(action.option_strings, key=len), action.help or "")
        for action in place.parser._actions
        if action.option_strings
        and action.help != argparse.SUPPRESS
        and (action.option_strings[0] not in place.used or isinstance(action, argparse._AppendAction))
    ]


def _arguments(place: _Place) -> list[CompletionCandidate]:
    """Return what the next argument may be. The last one may be there many times, if it says so."""
    arguments = [action for action in place.parser._actions if not action.option_strings]
    if not arguments:
        return []
    action = arguments[min(place.given, len(arguments) - 1)]
    if place.given >= len(arguments) and action.nargs not in ("+", "*"):
        return []
    if isinstance(action, argparse._SubParsersAction):
        return [CompletionCandidate(choice.dest, choice.help or "") for choice in action._choices_actions]
    return _values(action)


def _values(action: argparse.Action) -> list[CompletionCandidate]:
    if action.choices is not None:
        return [CompletionCandidate(str(choice)) for choice in action.choices]
    name = action.metavar if isinstance(action.metavar, str) else ""
    # NAME is any name: whose, the argument's own name tells.
    look = _LOOKS.get(_NAMES.get(action.dest, name) if name == "NAME" else name)
    try:
        return list(look()) if look is not None else []
    except Exception:  # a key was pressed: this is no time to complain
        return []


def _modes() -> Iterator[CompletionCandidate]:
    from dragoman.coder.modes import MODES

    return (CompletionCandidate(name, mode.description) for name, mode in MODES.items())


def _dialects() -> Iterator[CompletionCandidate]:
    from dragoman.agent.agent import dialect_names

    return (CompletionCandidate(name) for name in dialect_names())


def _agents() -> Iterator[CompletionCandidate]:
    from dragoman.cli.home import read_registry

    return (CompletionCandidate(name) for name in read_registry(".").names())


def _sessions() -> Iterator[CompletionCandidate]:
    from dragoman import background
    from dragoman.cli.home import open_store, own_path

    if not os.path.exists(own_path("sessions")):
        return iter(())

    async def look() -> list[CompletionCandidate]:
        store = open_store()
        try:
            found = (await store.list()).sessions[:SESSIONS]
            return [CompletionCandidate(session.id, session.title) for session in found]
        finally:
            await store.close()

    return iter(background.run(look()))


def _tokens() -> Iterator[CompletionCandidate]:
    from dragoman.cli.tokens import open_token_store

    return (CompletionCandidate(token.name, token.principal) for token in open_token_store(None).all())


def _scopes() -> Iterator[CompletionCandidate]:
    from dragoman.gateway.token_types import SCOPES

    return (CompletionCandidate(",".join(SCOPES[: count + 1])) for count in range(len(SCOPES)))


def _providers() -> Iterator[CompletionCandidate]:
    from dragoman.coder.models.names import PROVIDERS

    return (CompletionCandidate(name) for name in PROVIDERS)


_NAMES: Final = {"agent": "AGENT", "name": "AGENT", "token_name": "TOKEN", "revoke_token": "TOKEN"}
_LOOKS: Final[dict[str, Callable[[], Iterator[CompletionCandidate]]]] = {
    "MODE": _modes,
    "D": _dialects,
    "M": lambda: iter([CompletionCandidate("demo", "a guided tour and a few commands, no language model")]),
    "AGENT": _agents,
    "ID": _sessions,
    "TOKEN": _tokens,
    "S": _scopes,
    "PROVIDER": _providers,
    "DIR": lambda: iter([CompletionCandidate(FOLDERS)]),
    "FILE": lambda: iter([CompletionCandidate(FILES)]),
    "F": lambda: iter([CompletionCandidate(FILES)]),
}
