"""Our own agent, as the command line and the settings want it."""

import functools
import os
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError
from dragoman.cli.home import data_folder, own_folders, own_path, started_files
from dragoman.cli.key_variables import keep_keys_back
from dragoman.cli.managed import managed_settings
from dragoman.cli.settings import Settings, read_settings
from dragoman.coder.model_registry import DEMO, MANAGED, OFFLINE, ModelRegistry, ProviderAccess
from dragoman.coder.setup import DEFAULT_MODE, Models, Setup
from dragoman.vocabulary.dialect_rules import PROTOCOL_RULES, DialectRules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.cli.project_servers import ProjectServers
    from dragoman.coder.language_servers.known import ServerSpec
    from dragoman.coder.managed_settings import ManagedSettings
    from dragoman.coder.models.contract import Model
    from dragoman.coder.resolver import Provider
    from dragoman.coder.retries import RetryPolicy
    from dragoman.coder.spend_caps import SpendLimits
    from dragoman.host.resources import ResourceLimits
    from dragoman.vocabulary.requests import McpServer

MODE_ALIASES = {"full": "full-access"}
# Those of `coder.models.endpoints`, which is not imported before a variable is set.
_ADDRESS_VARIABLES = (
    "OPENAI_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
    "OLLAMA_HOST",
    "AZURE_OPENAI_ENDPOINT",
)


def our_setup(
    model: str | None,
    mode: str | None,
    rules: DialectRules = PROTOCOL_RULES,
    *,
    audit_content: bool = False,
    private: "Sequence[str]" = (),
    worktree: str | None = None,
    max_cost: float | None = None,
    thinking: str | None = None,
    model_calls: int | None = None,
    system_prompt: str = "",
) -> Setup:
    """Models, mode and servers, within the administrator's bounds. `private`: paths out of reach of a served agent.
    `worktree`: a name, or empty for any, of the git worktree that each new session gets. `max_cost`: dollars that a
    turn may cost, `thinking` the level of thought and `model_calls` how many of them a turn may make, in the place of
    the settings. `system_prompt`: instructions in the place of ours.

    `CommandError` for what can be seen to be wrong before the first request.
    """
    managed = managed_settings()
    settings = read_settings()
    keep_keys_back(settings)
    config = config_of(settings)
    provider = _provider() if rules.accepts_unlisted_models else None
    wanted = model or settings.text("model")
    if provider is not None:
        config, wanted = _with_provider(config, provider, wanted)
    config = within_bounds(config, managed)
    chosen = _mode(mode, settings, rules, managed)
    if chosen != DEFAULT_MODE:
        check_mode(chosen)
    if managed is not None:
        chosen = _permitted_mode(chosen, managed, is_given=bool(mode))
    script = _script(wanted)
    if script is not None and managed is not None and not managed.models.allows("script"):
        raise CommandError(managed.says("the model script"))
    if wanted.lower() == OFFLINE:
        warn_of_former_name()
    elif script is None and wanted and wanted != DEMO:
        check_model(wanted, config, managed)
    means = ProviderAccess(
        os.environ,
        config,
        own_path("credentials.toml"),
        wanted,
        cache=own_path("cache"),
        lists=settings.flag("list_models"),
    )
    supply: Models = ModelRegistry(means, script=script)
    _check_address(supply, config)
    if rules.accepts_unlisted_models:
        from dragoman.coder.resolver import Resolver

        supply = Resolver(supply, provider.name if provider is not None else "", _print_remark)
    return Setup(
        supply,
        os.environ,
        mode=chosen,
        home=data_folder(),
        own_folders=own_folders(),
        commands=own_path("commands"),
        agents=own_path("agents"),
        skills=own_path("skills"),
        hooks=own_path("hooks.json"),
        trust=own_path("trust.json"),
        notes=os.path.dirname(own_path("AGENTS.md")),
        model_calls=model_calls or settings.number("max_turn_requests"),
        compact_above=_part_of_window(settings.number("compact_above")),
        thought_level=thinking or settings.text("thought_level"),
        servers=lambda cwd: mcp_servers(settings, cwd),
        remarks=project_remarks,
        protected_paths=started_files,
        fetches=rules.fetches_as_reading,
        sandbox_limits=_sandbox_limits(settings),
        private=private,
        audit_content=audit_content or settings.flag("audit_content"),
        before_children=_hide_keys,
        managed=managed,
        worktree=worktree,
        worktrees=os.path.expanduser(settings.text("worktrees")),
        fallback_models=_fallback_models(settings, config),
        spend=_spend(settings, max_cost),
        retries=_retries(settings),
        language_servers=language_servers(settings),
        system_prompt=system_prompt,
    )


def _fallback_models(settings: Settings, config: dict[str, object]) -> "Sequence[str]":
    """Return the models to fall back to. Raises `CommandError` for a name that can mean none."""
    names = settings.texts("fallback_models")
    for name in names:
        check_model(name, config, None, "fallback_models")
    return names


def language_servers(settings: Settings) -> "Callable[[], Sequence[ServerSpec]]":
    """Return what looks up the language servers to look for. Raises `CommandError` for a table that is wrong."""
    tables = settings.tables["language_servers"]

    def specs() -> "Sequence[ServerSpec]":
        from dragoman.coder.language_servers.known import read_specs
        from dragoman.errors import UsageError

        try:
            return read_specs(tables) if settings.flag("diagnostics") else ()
        except UsageError as error:
            raise CommandError(f"{settings.file}: {error}") from None

    if tables:  # most users have none, and editors wait for our start
        specs()
    return specs


def _spend(settings: Settings, max_cost: float | None) -> "SpendLimits | None":
    """Return what may be spent; None: no limit is set, as for most users, and nothing is imported."""
    turn = settings.dollars("spend.turn") if max_cost is None else max_cost
    session, day = settings.dollars("spend.session"), settings.dollars("spend.day")
    if turn is None and session is None and day is None:
        return None
    from dragoman.coder.spend_caps import SpendLimits

    return SpendLimits(turn, session, day)


def _retries(settings: Settings) -> "RetryPolicy | None":
    """Return how long model calls wait; None: as long as they do where nothing is set."""
    if all(settings.keys[key].source == "default" for key in ("retry_seconds", "fallback_after")):
        return None
    from dragoman.coder.retries import RetryPolicy

    return RetryPolicy(settings.number("retry_seconds"), settings.number("fallback_after"))


@functools.cache
def warn_of_former_name() -> None:
    """Say on stderr, once in this process, that the model `offline` is called `demo` now."""
    _print_remark(
        f"dragoman: warning: the model `{OFFLINE}` is called `{DEMO}` now; the old name goes with the next release\n"
    )


def _part_of_window(percent: int) -> float:
    """Return `compact_above` as a part of the window. Raises `CommandError` for what would sum up all the time."""
    if percent and not 20 <= percent <= 95:
        raise CommandError(f"compact_above is {percent}: write 20 to 95 (percent of the window), or 0 to turn it off")
    return percent / 100


def _sandbox_limits(settings: Settings) -> "ResourceLimits | None":
    """Return the limits of confined commands that the settings name; None: they name none."""
    memory, processes = settings.text("sandbox_memory"), settings.number("sandbox_processes")
    if not memory and not processes:
        return None
    from dragoman.host.resources import read_limits  # few have set it, and editors wait for our start

    try:
        return read_limits(memory, processes)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _hide_keys() -> None:
    """Blank the keys that commands could read in /proc of this process."""
    from dragoman.host.process_privacy import blank_secrets

    blank_secrets()


def _mode(given: str | None, settings: Settings, rules: DialectRules, managed: "ManagedSettings | None") -> str:
    """Return the mode to begin with. A dialect that has modes of its own begins with one of those."""
    set_ = settings.text("mode")
    if managed is not None and settings.keys["mode"].source == "default":
        set_ = managed.modes.default or set_
    if not rules.modes:
        chosen = given or set_
        return MODE_ALIASES.get(chosen, chosen)
    if given:
        if given not in rules.modes:
            raise CommandError(f"unknown mode {given!r}; in this dialect there are {', '.join(rules.modes)}")
        return rules.modes[given]
    return set_ if set_ in rules.modes.values() else DEFAULT_MODE


def _permitted_mode(chosen: str, managed: "ManagedSettings", *, is_given: bool) -> str:
    """Return the mode, or the nearest one that is permitted. Raises `CommandError` for one of the command line."""
    from dragoman.coder.identity_limits import allowed_modes, nearest_mode
    from dragoman.vocabulary.identity import LOCAL

    if managed.modes.permits(chosen):
        return chosen
    reason = managed.says(f"mode {chosen}")
    if is_given:
        raise CommandError(f"{reason}; there are {', '.join(allowed_modes(LOCAL, managed))}")
    nearest = nearest_mode(chosen, LOCAL, managed)
    if chosen != DEFAULT_MODE:  # else the user has set nothing that would not count
        _print_remark(f"dragoman: warning: sessions begin in mode {nearest}: {reason}\n")
    return nearest


def _print_remark(text: str) -> None:
    from dragoman.agent.author_handlers import warn

    warn(text)


def _provider() -> "Provider | None":
    from dragoman.coder.resolver import provider_of

    return provider_of(os.environ)


def _with_provider(config: dict[str, object], provider: "Provider", wanted: str) -> tuple[dict[str, object], str]:
    """Return the settings with the provider of the environment among theirs, and its model where no other is wanted."""
    providers = config["providers"]
    assert isinstance(providers, dict)
    named = f"{provider.name}/{provider.model}" if provider.model else ""
    return {**config, "providers": {provider.name: provider.table, **providers}}, wanted or named


def config_of(settings: Settings) -> dict[str, object]:
    """Return the part of the settings that models are made from."""
    return {"providers": settings.tables["providers"]}


def within_bounds(config: dict[str, object], managed: "ManagedSettings | None") -> dict[str, object]:
    """Return a configuration with the administrator's bounds, and the addresses of providers that the administrator
    has set in the place of the user's."""
    if managed is None:
        return config
    tables, urls = config["providers"], managed.models.base_urls
    assert isinstance(tables, dict)
    placed = {name: {**tables.get(name, {}), "base_url": url} for name, url in urls.items()}
    return {**config, "providers": {**tables, **placed}, MANAGED: managed}


def _script(wanted: str) -> "Callable[[], Model] | None":
    """Read the script of `script:FILE` now: its mistakes are the command line's."""
    kind, colon, path = wanted.partition(":")
    if not colon or kind.lower() != "script":
        return None
    from dragoman.coder.models.script import ScriptError, ScriptModel, load

    if not path:
        raise CommandError("which script? --model script:FILE")
    try:
        script = load(path)
    except ScriptError as error:
        raise CommandError(f"{path}: {error}") from None
    return lambda: ScriptModel(script)


def check_mode(chosen: str) -> None:
    """Raise `CommandError` for a mode that is none."""
    from dragoman.coder.modes import MODES

    if chosen not in MODES:
        raise CommandError(f"unknown mode {chosen!r}; there are {', '.join(MODES)}")


def check_written_model(wanted: str, place: str = "model") -> None:
    """Raise `CommandError`, which names `place`, for a model of settings that no start could use. Its file, if it is a
    script, and keys are not looked for."""
    is_script = wanted.lower().startswith("script:")
    if wanted and wanted != DEMO and wanted.lower() != OFFLINE and not is_script:
        check_model(wanted, config_of(read_settings()), None, place)


def check_model(
    wanted: str, config: dict[str, object], managed: "ManagedSettings | None", place: str = "--model"
) -> None:
    """Raise `CommandError`, which names `place`, for a name that can be none, or that `managed` does not allow."""
    from dragoman.coder.models.names import BadModelName, parse

    try:
        providers = config["providers"]
        name = str(parse(wanted, configured=list(providers) if isinstance(providers, dict) else ()))
    except BadModelName as error:
        raise CommandError(f"{place} {wanted}: {error}") from None
    if managed is not None and not managed.models.allows(name):
        raise CommandError(managed.says(f"the model {name}"))


def _check_address(models: Models, config: dict[str, object]) -> None:
    """Refuse an address in the environment that can be none, if the model that a session begins with needs it.

    Most users have set no such variable: for them nothing is imported here, and no file is read.
    """
    if not any(os.environ.get(variable, "").strip() for variable in _ADDRESS_VARIABLES):
        return
    from dragoman.coder.models.endpoints import ModelUnavailable, find_address
    from dragoman.coder.models.names import PROVIDERS

    try:
        provider = models.current().partition("/")[0]
        if provider in PROVIDERS:
            find_address(provider, environment=os.environ, config=config)
    except ModelUnavailable as error:
        raise CommandError(str(error)) from None


def mcp_servers(settings: Settings, cwd: str) -> "list[McpServer]":
    """Return the user's own MCP servers, and those of a project that is trusted as it is."""
    project = _of_project(cwd)
    of_theirs = [] if project is None else list(project.servers)
    own = settings.tables["mcp"]
    if not own:
        return of_theirs
    from dragoman.coder.mcp import from_config
    from dragoman.coder.mcp.config import name_of
    from dragoman.errors import RequestFailed, UsageError

    try:
        of_ours = from_config(own, os.environ)
    except UsageError as error:
        raise RequestFailed(-32603, f"The MCP servers cannot be read: {error}") from None
    return [*(server for server in of_theirs if name_of(server) not in own), *of_ours]


def project_remarks(cwd: str) -> list[str]:
    """Return what the user should know about a project's servers that do not count."""
    project = _of_project(cwd)
    return [] if project is None else list(project.remarks)


def _of_project(cwd: str) -> "ProjectServers | None":
    """Return what a project brings along. Most bring nothing, and their sessions open without a further import."""
    file = os.path.join(cwd, ".mcp.json")
    if not os.path.lexists(file):
        return None
    from dragoman.host.placeholders import is_placeholder

    if is_placeholder(file):
        return None  # of a confined command that runs now, or of a process that was killed
    from dragoman.cli.project_servers import read_project_servers

    return read_project_servers(cwd, os.environ)
