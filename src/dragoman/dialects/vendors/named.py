"""The dialects that can be chosen by name: what a link has to know of one before it decodes a message.

Each is a module with a `DIALECT`, imported when it is chosen and not before: a process serves one of them at most. To
add one, write that module, put it into `_MODULES`, and list its differences in `tests/requirements/compatibility.toml`.
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
    """The `initialize` of one named dialect, its two roles, and its rules for the layers above."""

    decode_client: Callable[[msgspec.Raw], DecodedClientHello]
    encode_agent: Callable[[AgentHello, ClientHello], bytes]
    agent: Callable[[ClientHello, AgentHello], Dialect]
    encode_client: Callable[[ClientHello], bytes]
    decode_agent: Callable[[msgspec.Raw], DecodedAgentHello]
    client: Callable[[ClientHello, AgentHello], Dialect]
    rules: DialectRules = PROTOCOL_RULES
    # The code of the error for a request before `initialize`.
    not_initialized: int = INVALID_REQUEST
    # They make the adapter of one link in that role, where its frames differ from those of the protocol.
    agent_adapter: Callable[[], WireAdapter] | None = None
    client_adapter: Callable[[], WireAdapter] | None = None


def load_dialect(name: str) -> NamedDialect:
    """Return a dialect by its name; `UsageError` for an unknown name lists the known ones."""
    check_name(name)
    found: NamedDialect = import_module(f"dragoman.dialects.{_MODULES[name]}").DIALECT
    return found


def check_name(name: str) -> None:
    """Raise `UsageError` for an unknown name."""
    if name not in NAMES:
        raise UsageError(f"there is no dialect {name!r}; there are {', '.join(NAMES)}")


def nearest_version(name: str) -> int:
    """Return the version of the protocol that a named dialect comes closest to: its peers lose least with that."""
    return pinned_version(name) or (2 if name == JUNE else 1)


def pinned_version(name: str) -> int | None:
    """Return the version that `v1` or `v2` pins; None for every other name."""
    return {"v1": 1, "v2": 2}.get(name)
