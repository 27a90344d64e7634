"""`dragoman models`: what can be chosen, as the providers themselves list it."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.common_options import Commands, add_action, add_command
from dragoman.cli.errors import NOT_DONE, CommandError, print_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.coder.model_registry import ModelRegistry
    from dragoman.coder.models.overview import KnownModel

_DESCRIPTION = """\
The models that you can choose from: those of every provider whose key is there,
as the provider itself lists them. A list is kept for a day.
"""
_EPILOG = """\
  dragoman models list
  dragoman models list claude
  dragoman models list --provider openrouter qwen coder
  dragoman models list --json

The model that new sessions begin with is marked with a *. Windows and prices
are those of your config.toml, of the provider's list or of a list of prices
that comes with this release; a - is one that is not known.
"""
# Of providers without a key, in the sentence below the list.
_NAMED: Final = 6


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "models", "the models that you can choose from", _DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    listing = add_action(actions, "list", "the models that you can choose from", as_json="one JSON array of models")
    listing.add_argument("words", metavar="WORD", nargs="*", help="only models with all of these words in their name")
    listing.add_argument("--provider", metavar="PROVIDER", help="only models of this provider")
    listing.add_argument("--refresh", action="store_true", help="ask the providers now, also where a list is of today")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """List the models; exit code 1 if a provider that was named has none."""
    from dragoman import background
    from dragoman.cli.builtin_agent import our_setup
    from dragoman.coder.model_registry import ModelRegistry
    from dragoman.coder.models.overview import known_models

    models = our_setup(None, None).models
    assert isinstance(models, ModelRegistry)  # only a dialect has others
    provider = _provider(arguments.provider, models)
    problems = background.run(models.update_lists(always=arguments.refresh))
    for name, problem in problems.items():
        if provider in (None, name):
            print_error(problem, 0)
    words = [word.casefold() for word in arguments.words]
    found = [one for one in known_models(models) if _is_wanted(one, provider, words)]
    if arguments.json:
        print(json.dumps([_as_json(one) for one in found], indent=1))
    else:
        _print_table(found)
        _print_remarks(models, found, provider, words)
    return NOT_DONE if provider in problems and not found else 0


def _provider(given: str | None, models: "ModelRegistry") -> str | None:
    """Return the provider that is meant; `CommandError` for one that is unknown or cannot be used."""
    if given is None or given == "demo":
        return given
    from dragoman.coder.models.names import PROVIDERS

    usable = [endpoint.provider for endpoint in models.endpoints()]
    if given in usable:
        return given
    if given in PROVIDERS:
        raise CommandError(f"there is no key for {given}: dragoman login {given}")
    raise CommandError(f"there is no provider {given}; you can use {', '.join(usable) or 'none without a key'}")


def _is_wanted(one: "KnownModel", provider: str | None, words: "Sequence[str]") -> bool:
    return provider in (None, one.provider) and all(word in one.name.casefold() for word in words)


def _print_table(found: "Sequence[KnownModel]") -> None:
    if not found:
        return
    rows = [("MODEL", "WINDOW", "IN", "OUT", "")] + [_row(one) for one in found]
    name, window, given, made = (max(len(row[column]) for row in rows) for column in range(4))
    marks = [" "] + ["*" if one.is_current else " " for one in found]
    for mark, row in zip(marks, rows, strict=True):
        line = f"{mark} {row[0]:<{name}}  {row[1]:>{window}}  {row[2]:>{given}}  {row[3]:>{made}}  {row[4]}"
        print(line.rstrip())


def _row(one: "KnownModel") -> tuple[str, str, str, str, str]:
    able = [word for word, is_so in (("images", one.images), ("pdf", one.documents)) if is_so]
    able += [f"thinking {'/'.join(one.thought_levels)}"] if one.thought_levels else []
    given, made = ("-", "-") if one.prices is None else (f"${one.prices.input:.2f}", f"${one.prices.output:.2f}")
    return one.name, "-" if one.window is None else f"{one.window:,}", given, made, ", ".join(able)


def _as_json(one: "KnownModel") -> dict[str, Any]:
    return {
        "model": one.name,
        "provider": one.provider,
        "current": one.is_current,
        "window": one.window,
        "prices": None if one.prices is None else {"input": one.prices.input, "output": one.prices.output},
        "images": one.images,
        "documents": one.documents,
        "webSearch": one.web_search,
        "thoughtLevels": list(one.thought_levels),
    }


def _print_remarks(
    models: "ModelRegistry", found: "Sequence[KnownModel]", provider: str | None, words: "Sequence[str]"
) -> None:
    """Say on stderr what the list does not show."""
    if any(one.prices is not None for one in found):
        print("Prices are dollars for a million tokens in and out.", file=sys.stderr)
    if not found and words:
        print("No model has that in its name; any name of a provider can be used all the same.", file=sys.stderr)
    if provider is None and (missing := _without_key(models)):
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        print(f"There is no key for {named}{more}: `dragoman login PROVIDER` keeps one.", file=sys.stderr)


def _without_key(models: "ModelRegistry") -> list[str]:
    from dragoman.coder.models.known_providers import KNOWN_PROVIDERS

    usable = {endpoint.provider for endpoint in models.endpoints()}
    return [name for name, known in KNOWN_PROVIDERS.items() if name not in usable and not known.keyless]
