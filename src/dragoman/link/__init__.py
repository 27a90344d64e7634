"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out."""

import logging

from dragoman.link.contract import CountingHandler, Handler, Watch
from dragoman.link.link import Link
from dragoman.link.outbox import TextStream, Trace
from dragoman.link.state import LinkState, Role

# Without it Python prints warnings of a library that no application has configured logging for.
logging.getLogger("dragoman").addHandler(logging.NullHandler())

__all__ = ["CountingHandler", "Handler", "Link", "LinkState", "Role", "TextStream", "Trace", "Watch"]
