"""What a way of speaking asks of whoever speaks it, beyond words. Who stands above a dialect is told this alone."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Manner(NamedTuple):
    """How sessions are to be kept for the clients of a dialect; by default as for everybody.

    `modes` maps the modes its clients know to ours; empty: they know ours. `same_servers`: a session is opened again
    only with the MCP servers it was begun with. `open_models`: a client may name a model that was not listed.
    `resume_misses`: where the session that the command line names cannot be had, a new one is opened and nothing said.
    `fetches`: looking at a page on the network is a look like any other.
    """

    modes: Mapping[str, str] = MappingProxyType({})
    same_servers: bool = False
    open_models: bool = False
    resume_misses: bool = False
    fetches: bool = False


PLAIN = Manner()
