"""Modes and configuration options: what is offered, what setting them answers."""

from collections.abc import Mapping
from typing import Any

from dragoman.conformance.connection import Message
from dragoman.conformance.dialogue import Dialogue
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import VERSIONS
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import NotTested, RowFailed


async def _opened(trial: Trial, capabilities: Mapping[str, Any] | None = None) -> tuple[Dialogue, Message]:
    dialogue = await trial.greeted(capabilities)
    return dialogue, dict(await dialogue.open_session())


async def _modes(trial: Trial) -> tuple[Dialogue, str, Message, list[Any]]:
    """Return the modes of a new session and their ids."""
    dialogue, opened = await _opened(trial)
    modes = opened.get("modes")
    if not isinstance(modes, dict):
        raise NotTested("the agent has no modes", is_unadvertised=True)
    listed = modes.get("availableModes")
    ids = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return dialogue, opened["sessionId"], modes, ids


@probe("ACP-MODES-501")
async def current_mode_is_offered(trial: Trial) -> None:
    _, _, modes, ids = await _modes(trial)
    if modes.get("currentModeId") not in ids:
        raise RowFailed(f"the current mode {modes.get('currentModeId')!r} is not among {ids}")


@probe("ACP-MODES-502")
async def offered_mode_can_be_set(trial: Trial) -> None:
    dialogue, session, _, ids = await _modes(trial)
    reply = await dialogue.connection.call("session/set_mode", {"sessionId": session, "modeId": ids[-1]})
    if "result" not in reply:
        raise RowFailed(f"the offered mode {ids[-1]!r} cannot be set")


@probe("ACP-MODES-503")
async def unknown_mode_is_refused(trial: Trial) -> None:
    dialogue, session, _, _ = await _modes(trial)
    reply = await dialogue.connection.call("session/set_mode", {"sessionId": session, "modeId": "no-such-mode"})
    if "error" not in reply:
        raise RowFailed("a mode that was not offered is set")


def _key(version: int) -> str:
    return "id" if version == VERSIONS[0] else "configId"


def _values(option: Message) -> list[Any]:
    """Return the values of a list of choices, flat or in groups."""
    listed = option.get("options")
    found: list[Any] = []
    for one in listed if isinstance(listed, list) else []:
        inner = one.get("options") if isinstance(one, dict) else None
        found += [each.get("value") for each in inner] if isinstance(inner, list) else [one.get("value")]
    return found


async def _options(trial: Trial, capabilities: Mapping[str, Any] | None = None) -> tuple[Dialogue, str, list[Message]]:
    dialogue, opened = await _opened(trial, capabilities)
    options = opened.get("configOptions")
    if not isinstance(options, list) or not options:
        raise NotTested("the agent has no configuration options", is_unadvertised=True)
    return dialogue, opened["sessionId"], options


async def _choices(trial: Trial) -> tuple[Dialogue, str, list[Message], Message]:
    """Return the options and the first one that has choices."""
    dialogue, session, options = await _options(trial)
    chosen = next((one for one in options if one.get("type") == "select" and _values(one)), None)
    if chosen is None:
        raise NotTested("no configuration option has choices", is_unadvertised=True)
    return dialogue, session, options, chosen


def _setting(trial: Trial, session: str, option: Message, value: Any) -> Message:
    params = {"sessionId": session, "configId": option.get(_key(trial.version)), "value": value}
    return params if trial.version == VERSIONS[0] else {**params, "type": "id"}


@probe("ACP-CONFIG-204", "ACP-CONFIG-502")
async def current_value_is_offered(trial: Trial) -> None:
    _, _, options = await _options(trial)
    for option in options:
        if option.get("type") == "select" and option.get("currentValue") not in _values(option):
            raise RowFailed(f"the value {option.get('currentValue')!r} of {option.get('name')!r} is not offered")


@probe("ACP-CONFIG-202", "ACP-CONFIG-501")
async def all_options_are_answered(trial: Trial) -> None:
    dialogue, session, options, option = await _choices(trial)
    params = _setting(trial, session, option, option["currentValue"])
    result = (await dialogue.connection.call("session/set_config_option", params)).get("result")
    answered = result.get("configOptions") if isinstance(result, dict) else None
    if not isinstance(answered, list):
        raise RowFailed("setting an option to a value that is offered fails")
    key = _key(trial.version)
    missing = {str(one.get(key)) for one in options} - {str(one.get(key)) for one in answered}
    if missing:
        raise RowFailed(f"the answer to setting an option lacks {sorted(missing)[0]!r}")


@probe("ACP-CONFIG-503")
async def set_value_is_answered(trial: Trial) -> None:
    dialogue, session, _, option = await _choices(trial)
    value = next((one for one in _values(option) if one != option["currentValue"]), None)
    if value is None:
        raise NotTested("no configuration option has two choices", is_unadvertised=True)
    params = _setting(trial, session, option, value)
    result = (await dialogue.connection.call("session/set_config_option", params)).get("result")
    answered = result.get("configOptions") if isinstance(result, dict) else None
    key = _key(trial.version)
    now = [one.get("currentValue") for one in answered or [] if one.get(key) == option.get(key)]
    if now != [value]:
        raise RowFailed(f"{option.get('name')!r} was set to {value!r} and is answered as {now}")


@probe("ACP-CONFIG-504")
async def unknown_value_is_refused(trial: Trial) -> None:
    dialogue, session, _, option = await _choices(trial)
    params = _setting(trial, session, option, "no-such-value")
    if "error" not in await dialogue.connection.call("session/set_config_option", params):
        raise RowFailed("a value that is not offered is accepted")


@probe("ACP-CONFIG-505")
async def unknown_option_is_refused(trial: Trial) -> None:
    dialogue, session, _, option = await _choices(trial)
    params = {**_setting(trial, session, option, option["currentValue"]), "configId": "no-such-option"}
    if "error" not in await dialogue.connection.call("session/set_config_option", params):
        raise RowFailed("an option that is not offered is set")


@probe("ACP-CONFIG-003")
async def switches_are_for_clients_that_know_them(trial: Trial) -> None:
    _, _, options = await _options(trial, {})
    if any(one.get("type") == "boolean" for one in options):
        raise RowFailed("a boolean option is offered to a client that has not offered to show one")
