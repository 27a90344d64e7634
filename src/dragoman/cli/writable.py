"""Whether our data folder can be written: checked before a server starts, and by `dragoman doctor`."""

import os
import tempfile
from contextlib import suppress


def unwritable(folder: str, *, make: bool = True) -> str | None:
    """Return why nothing can be kept in a folder, with the way out; None if something can.

    It is made if it is not there; or else, without `make`, the folder is looked at that it would be made in.
    """
    try:
        if make:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, file = tempfile.mkstemp(prefix=".writable-", dir=folder if make else _nearest(folder))
        try:
            os.write(descriptor, b"1")  # a full disk makes files, and fills none
        finally:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(file)
    except OSError as error:
        reason = (error.strerror or "no").lower()
        return f"{folder}: cannot be written ({reason}); DRAGOMAN_HOME can name another folder"
    return None


def _nearest(folder: str) -> str:
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder
