"""Dialects: between the messages of one wire and the vocabulary. Pure.

`contract` is the interface, `codec` what all dialects share, `handshake` is `initialize`, `v1`, `v2` and `v2_june` are
the versions of the protocol, `vendors` the wires of four programs, `tolerance` reads what peers are known to send
against the schema.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dragoman.dialects.contract import Dialect
    from dragoman.dialects.handshake.initialize import PlainHandshake
    from dragoman.dialects.vendors.named import NamedDialect
    from dragoman.vocabulary.hello import AgentHello, ClientHello


def dialect_for(
    version: int,
    role: Literal["agent", "client"],
    client: "ClientHello",
    agent: "AgentHello",
    name: str = "",
    *,
    salt: str = "",
) -> "Dialect":
    """Return the dialect of a negotiated version, or the one of a name.

    `salt` stands in every id that the dialect makes up, where the wire has none.
    """
    dialect = _make_dialect(version, role, client, agent, name)
    if salt:
        dialect.salt = salt
    return dialect


def handshake_for(name: str, versions: tuple[int, ...]) -> "NamedDialect | PlainHandshake":
    """Return how `initialize` is encoded and decoded: in the dialect of this name, or in one of `versions`."""
    if name:
        from dragoman.dialects.vendors.named import load_dialect

        return load_dialect(name)
    from dragoman.dialects.handshake.initialize import PlainHandshake

    return PlainHandshake(versions)


def _make_dialect(
    version: int, role: Literal["agent", "client"], client: "ClientHello", agent: "AgentHello", name: str
) -> "Dialect":
    if name:
        from dragoman.dialects.vendors.named import load_dialect

        found = load_dialect(name)
        return found.agent(client, agent) if role == "agent" else found.client(client, agent)
    # Imported here: the generated types of a version take tens of milliseconds to load, and a link needs one of them.
    if version == 1:
        if role == "agent":
            from dragoman.dialects.v1.agent import AgentV1

            return AgentV1(client, agent)
        from dragoman.dialects.v1.client import ClientV1

        return ClientV1(client, agent)
    if role == "agent":
        from dragoman.dialects.v2.agent import AgentV2

        return AgentV2(client, agent)
    from dragoman.dialects.v2.client import ClientV2

    return ClientV2(client, agent)
