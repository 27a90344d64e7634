"""What an agent sends in an ordinary conversation, held against the schema and against what the client has offered."""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.conformance.connection import Message
from dragoman.conformance.probes.registry import probe
from dragoman.conformance.schema import foreign_variants
from dragoman.conformance.trial import Trial
from dragoman.conformance.verdicts import RowFailed


@probe("ACP-SCHEMA-501")
async def frames_are_as_the_schema_says(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    if faults := dialogue.connection.recording.faults("agent"):
        raise RowFailed(faults[0].fault, faults[:1])


@probe("ACP-ENUM-202", "ACP-SCHEMA-502")
async def variants_are_known(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    for message, frame in dialogue.connection.received:
        if found := foreign_variants(message, trial.version):
            raise RowFailed(f"{found[0]!r} is no variant of the schema, and no extension", [frame])


@probe("ACP-META-201", "ACP-META-501")
async def meta_is_an_object(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    for message, frame in dialogue.connection.received:
        if any(not isinstance(one, dict) for one in _metas(message)):
            raise RowFailed("a _meta is no object", [frame])


def _metas(value: Any) -> list[Any]:
    """Return all `_meta` in a message, however deep, without those that are null."""
    if isinstance(value, list):
        return [one for inner in value for one in _metas(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["_meta"]] if value.get("_meta") is not None else []
    return own + [one for key, inner in value.items() if key != "_meta" for one in _metas(inner)]


async def _expect_unasked(trial: Trial, *prefixes: str, offered: Mapping[str, Any] | None = None) -> None:
    """Play a turn as a client that has offered nothing, or just this, and look for requests that begin so."""
    dialogue, session = await trial.session(offered or {})
    await dialogue.end_of(dialogue.prompt(session, trial.settings.prompt))
    turn = await trial.asking_turn(dialogue, session)
    await dialogue.end_of(turn)
    for message, frame in dialogue.connection.received:
        if _calls(message, *prefixes):
            raise RowFailed(f"{message['method']} is called, and the client has offered no such thing", [frame])


def _calls(message: Message, *prefixes: str) -> bool:
    return str(message.get("method", "")).startswith(prefixes)


@probe("ACP-CLIENTCAP-001")
async def files_are_not_asked_for(trial: Trial) -> None:
    await _expect_unasked(trial, "fs/")


@probe("ACP-CLIENTCAP-002")
async def terminals_are_not_asked_for(trial: Trial) -> None:
    await _expect_unasked(trial, "terminal/")


@probe("ACP-CLIENTCAP-003", "ACP-CLIENTCAP-201")
async def forms_are_not_asked_for(trial: Trial) -> None:
    await _expect_unasked(trial, "elicitation/")


_READ: Final = {"readTextFile": True, "writeTextFile": False}
_WRITE: Final = {"readTextFile": False, "writeTextFile": True}
_FILES: Final = {"readTextFile": True, "writeTextFile": True}


@probe("ACP-CLIENTCAP-510")
async def files_are_not_written_where_they_may_be_read(trial: Trial) -> None:
    await _expect_unasked(trial, "fs/write_text_file", offered={"fs": _READ, "terminal": True})


@probe("ACP-CLIENTCAP-511")
async def files_are_not_read_where_they_may_be_written(trial: Trial) -> None:
    await _expect_unasked(trial, "fs/read_text_file", offered={"fs": _WRITE, "terminal": True})


@probe("ACP-CLIENTCAP-512")
async def terminals_are_not_used_where_files_are(trial: Trial) -> None:
    await _expect_unasked(trial, "terminal/", offered={"fs": _FILES, "terminal": False})


@probe("ACP-CLIENTCAP-513")
async def forms_are_not_used_where_files_are(trial: Trial) -> None:
    await _expect_unasked(trial, "elicitation/", offered={"fs": _FILES, "terminal": True})


@probe("ACP-CLIENTCAP-514")
async def addresses_are_not_shown_where_forms_are(trial: Trial) -> None:
    dialogue, session = await trial.session({"elicitation": {"form": {}}})
    await dialogue.end_of(dialogue.prompt(session, trial.settings.prompt))
    await dialogue.end_of(await trial.asking_turn(dialogue, session))
    for message, frame in dialogue.connection.received:
        params = message.get("params")
        if message.get("method") == "elicitation/create" and isinstance(params, dict) and params.get("mode") == "url":
            raise RowFailed("an address is shown, and the client has offered forms only", [frame])


@probe("ACP-CLIENTCAP-202", "ACP-CLIENTCAP-501")
async def methods_of_the_client_exist(trial: Trial) -> None:
    dialogue, _, _ = await trial.played()
    for message, frame in dialogue.connection.received:
        if "method" in message and "has no" in frame.fault:
            raise RowFailed(frame.fault, [frame])
