"""Dragoman: one Python system for the Agent Client Protocol. The public names, and nothing else."""

from typing import TYPE_CHECKING

from dragoman.version import VERSION as __version__

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent as Agent
    from dragoman.client.connect import connect as connect
    from dragoman.client.sync import connect_sync as connect_sync

# Imported when first used: an agent does not pay for the client, nor a client for the agent.
_HOMES = {
    "Agent": "dragoman.agent.agent",
    "connect": "dragoman.client.connect",
    "connect_sync": "dragoman.client.sync",
}

__all__ = ["Agent", "__version__", "connect", "connect_sync"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
