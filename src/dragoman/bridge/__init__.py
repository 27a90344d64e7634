"""Two links joined: what one side receives is sent to the other, in its dialect."""

from dragoman.bridge.bridge import Bridge
from dragoman.bridge.forwarding import GONE, TOO_LARGE, UNREADABLE
from dragoman.bridge.prompt_queue import BridgedPrompts
from dragoman.bridge.read_gate import UNFORWARDED_BYTES
from dragoman.bridge.services import BridgeServices, ServiceChain
from dragoman.bridge.sides import SpokenWire

__all__ = [
    "GONE",
    "TOO_LARGE",
    "UNFORWARDED_BYTES",
    "UNREADABLE",
    "Bridge",
    "BridgeServices",
    "BridgedPrompts",
    "ServiceChain",
    "SpokenWire",
]
