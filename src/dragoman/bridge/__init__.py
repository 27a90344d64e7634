"""Two links joined: what one side is heard to say is said to the other, in its dialect."""

from dragoman.bridge.bridge import Bridge
from dragoman.bridge.failures import GONE, TOO_LARGE, UNREADABLE
from dragoman.bridge.read_gate import UNSAID_BYTES

__all__ = ["GONE", "TOO_LARGE", "UNREADABLE", "UNSAID_BYTES", "Bridge"]
