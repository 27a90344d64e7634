"""The files that a client lends as text: the largest one, how text becomes bytes, and what a file holds now.

Shared by `Workspace`, which reads and writes them, and `GrantedWrites`, which compares what was shown with what is
there: both must mean the same bytes.
"""

from typing import Final

from dragoman.host.paths import PathRefused, Place, read_bytes
from dragoman.limits import MIB

# A source file of more is generated. A quarter of a frame: escaping may make four bytes of one.
FILE_BYTES: Final = 16 * MIB


def encode_text(text: str) -> bytes:
    """Return text as UTF-8. A lone surrogate, which a JSON string may hold, is encoded too and not refused."""
    return text.encode("utf-8", errors="surrogatepass")


def current_bytes(place: Place) -> bytes | None:
    """Return what a file holds now; None if there is none. Blocks.

    Raise `PathRefused` if it cannot be read, or is larger than `FILE_BYTES` and so cannot be shown.
    """
    try:
        data, more = read_bytes(place, FILE_BYTES)
    except PathRefused as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    if more:
        raise PathRefused(f"{place.path} is larger than {FILE_BYTES // MIB} MiB, and what it holds cannot be shown.")
    return data
