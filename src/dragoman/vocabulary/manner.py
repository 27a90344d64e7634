"""The rules that a dialect sets for the layers above it. They know nothing else of the dialect."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Manner(NamedTuple):
    """How sessions behave for the clients of a dialect; the defaults are those of the protocol itself.

    `modes` maps the modes its clients know to ours; empty: they know ours. `same_servers`: a session is opened again
    only with the MCP servers it was begun with. `open_models`: a client may name a model that was not listed.
    `resume_misses`: if the session that the command line names does not exist, a new one is opened without an error.
    `fetches`: looking at a page on the network is a look like any other.
    """

    modes: Mapping[str, str] = MappingProxyType({})
    same_servers: bool = False
    open_models: bool = False
    resume_misses: bool = False
    fetches: bool = False


PLAIN = Manner()
