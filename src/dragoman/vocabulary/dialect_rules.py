"""The rules that a dialect sets for the layers above it: all that they may know of the dialect beside its events."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class DialectRules(NamedTuple):
    """How sessions behave for the clients of a dialect; the defaults are those of the protocol itself."""

    # The modes that its clients know, mapped to ours. Empty: they know ours.
    modes: Mapping[str, str] = MappingProxyType({})
    # A session is opened again only with the MCP servers that it was begun with.
    requires_same_servers: bool = False
    # A client may choose a model that the option does not list.
    accepts_unlisted_models: bool = False
    # If the session that the command line names does not exist, a new one is opened without an error.
    opens_missing_session: bool = False
    # Looking at a page on the network counts as reading, like a look at a file.
    fetches_as_reading: bool = False
    # The wire has no cursor: a list of sessions is sent whole.
    lists_all_sessions: bool = False


PROTOCOL_RULES = DialectRules()
