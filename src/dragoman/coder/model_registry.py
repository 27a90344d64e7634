"""Which models there are for this user, and whether they can be used: names, keys, and being logged in or out.

Which one is used where none is named says `models.factory.find_default_model`.

Made cheaply at the start; what it reads, it reads with the first session.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from dragoman.errors import AUTH_REQUIRED, INVALID_PARAMS, RequestFailed, echo
from dragoman.vocabulary.hello import AgentAuth, AuthMethod, TerminalAuth
from dragoman.vocabulary.options import Choice

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.coder.credentials import Credentials
    from dragoman.coder.models.catalog import ModelCatalog
    from dragoman.coder.models.contract import Model
    from dragoman.coder.models.descriptions import ModelDescription
    from dragoman.coder.models.endpoints import Endpoint
    from dragoman.coder.models.names import ModelName
    from dragoman.vocabulary.requests import AuthStatus

AGENT_LOGIN: Final = "dragoman"
TERMINAL_LOGIN: Final = "dragoman-login"
_PROGRAM: Final = ("-P", "-m", "dragoman.cli.main")
METHODS: Final[list[AuthMethod]] = [
    AgentAuth(
        AGENT_LOGIN,
        "Use what is there",
        "Uses the keys in the environment or of `dragoman login`; where there is none, the demo answers",
    ),
    TerminalAuth(
        TERMINAL_LOGIN,
        "Log in with a key",
        "Asks for a provider's key in a terminal",
        ["login"],
        # For editors that run a whole command line, in the folder of the project: -P keeps its modules out.
        meta={"terminal-auth": {"command": sys.executable, "args": [*_PROGRAM, "login"], "label": "Dragoman login"}},
    ),
]
# Those of `models.names`, which is not imported at the start.
DEMO: Final = "demo"
OFFLINE: Final = "offline"
# The key of a configuration that has the administrator's `ManagedSettings`, if there is a file of the administrator's.
MANAGED: Final = "managed"


class ProviderAccess:
    """What models are made from. `wanted` is the model of the command line or the settings; empty: what there is.

    `credentials` is the file of keys.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        config: Mapping[str, object],
        credentials: str,
        wanted: str = "",
        *,
        cache: str = "",
        lists: bool = False,
    ) -> None:
        """`lists`: providers may be asked which models they have; `cache`: the folder to keep that in, empty: none."""
        self.lists: Final = lists
        self.environment: Final = environment
        self.config: Final = config
        self.credentials: Final = credentials
        self.cache: Final = cache
        self.wanted: Final = wanted


class ModelRegistry:
    """The models of one process."""

    def __init__(self, means: ProviderAccess, *, script: "Callable[[], Model] | None" = None) -> None:
        self._means = means
        # A script was read when we were started: the file may be gone by now.
        self._script = script
        self._logged_out = False
        self._shows_lists = means.lists
        self._catalog: ModelCatalog | None = None
        # The user was told that a key is missing, and has chosen to go on without.
        self._does_without = False

    def current(self) -> str:
        """Return the model a new session begins with, by its name on the wire."""
        return str(self._current())

    def choices(self) -> list[Choice]:
        """Return what a client may choose from."""
        from dragoman.coder.models import factory

        lists = {known.provider: self._lists().names(known) for known in self.endpoints()} if self._shows_lists else {}
        named = factory.choices(
            self._environment(),
            self._means.config,
            self._credentials(),
            self._current(),
            lambda provider: lists.get(provider, ()),
        )
        about = {DEMO: "a guided tour and a few commands, no language model"}
        return [Choice(name, name, about.get(name, UNSET)) for name in map(str, named)]

    def lists_due(self) -> bool:
        """Return whether some provider should be asked which models it has."""
        return self._means.lists and any(self._lists().is_due(endpoint) for endpoint in self.endpoints())

    async def refresh(self, changed: "Callable[[], Awaitable[None]]") -> None:
        """Ask the providers which models they have, where that is due; `changed` is awaited for each new list.

        Fails quietly. Sessions that ask at the same time share one request.
        """
        import asyncio

        async def refresh(endpoint: "Endpoint") -> None:
            before = known.names(endpoint)
            await known.refresh(endpoint)
            if known.names(endpoint) != before:
                await changed()

        known = self._lists()
        if self._means.lists:
            await asyncio.gather(*(refresh(endpoint) for endpoint in self.endpoints()))

    async def ask_lists(self) -> dict[str, str]:
        """Ask every provider now, and say for each how many models it lists, or why it cannot be asked."""
        import asyncio

        async def ask(endpoint: "Endpoint") -> str:
            try:
                return f"lists {len(await self._lists().ask(endpoint))} models"
            except Exception as error:
                from dragoman.coder.models.listing import ListingFailed

                return str(error) if isinstance(error, ListingFailed) else type(error).__name__

        endpoints = self.endpoints() if self._means.lists else []
        found = await asyncio.gather(*(ask(endpoint) for endpoint in endpoints))
        return {endpoint.provider: text for endpoint, text in zip(endpoints, found, strict=True)}

    async def update_lists(self, *, always: bool = False) -> dict[str, str]:
        """Ask the providers whose list is not of today, or all of them `always`; return why some have none, by name.

        Where lists are not wanted, a provider is asked `always` alone.
        """
        import asyncio

        from dragoman.coder.models.listing import ListingFailed

        async def ask(endpoint: "Endpoint") -> str:
            try:
                await self._lists().ask(endpoint)
            except ListingFailed as error:
                return str(error)
            except Exception as error:  # an unforeseen answer of one provider must not hide the other lists
                return f"the models of {endpoint.provider} cannot be listed: {type(error).__name__}"
            return ""

        lists = self._lists()
        self._shows_lists = self._shows_lists or always
        due = [one for one in self.endpoints() if always or (self._means.lists and lists.is_old(one))]
        found = await asyncio.gather(*(ask(endpoint) for endpoint in due))
        return {endpoint.provider: text for endpoint, text in zip(due, found, strict=True) if text}

    def known(self, name: str) -> "tuple[Endpoint, ModelDescription] | None":
        """Return where a model of `choices` is, and what its provider's list says of it; None: it has no provider."""
        from dragoman.coder.models import factory
        from dragoman.coder.models.endpoints import find_endpoint
        from dragoman.coder.models.names import parse

        try:
            parsed = parse(name, configured=self._configured())
            endpoint = find_endpoint(
                parsed, environment=self._environment(), config=self._means.config, credentials=self._credentials()
            )
        except (factory.ModelUnavailable, ValueError):
            return None
        return endpoint, self._lists().description(endpoint)

    def endpoints(self) -> "list[Endpoint]":
        """Return the endpoints of the providers that can be used; their `model` is empty."""
        from dragoman.coder.models import factory
        from dragoman.coder.models.endpoints import find_endpoint
        from dragoman.coder.models.names import ModelName

        environment, config, keys = self._environment(), self._means.config, self._credentials()
        found = []
        for provider in factory.usable_providers(environment, config, keys):
            try:
                name = ModelName(provider)
                found.append(find_endpoint(name, environment=environment, config=config, credentials=keys))
            except factory.ModelUnavailable:
                continue  # said when it is chosen
        return found

    def _listed(self, endpoint: "Endpoint") -> "ModelDescription":
        """Return what the provider's list says of a model; nothing where lists are not wanted."""
        from dragoman.coder.models.descriptions import NOTHING

        return self._lists().description(endpoint) if self._means.lists else NOTHING

    def _lists(self) -> "ModelCatalog":
        if self._catalog is None:
            from dragoman.coder.models.catalog import ModelCatalog

            self._catalog = ModelCatalog(self._means.cache)
        return self._catalog

    def make(self, name: str) -> "Model":
        """Return a model for a session; a refusal says what to do."""
        from dragoman.coder.models import factory
        from dragoman.coder.models.names import SCRIPT, BadModelName, parse_from_client

        current = self._current()
        try:
            chosen = parse_from_client(name, configured=self._configured(), current=current)
            if chosen.provider == SCRIPT and self._script is not None:
                return self._script()
            return factory.make_model(
                chosen,
                environment=self._environment(),
                config=self._means.config,
                credentials=self._credentials(),
                listed=self._listed,
            )
        except BadModelName as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from None
        except factory.ModelUnavailable as error:
            code = AUTH_REQUIRED if error.needs_login else INVALID_PARAMS
            data = {"authMethods": [AGENT_LOGIN]} if error.needs_login else None
            raise RequestFailed(code, str(error), data) from None

    def wire_name(self, name: str, current: str = "") -> str:
        """Return a model's name as the wire has it, however a client writes it. `current` is the session's model."""
        from dragoman.coder.models.names import BadModelName, parse, parse_from_client

        own, configured = self._current(), self._configured()
        try:
            if name.strip() == str(own):
                return str(own)
            beside = parse(current, configured=configured) if "/" in current and current != str(own) else own
            return str(parse_from_client(name, configured=configured, current=beside))
        except BadModelName as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from None

    # -- login -------------------------------------------------------------------------------------------------------

    def login(self, method_id: str) -> None:
        """Look again for keys; where the chosen model has none, do without it."""
        if method_id not in (AGENT_LOGIN, TERMINAL_LOGIN):
            raise RequestFailed(INVALID_PARAMS, "There is no such way to log in", {"methodId": echo(method_id)})
        self._logged_out = False
        self._does_without = False
        try:
            self.make(self.current())
        except RequestFailed as error:
            if error.code != AUTH_REQUIRED:
                raise
            self._does_without = True

    def logout(self) -> None:
        """Forget the keys: those of the file for good, those of the environment for as long as we run."""
        from dragoman.coder import credentials

        for provider in self._credentials().keys:
            credentials.forget(self._file(), provider)
        self._logged_out = True
        self._does_without = False

    def status(self) -> "AuthStatus":
        """Return whether a session can be opened."""
        from dragoman.coder.credentials import KEY_VARIABLES
        from dragoman.vocabulary.requests import Account, AuthStatus

        found = self._credentials()
        known = [name for name in KEY_VARIABLES if found.find(name, self._environment()) is not None]
        accounts = [Account(name) for name in known]
        try:
            self.make(self.current())
        except RequestFailed as error:
            return AuthStatus("unauthenticated" if error.code == AUTH_REQUIRED else "unknown", accounts)
        return AuthStatus("authenticated" if "/" in self.current() else "not_required", accounts)

    # -- what is there -----------------------------------------------------------------------------------------------

    def _current(self) -> "ModelName":
        from dragoman.coder.models import factory
        from dragoman.coder.models.names import ModelName, parse

        if self._does_without:
            return ModelName(DEMO)
        if self._means.wanted:
            return parse(self._means.wanted, configured=self._configured())
        # Being logged out does not change what is wanted, only whether it can be had.
        return factory.find_default_model(self._means.environment, self._means.config, self._stored())

    def _configured(self) -> list[str]:
        from dragoman.coder.models.endpoints import configured

        return configured(self._means.config)

    def _environment(self) -> Mapping[str, str]:
        if not self._logged_out:
            return self._means.environment
        from dragoman.host.environment import is_secret

        return {name: value for name, value in self._means.environment.items() if not is_secret(name, value)}

    def _credentials(self) -> "Credentials":
        from dragoman.coder.credentials import Credentials

        return Credentials() if self._logged_out else self._stored()

    def _stored(self) -> "Credentials":
        from dragoman.coder.credentials import Credentials, CredentialsError, load

        try:
            return load(self._file())
        except CredentialsError:
            return Credentials()

    def _file(self) -> "Path":
        from pathlib import Path

        return Path(self._means.credentials)
