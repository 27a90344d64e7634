"""`dragoman login`: keep a provider's key, where only you can read it."""

import argparse
import sys
from typing import Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import NOT_DONE, print_error

_DESCRIPTION = """\
Keep a provider's key in credentials.toml, readable by you alone. A key in the
environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, and so on) comes
first. The key is asked for without showing it, or read from stdin where that is
no terminal. Without PROVIDER it names them all:

  dragoman login anthropic < key.txt
"""


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
        credentials.save(own_file("credentials.toml"), provider, key)
    except credentials.CredentialsError as error:
        return print_error(str(error), NOT_DONE)
    print(f"Kept. `dragoman chat` uses it, and so does an editor that starts `dragoman acp`; --model {provider}/NAME")
    print(f"chooses a model. `dragoman logout {provider}` forgets the key.")
    return 0


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
