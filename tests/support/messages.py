"""Messages of the protocol as JSON, in either version: what tests send, and what they read of what they received."""

from typing import Any

Message = dict[str, Any]


def hello(version: int, id: int = 0) -> Message:
    """`initialize`, as a client of that version sends it."""
    info = {"name": "raw", "version": "1"}
    params: Message = {"protocolVersion": version}
    params |= {"clientCapabilities": {}, "clientInfo": info} if version == 1 else {"capabilities": {}, "info": info}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def greeting(version: int) -> Message:
    """What an agent answers to it."""
    if version == 1:
        session: Message = {"close": {}, "list": {}, "resume": {}}
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "sessionCapabilities": session}}
    return {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}, "capabilities": {"session": {}}}


def prompt(id: int, session_id: str, text: str = "go") -> Message:
    body = {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}
    return {"id": id, "method": "session/prompt", "params": body}


def texts(messages: list[Message]) -> list[str]:
    """What the agent said, piece by piece."""
    updates = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    return [update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]


def updates(messages: list[Message]) -> list[str]:
    """The kinds of updates, in order."""
    found = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    return [update.get("state", update["sessionUpdate"]) for update in found]
