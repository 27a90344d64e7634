"""Our own agent, as the command line and the settings want it."""

import os
from typing import TYPE_CHECKING

from dragoman.cli.home import home_folder
from dragoman.cli.settings import Settings, SettingsError, read_settings
from dragoman.coder.setup import DEFAULT_MODE, Setup
from dragoman.coder.supply import OFFLINE, Means, Supply

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.coder.models.contract import Model
    from dragoman.vocabulary.requests import McpServer

_ALIASES = {"full": "full-access"}


class Wrong(Exception):
    """Something on the command line or in the settings; the text says what."""


def our_setup(model: str | None, mode: str | None) -> Setup:
    """Models, mode and servers. `Wrong` for what can be seen to be wrong before anybody asks."""
    try:
        settings = read_settings()
    except SettingsError as error:
        raise Wrong(str(error)) from None
    wanted = model or settings.text("model")
    chosen = mode or settings.text("mode")
    chosen = _ALIASES.get(chosen, chosen)
    if chosen != DEFAULT_MODE:
        _check_mode(chosen)
    script = _script(wanted)
    if script is None and wanted and wanted != OFFLINE:
        _check_model(wanted, settings)
    means = Means(os.environ, config_of(settings), home_folder(), wanted)
    return Setup(
        Supply(means, script=script),
        os.environ,
        mode=chosen,
        home=home_folder(),
        model_calls=settings.number("max_turn_requests"),
        thought_level=settings.text("thought_level"),
        servers=lambda cwd: _servers(settings, cwd),
    )


def config_of(settings: Settings) -> dict[str, object]:
    """The part of the settings that models are made from."""
    return {"providers": settings.tables["providers"]}


def _script(wanted: str) -> "Callable[[], Model] | None":
    """A script is read now: its mistakes are the command line's."""
    kind, colon, path = wanted.partition(":")
    if not colon or kind.lower() != "script":
        return None
    from dragoman.coder.models.script import ScriptError, ScriptModel, load

    if not path:
        raise Wrong("which script? --model script:FILE")
    try:
        script = load(path)
    except ScriptError as error:
        raise Wrong(f"{path}: {error}") from None
    return lambda: ScriptModel(script)


def _check_mode(chosen: str) -> None:
    from dragoman.coder.modes import MODES

    if chosen not in MODES:
        raise Wrong(f"unknown mode {chosen!r}; there are {', '.join(MODES)}")


def _check_model(wanted: str, settings: Settings) -> None:
    from dragoman.coder.models.names import BadModelName, parse

    try:
        parse(wanted, configured=list(settings.tables["providers"]))
    except BadModelName as error:
        raise Wrong(f"--model {wanted}: {error}") from None


def _servers(settings: Settings, cwd: str) -> "list[McpServer]":
    """The user's own MCP servers, and those of a project that is trusted as it is."""
    found = dict(settings.tables["mcp"])
    registry = os.path.join(home_folder(), "trust.json")
    if os.path.exists(registry):
        from pathlib import Path

        from dragoman.host.trust import is_trusted

        found = (_of_project(cwd) | found) if is_trusted(Path(registry), Path(cwd)) else found
    if not found:
        return []
    from dragoman.coder.mcp import from_config
    from dragoman.errors import RequestFailed, UsageError

    try:
        return list(from_config(found, os.environ))
    except UsageError as error:
        raise RequestFailed(-32603, f"The MCP servers cannot be read: {error}") from None


def _of_project(folder: str) -> dict[str, object]:
    import json

    try:
        with open(os.path.join(folder, ".mcp.json"), "rb") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    return servers if isinstance(servers, dict) else {}
