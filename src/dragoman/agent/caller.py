"""Who made the request that is being worked on. Handlers that are given no request ask here.

Outside of a request, and on a link that is not trusted, it is the user at this machine.
"""

from contextvars import ContextVar
from typing import Final

from dragoman.vocabulary.identity import LOCAL, Identity

CALLER: ContextVar[Identity] = ContextVar("dragoman_caller", default=LOCAL)
caller: Final = CALLER.get
