"""Models by free-form names, for clients that may name any: of the one provider that the environment names.

`LLM_PROVIDER` is that provider, `{PROVIDER}_API_KEY`, `{PROVIDER}_BASE_URL` and `{PROVIDER}_MODEL` say the rest. A key
and the provider's text about it are never shown: a failure names the provider and the kind of error.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.coder.setup import Models
from dragoman.errors import INVALID_REQUEST, RequestFailed, echo
from dragoman.vocabulary.options import Choice

if TYPE_CHECKING:
    from dragoman.coder.models.contract import Model
    from dragoman.vocabulary.requests import AuthStatus


class Provider(NamedTuple):
    """The provider of the environment: its name, its table as the settings have such, and its model if one is named."""

    name: str
    table: dict[str, object]
    model: str


def provider_of(environment: Mapping[str, str]) -> Provider | None:
    """Return the provider that is set, if one is."""
    name = environment.get("LLM_PROVIDER", "").strip().lower()
    if not name:
        return None
    prefix = re.sub("[^A-Z0-9]", "_", name.upper())
    table: dict[str, object] = {"api_key_env": f"{prefix}_API_KEY"}
    address = environment.get(f"{prefix}_BASE_URL", "").strip()
    if address:
        table["base_url"] = address
    return Provider(name, table, environment.get(f"{prefix}_MODEL", "").strip())


class Resolver:
    """Models as another supply has them; a name it has not listed must be one of the environment's provider."""

    def __init__(self, models: Models, provider: str, complain: Callable[[str], None]) -> None:
        self._models: Final = models
        self._provider: Final = provider
        self._complain: Final = complain

    def current(self) -> str:
        """Return the model a new session begins with."""
        return self._models.current()

    def choices(self) -> Sequence[Choice]:
        """List the folder and return the outcome."""
        return self._models.choices()

    def wire_name(self, name: str, current: str = "") -> str:
        """Return a model's name as the wire has it."""
        try:
            return self._models.wire_name(name, current)
        except RequestFailed:
            raise RequestFailed(INVALID_REQUEST, f"cannot resolve provider '{name.partition('/')[0]}'") from None

    def lists_due(self) -> bool:
        """Return whether some provider should be asked which models it has."""
        return self._models.lists_due()

    async def refresh(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Ask the providers which models they have."""
        await self._models.refresh(changed)

    def make(self, name: str) -> "Model":
        """Return a model, listed or not."""
        if name == self.current() or any(choice.value == name for choice in self.choices()):
            return self._models.make(name)
        provider = name.partition("/")[0]
        if not self._provider or provider != self._provider:
            raise RequestFailed(INVALID_REQUEST, f"cannot resolve provider '{echo(provider)}'")
        try:
            return self._models.make(name)
        except Exception as error:
            self._complain(f"dragoman: cannot resolve provider '{provider}': {type(error).__name__}\n")
            raise RequestFailed(INVALID_REQUEST, f"cannot resolve provider '{echo(provider)}'") from None

    def login(self, method_id: str) -> None:
        """Use a login method."""
        self._models.login(method_id)

    def logout(self) -> None:
        """Forget the keys."""
        self._models.logout()

    def status(self) -> "AuthStatus":
        """Return whether a session can be opened."""
        return self._models.status()
