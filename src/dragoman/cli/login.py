"""`dragoman login`: keep a provider's key, where only you can read it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import NOT_DONE, print_error

if TYPE_CHECKING:
    from dragoman.coder.credentials import Secret

_DESCRIPTION = """\
Keep a provider's key in credentials.toml, readable by you alone. A key in the
environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, and so on) comes
first. The key is asked for without showing it, or read from stdin where that is
no terminal. Without PROVIDER it names them all.

The provider is asked for its list of models, which costs nothing and tells
whether it accepts the key; one that it refuses is not kept, but with --keep.

  dragoman login anthropic < key.txt
"""
# Models named after a login.
_SHOWN_MODELS: Final = 5


KEYLESS: Final = {
    "ollama": "set OLLAMA_HOST to where it listens",
    "vertex": "run `gcloud auth application-default login`, and write [providers.vertex] into config.toml",
}


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "login", "keep a model provider's key", _DESCRIPTION)
    parser.add_argument(
        "provider", metavar="PROVIDER", nargs="?", help="openai, anthropic, google, openrouter …, or your own"
    )
    parser.add_argument("--keep", action="store_true", help="keep the key without asking the provider about it")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Ask for the key and keep it."""
    from dragoman.cli.home import own_file, own_path
    from dragoman.cli.settings import read_settings
    from dragoman.coder import credentials

    own = read_settings().tables["providers"]
    known = [*dict.fromkeys([*credentials.KEY_VARIABLES, *own])]
    names = ", ".join(known)
    provider = arguments.provider or _ask(f"Provider ({names}): ")
    if provider in KEYLESS and provider not in own:
        return print_error(f"{provider} takes no key: {KEYLESS[provider]}")
    if not provider:
        return print_error(f"a provider is missing: dragoman login PROVIDER, where PROVIDER is one of {names}")
    if provider not in known:
        return print_error(
            f"unknown provider {provider!r}; there are {names}. One of your own goes into "
            f'{own_path("config.toml")} first: [providers.NAME] with base_url = "https://…"'
        )
    try:
        key = credentials.check_key(_secret(f"Key for {provider}: "))
        if not (arguments.keep or _is_accepted(provider, key)):
            return NOT_DONE
        credentials.save(own_file("credentials.toml"), provider, key)
    except credentials.CredentialsError as error:
        return print_error(str(error), NOT_DONE)
    print(f"Kept. `dragoman chat` uses it, and so does an editor that starts `dragoman acp`; --model {provider}/NAME")
    print(f"chooses a model. `dragoman logout {provider}` forgets the key.")
    return 0


def _is_accepted(provider: str, key: "Secret") -> bool:
    """Ask the provider about a key, and say what it answers. True: it is to be kept, also where nothing was learned."""
    from dragoman import background
    from dragoman.cli.builtin_agent import config_of, within_bounds
    from dragoman.cli.errors import can_ask_user, discard_typed_input, print_notice
    from dragoman.cli.managed import managed_settings
    from dragoman.cli.settings import read_settings
    from dragoman.cli.text_width import harmless_line
    from dragoman.coder.credentials import KEY_VARIABLES, Credentials
    from dragoman.coder.models.endpoints import ModelUnavailable, find_endpoint
    from dragoman.coder.models.listing import KeyRefused, ListingFailed, ask_for_models
    from dragoman.coder.models.names import ModelName

    settings = read_settings()
    if not settings.flag("list_models"):
        return True
    config = within_bounds(config_of(settings), managed_settings())
    # The variable comes before what is kept; here the key that was typed is in question.
    table = settings.tables["providers"].get(provider, {})
    variables = (KEY_VARIABLES.get(provider), table.get("api_key_env") if isinstance(table, dict) else None)
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    try:
        endpoint = find_endpoint(
            ModelName(provider, "any"), environment=environment, config=config, credentials=Credentials({provider: key})
        )
        found = background.run(ask_for_models(endpoint))
    except KeyRefused as error:
        print_notice(str(error))
        if not can_ask_user():
            print_notice("the key was not kept; --keep keeps one without asking the provider")
            return False
        discard_typed_input()
        is_kept = _ask("Keep it all the same? [y/N] ").lower() in ("y", "yes")
        if not is_kept:
            print_notice("the key was not kept")
        return is_kept
    except (ListingFailed, ModelUnavailable) as error:
        print_notice(f"the key could not be checked: {error}")
        return True
    whose = f" It is of the account {harmless_line(found.account)}." if found.account else ""
    print(f"{provider} accepts the key.{whose}")
    if found.models:
        names = ", ".join(harmless_line(model.name) for model in found.models[:_SHOWN_MODELS])
        more = len(found.models) - _SHOWN_MODELS
        print(f"Its models: {names}{f' and {more} more: `dragoman models list`' if more > 0 else ''}")
    return True


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        return ""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _secret(question: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    from getpass import getpass

    return getpass(question, stream=sys.stderr)
