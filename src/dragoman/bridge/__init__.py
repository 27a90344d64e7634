"""Two links joined: what one side receives is sent to the other, in its dialect."""

from dragoman.bridge.bridge import Bridge
from dragoman.bridge.forwarding import GONE, TOO_LARGE, UNREADABLE
from dragoman.bridge.read_gate import UNFORWARDED_BYTES

__all__ = ["GONE", "TOO_LARGE", "UNFORWARDED_BYTES", "UNREADABLE", "Bridge"]
