import os
import time
from pathlib import Path
import logging

LOG = logging.getLogger(__name__)


def sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a folder by its name."""
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}


def archive(folder, days, now=None):
    now = now or time.time()
    done = []
    os.makedirs(os.path.join(folder, "archive"), exist_ok=True)
    for path in sorted(Path(folder).iterdir()):
        if path.is_file() and now - path.stat().st_mtime > days * 86400:
            print("archiving", path)
            path.rename(Path(folder) / "archive" / path.name)
            done.append(path.name)
    return done
