"""One live connection: a transport, a peer, a dialect and a bounded outbox; ordered in, ordered out."""

from dragoman.link.contract import Handler, Role, Watch
from dragoman.link.link import Link
from dragoman.outbox import TextStream, Trace

__all__ = ["Handler", "Link", "Role", "TextStream", "Trace", "Watch"]
