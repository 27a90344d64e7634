"""Dragoman: one Python system for the Agent Client Protocol. The public names, and nothing else.

An agent is written with `Agent`, `Session`, `Prompt`, `Select` and their like; `connect` and `Client` talk to one;
`Bridge` joins an editor and an agent over two transports. `events` has every event of a session, `errors` everything
that can be raised.
"""

from typing import TYPE_CHECKING

from dragoman.version import VERSION as __version__

if TYPE_CHECKING:
    from dragoman import errors as errors
    from dragoman.agent.agent import Agent as Agent
    from dragoman.agent.session import Prompt as Prompt
    from dragoman.agent.session import Session as Session
    from dragoman.bridge.bridge import Bridge as Bridge
    from dragoman.client.client import Client as Client
    from dragoman.client.connect import connect as connect
    from dragoman.client.conversation import Conversation as Conversation
    from dragoman.client.permission_handler import PermissionHandler as PermissionHandler
    from dragoman.client.permission_policy import PermissionPolicy as PermissionPolicy
    from dragoman.client.registry import AgentRegistry as AgentRegistry
    from dragoman.client.sync import connect_sync as connect_sync
    from dragoman.client.timeouts import Timeouts as Timeouts
    from dragoman.client.turn import Answer as Answer
    from dragoman.client.turn import Turn as Turn
    from dragoman.client.workspace import Workspace as Workspace
    from dragoman.permissions.rule import PermissionRule as PermissionRule
    from dragoman.store.sqlite import SqliteStore as SqliteStore
    from dragoman.transports.child import ChildTransport as ChildTransport
    from dragoman.transports.stdio import StdioTransport as StdioTransport
    from dragoman.vocabulary import events as events
    from dragoman.vocabulary.options import Choice as Choice
    from dragoman.vocabulary.options import PlanEntry as PlanEntry
    from dragoman.vocabulary.options import Select as Select
    from dragoman.vocabulary.options import Toggle as Toggle
    from dragoman.vocabulary.services import PermissionOption as PermissionOption
    from dragoman.vocabulary.services import RequestPermission as RequestPermission

    # The former names, see `_RENAMED`.
    Decider = PermissionHandler
    Fleet = AgentRegistry
    Patience = Timeouts
    Policy = PermissionPolicy
    Rule = PermissionRule

# Imported when first used: an agent does not pay for the client, nor a client for the agent.
_HOMES = {
    "Agent": "dragoman.agent.agent",
    "AgentRegistry": "dragoman.client.registry",
    "Answer": "dragoman.client.turn",
    "Bridge": "dragoman.bridge.bridge",
    "ChildTransport": "dragoman.transports.child",
    "Choice": "dragoman.vocabulary.options",
    "Client": "dragoman.client.client",
    "Conversation": "dragoman.client.conversation",
    "PermissionHandler": "dragoman.client.permission_handler",
    "PermissionOption": "dragoman.vocabulary.services",
    "PermissionPolicy": "dragoman.client.permission_policy",
    "PermissionRule": "dragoman.permissions.rule",
    "PlanEntry": "dragoman.vocabulary.options",
    "Prompt": "dragoman.agent.session",
    "RequestPermission": "dragoman.vocabulary.services",
    "Select": "dragoman.vocabulary.options",
    "Session": "dragoman.agent.session",
    "SqliteStore": "dragoman.store.sqlite",
    "StdioTransport": "dragoman.transports.stdio",
    "Timeouts": "dragoman.client.timeouts",
    "Toggle": "dragoman.vocabulary.options",
    "Turn": "dragoman.client.turn",
    "Workspace": "dragoman.client.workspace",
    "connect": "dragoman.client.connect",
    "connect_sync": "dragoman.client.sync",
}
_MODULES = {"errors": "dragoman.errors", "events": "dragoman.vocabulary.events"}
# Former names of public classes: they work for one more release, with a `DeprecationWarning`.
_RENAMED = {
    "Decider": "PermissionHandler",
    "Fleet": "AgentRegistry",
    "Patience": "Timeouts",
    "Policy": "PermissionPolicy",
    "Rule": "PermissionRule",
}

__all__ = [
    "Agent",
    "AgentRegistry",
    "Answer",
    "Bridge",
    "ChildTransport",
    "Choice",
    "Client",
    "Conversation",
    "PermissionHandler",
    "PermissionOption",
    "PermissionPolicy",
    "PermissionRule",
    "PlanEntry",
    "Prompt",
    "RequestPermission",
    "Select",
    "Session",
    "SqliteStore",
    "StdioTransport",
    "Timeouts",
    "Toggle",
    "Turn",
    "Workspace",
    "__version__",
    "connect",
    "connect_sync",
    "errors",
    "events",
]


if not TYPE_CHECKING:  # a type checker has the imports above, and so finds a name that is misspelt

    def __getattr__(name: str) -> object:
        if name in _RENAMED:
            import warnings

            new = _RENAMED[name]
            warnings.warn(f"dragoman.{name} is called dragoman.{new} now", DeprecationWarning, stacklevel=2)
            name = new
        home = _HOMES.get(name) or _MODULES.get(name)
        if home is None:
            raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
        import importlib

        module = importlib.import_module(home)
        return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
