"""Say in a few words what a message is about, for a timeline. Pure; what it returns is not yet safe to show."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.trace.exchanges import Exchange

_CHUNKS: Final = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")


def summary(exchange: Exchange) -> str:
    """Return what a reader of a timeline wants to know of a message, at most some words."""
    match exchange.kind:
        case "unreadable":
            return exchange.frame.data[:200].decode(errors="replace")
        case "response":
            return _response_words(exchange)
        case "request" | "notification":
            words = _CALLS.get(exchange.method)
            return words(exchange.params) if words else ""


def chunk_text(exchange: Exchange) -> str | None:
    """Return the text of a piece of a message; None for anything else."""
    if exchange.update not in _CHUNKS:
        return None
    text = _at(exchange.params, "update", "content", "text")
    return text if isinstance(text, str) else None


def _response_words(exchange: Exchange) -> str:
    if "error" in exchange.message:
        return f"error {exchange.error.get('code')}: {exchange.error.get('message')}"
    result = exchange.result
    if exchange.method == "initialize":
        info = result.get("agentInfo") or result.get("info")
        name = f", {_at(result, 'agentInfo', 'name') or _at(result, 'info', 'name')}" if isinstance(info, dict) else ""
        return f"version {result.get('protocolVersion')}{name}"
    outcome = result.get("outcome")
    if isinstance(outcome, dict):
        return _joined(outcome.get("outcome"), outcome.get("optionId"))
    sessions = result.get("sessions")
    if isinstance(sessions, list):
        return f"{len(sessions)} sessions"
    return _joined(result.get("stopReason") or result.get("sessionId") or outcome)


def _initialize(params: Mapping[str, Any]) -> str:
    name = _at(params, "clientInfo", "name") or _at(params, "info", "name")
    return _joined(f"version {params.get('protocolVersion')}", name)


def _prompt(params: Mapping[str, Any]) -> str:
    blocks = params.get("prompt")
    if not isinstance(blocks, list):
        return ""
    return " ".join(str(_at(block, "text") or f"[{_at(block, 'type')}]") for block in blocks)


def _update(params: Mapping[str, Any]) -> str:
    update = params.get("update")
    if not isinstance(update, dict):
        return ""
    text = _at(update, "content", "text") or update.get("title") or update.get("currentModeId")
    call = update.get("toolCallId")
    rest = [call, update.get("status"), update.get("state"), update.get("stopReason"), text]
    return _joined(update.get("sessionUpdate"), *rest)


def _permission(params: Mapping[str, Any]) -> str:
    call = params.get("toolCall") if isinstance(params.get("toolCall"), dict) else _at(params, "subject")
    return _joined(_at(call, "title") or _at(call, "toolCallId"))


def _terminal(params: Mapping[str, Any]) -> str:
    arguments = params.get("args")
    return _joined(params.get("command"), *(arguments if isinstance(arguments, list) else ()))


_CALLS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "initialize": _initialize,
    "session/new": lambda params: _joined(params.get("cwd")),
    "session/load": lambda params: _joined(params.get("cwd")),
    "session/resume": lambda params: _joined(params.get("cwd")),
    "session/prompt": _prompt,
    "session/update": _update,
    "session/request_permission": _permission,
    "session/set_mode": lambda params: _joined(params.get("modeId")),
    "session/set_model": lambda params: _joined(params.get("modelId")),
    "session/set_config_option": lambda params: _joined(params.get("configId"), params.get("value")),
    "fs/read_text_file": lambda params: _joined(params.get("path")),
    "fs/write_text_file": lambda params: _joined(params.get("path")),
    "terminal/create": _terminal,
    "authenticate": lambda params: _joined(params.get("methodId")),
}


def _joined(*words: object) -> str:
    return " ".join(str(word) for word in words if word not in (None, "", {}, []))


def _at(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
