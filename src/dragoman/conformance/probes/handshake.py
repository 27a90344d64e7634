"""`initialize`: versions, information, capabilities and logins."""

from typing import Any, Final

from dragoman.conformance.connection import Message
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import VERSIONS
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import RowFailed
from dragoman.errors import AUTH_REQUIRED

_UNSUPPORTED: Final = 65535
_LOGIN_TYPES: Final = ("agent", "terminal")


async def _answered_version(trial: Trial, version: Any, why: str = "") -> Any:
    """Return the version that the agent answers to this one. Raise `RowFailed` for an error."""
    dialogue = await trial.connect()
    reply = await dialogue.connection.call("initialize", dialogue.greeting(version), intent=why)
    if not isinstance(reply.get("result"), dict):
        raise RowFailed(f"initialize with version {version!r} is not answered with a result")
    return reply["result"].get("protocolVersion")


def _is_version(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@probe("ACP-INIT-001")
async def initialize_succeeds(trial: Trial) -> None:
    await _answered_version(trial, trial.version)


@probe("ACP-INIT-201", "ACP-INIT-501")
async def supported_version_is_answered(trial: Trial) -> None:
    answered = await _answered_version(trial, trial.version)
    if not _is_version(answered) or answered != trial.version:
        raise RowFailed(f"version {trial.version} was asked and {answered!r} is answered")


@probe("ACP-INIT-003")
async def unsupported_version_is_not_echoed(trial: Trial) -> None:
    answered = await _answered_version(trial, _UNSUPPORTED, "a version that does not exist")
    if not _is_version(answered) or answered == _UNSUPPORTED or answered < trial.version:
        raise RowFailed(f"version {_UNSUPPORTED} was asked and {answered!r} is answered")


@probe("ACP-INIT-202")
async def earlier_version_is_answered(trial: Trial) -> None:
    answered = await _answered_version(trial, VERSIONS[0], "a client of version 2 that would speak version 1 as well")
    if answered not in VERSIONS or not _is_version(answered):
        raise RowFailed(f"version 1 was asked and {answered!r} is answered")


@probe("ACP-INIT-503")
async def version_zero_is_not_echoed(trial: Trial) -> None:
    dialogue = await trial.connect()
    reply = await dialogue.connection.call("initialize", dialogue.greeting(0), intent="the version before the first")
    result = reply.get("result")
    if isinstance(result, dict) and result.get("protocolVersion") == 0:
        raise RowFailed("version 0 was asked and is answered")


@probe("ACP-INIT-203", "ACP-INIT-502")
async def agent_names_itself(trial: Trial) -> None:
    dialogue = await trial.greeted()
    info = dialogue.hello.get("agentInfo" if trial.version == VERSIONS[0] else "info")
    if not isinstance(info, dict) or not info.get("name") or not info.get("version"):
        raise RowFailed("the answer to initialize has no name and version of the agent")


@probe("ACP-INIT-204")
async def capabilities_are_objects(trial: Trial) -> None:
    dialogue = await trial.greeted()
    wrong = _markers(dialogue.hello.get("capabilities", {}), "capabilities")
    if wrong:
        raise RowFailed(f"{wrong[0]} is a boolean")


def _markers(value: Any, path: str) -> list[str]:
    """Return the paths of capabilities that are booleans. Within one that is an object, numbers and texts may stand."""
    if isinstance(value, bool):
        return [path]
    inner = value.items() if isinstance(value, dict) else ()
    return [wrong for key, one in inner if not key.startswith("_") for wrong in _markers(one, f"{path}.{key}")]


@probe("ACP-INIT-504")
async def unknown_fields_are_ignored(trial: Trial) -> None:
    dialogue = await trial.connect()
    params = dialogue.greeting(capabilities={"_example.org/thing": {}, "somethingNew": {"a": 1}})
    reply = await dialogue.connection.call("initialize", {**params, "somethingElse": [1], "_meta": {"a": {"b": None}}})
    if "result" not in reply:
        raise RowFailed("initialize with unknown fields is not answered with a result")


@probe("ACP-INIT-505")
async def capabilities_may_be_absent(trial: Trial) -> None:
    dialogue = await trial.connect()
    params = {key: value for key, value in dialogue.greeting().items() if "apabilities" not in key}
    reply = await dialogue.connection.call("initialize", params)
    if "result" not in reply:
        raise RowFailed("initialize without capabilities is not answered with a result")


@probe("ACP-INIT-506")
async def version_is_a_number(trial: Trial) -> None:
    dialogue = await trial.connect()
    params = {**dialogue.greeting(), "protocolVersion": "latest"}
    reply = await dialogue.connection.call("initialize", params, intent="a version that is no number")
    if "error" not in reply:
        raise RowFailed('the version "latest" is accepted')


@probe("ACP-SCHEMA-001")
async def greeting_is_as_the_schema_says(trial: Trial) -> None:
    dialogue = await trial.connect()
    await dialogue.initialize()
    if faults := dialogue.connection.recording.faults("agent"):
        raise RowFailed(faults[0].fault, faults[:1])


async def _logins(trial: Trial, capabilities: Message | None = None) -> list[Message]:
    dialogue = await trial.connect()
    await dialogue.initialize(dialogue.greeting(capabilities=capabilities))
    methods = dialogue.hello.get("authMethods") or []
    return [one for one in methods if isinstance(one, dict)] if isinstance(methods, list) else []


@probe("ACP-AUTH-001", "ACP-AUTH-201")
async def login_ids_are_unique(trial: Trial) -> None:
    key = "id" if trial.version == VERSIONS[0] else "methodId"
    ids = [one.get(key) for one in await _logins(trial)]
    if len(ids) != len(set(map(str, ids))):
        raise RowFailed(f"two logins have one id: {ids}")


@probe("ACP-AUTH-002", "ACP-AUTH-202")
async def terminal_logins_are_for_clients_with_terminals(trial: Trial) -> None:
    if any(one.get("type") == "terminal" for one in await _logins(trial, {})):
        raise RowFailed("a login in a terminal is offered to a client that has none")


@probe("ACP-AUTH-206")
async def login_types_are_known(trial: Trial) -> None:
    types = [str(one.get("type")) for one in await _logins(trial)]
    wrong = [one for one in types if one not in _LOGIN_TYPES and not one.startswith("_")]
    if wrong:
        raise RowFailed(f"{wrong[0]!r} is no type of a login")


@probe("ACP-AUTH-205", "ACP-AUTH-501")
async def login_wall_has_a_door(trial: Trial) -> None:
    dialogue = await trial.greeted()
    reply = await dialogue.connection.call("session/new", dialogue.session_params())
    is_wall = isinstance(reply.get("error"), dict) and reply["error"].get("code") == AUTH_REQUIRED
    if is_wall and not dialogue.hello.get("authMethods"):
        raise RowFailed("a login is asked for, and initialize has offered none")
