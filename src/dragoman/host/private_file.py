"""Files of the user's own that hold decisions or keys: written whole or not at all, and readable by the user alone."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put a file in its place, or leave the old one as it is. `OSError` if that fails; a folder on the way is made."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
