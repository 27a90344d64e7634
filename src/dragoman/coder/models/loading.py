"""Import large packages in a thread without holding the event loop up."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# How long a thread that loads packages keeps the interpreter when others want it.
_TURN_SECONDS: Final = 0.001
# Two threads that load the same packages in another order can see each other's halves.
_loading: Final = threading.Lock()


@contextmanager
def loading() -> Iterator[None]:
    """Import large packages in this block, in a thread: one thread at a time, which gives way to the loop.

    A thread that imports gives way after five milliseconds, each time another thread wants to run; a cancel needs a
    dozen such turns. In this block it gives way sooner.
    """
    with _loading:
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, _TURN_SECONDS))
        try:
            yield
        finally:
            sys.setswitchinterval(before)
