"""Traces as files, made of messages that a test writes down."""

import json
from pathlib import Path
from typing import Any

from dragoman.trace.records import TO_AGENT, TO_CLIENT, Direction
from dragoman.trace.writer import TraceWriter

Message = dict[str, Any]
Passed = tuple[Direction, Message | bytes]


def to_agent(**message: Any) -> Passed:
    """A message of the client."""
    return TO_AGENT, {"jsonrpc": "2.0", **message}


def to_client(**message: Any) -> Passed:
    """A message of the agent."""
    return TO_CLIENT, {"jsonrpc": "2.0", **message}


def update(session: str, **update: Any) -> Passed:
    """An update of a session."""
    return to_client(method="session/update", params={"sessionId": session, "update": update})


def chunk(session: str, text: str) -> Passed:
    """A piece of what the agent says."""
    return update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


HELLO = (
    to_agent(id=1, method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}}),
    to_client(id=1, result={"protocolVersion": 1, "agentCapabilities": {}}),
)
OPENED = (
    *HELLO,
    to_agent(id=2, method="session/new", params={"cwd": "/w", "mcpServers": []}),
    to_client(id=2, result={"sessionId": "s1"}),
)


def prompt(id: int, text: str, *between: Passed, session: str = "s1") -> tuple[Passed, ...]:
    """A turn: the prompt, what passes in it, and its end."""
    blocks = [{"type": "text", "text": text}]
    return (
        to_agent(id=id, method="session/prompt", params={"sessionId": session, "prompt": blocks}),
        *between,
        to_client(id=id, result={"stopReason": "end_turn"}),
    )


def write_trace(file: Path, *passed: Passed) -> Path:
    """A trace of one connection."""
    writer = TraceWriter(str(file))
    connection = writer.connect()
    for direction, message in passed:
        connection.frame(direction, message if isinstance(message, bytes) else json.dumps(message).encode())
    writer.close()
    return file


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The lines of a trace, as JSON."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def frames_of(file: Path) -> list[dict[str, Any]]:
    """The lines of its frames."""
    return [line for line in lines_of(file) if line["type"] == "frame"]
