"""The probes of the role agent: importing this registers all of them in `registry.PROBES`."""

from dragoman.conformance.probes import (
    cancelling,
    durability,
    faults,
    handshake,
    history,
    json_rpc,
    messages,
    options,
    permission,
    prompts,
    sessions,
    stdio,
)
from dragoman.conformance.probes.registry import PROBES

__all__ = [
    "PROBES",
    "cancelling",
    "durability",
    "faults",
    "handshake",
    "history",
    "json_rpc",
    "messages",
    "options",
    "permission",
    "prompts",
    "sessions",
    "stdio",
]
