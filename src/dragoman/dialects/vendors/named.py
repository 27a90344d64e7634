"""The dialects that have a name: what a link has to know of one before it speaks it.

Their modules are imported when they are chosen, and not before.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple

import msgspec

from dragoman.dialects.contract import Dialect
from dragoman.dialects.handshake.initialize import JUNE, DecodedAgentHello, DecodedClientHello
from dragoman.dialects.vendors.wire_adapter import WireAdapter
from dragoman.errors import INVALID_REQUEST, UsageError
from dragoman.vocabulary.dialect_rules import PROTOCOL_RULES, DialectRules
from dragoman.vocabulary.hello import AgentHello, ClientHello

_MODULES: Final = {
    JUNE: "v2_june.agent",
    "iac-code": "vendors.iac_code",
    "elephant": "vendors.elephant",
    "agentao": "vendors.agentao",
    "simse": "vendors.simse",
}
# What may be chosen by name. The first two pin a version, and are no modules of their own.
NAMES: Final = ("v1", "v2", *_MODULES)


class NamedDialect(NamedTuple):
    """How one named dialect greets, and what speaks it. `not_initialized` is the code of what comes too early."""

    decode_client: Callable[[msgspec.Raw], DecodedClientHello]
    encode_agent: Callable[[AgentHello, ClientHello], bytes]
    agent: Callable[[ClientHello, AgentHello], Dialect]
    encode_client: Callable[[ClientHello], bytes]
    decode_agent: Callable[[msgspec.Raw], DecodedAgentHello]
    client: Callable[[ClientHello, AgentHello], Dialect]
    rules: DialectRules = PROTOCOL_RULES
    not_initialized: int = INVALID_REQUEST
    # They make the adapter of one link in that role, where its frames differ from those of the protocol.
    agent_adapter: Callable[[], WireAdapter] | None = None
    client_adapter: Callable[[], WireAdapter] | None = None


def named(name: str) -> NamedDialect:
    """A dialect by its name; `UsageError` lists the ones there are."""
    check_name(name)
    found: NamedDialect = import_module(f"dragoman.dialects.{_MODULES[name]}").DIALECT
    return found


def check_name(name: str) -> None:
    """`UsageError` for a name that is none."""
    if name not in NAMES:
        raise UsageError(f"there is no dialect {name!r}; there are {', '.join(NAMES)}")


def pinned(name: str) -> int | None:
    """The version that a name of a version pins."""
    return {"v1": 1, "v2": 2}.get(name)
