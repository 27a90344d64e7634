"""Work on the files of a folder."""

import logging
from pathlib import Path

LOG = logging.getLogger(__name__)


def sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a folder by its name."""
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}


def archive(folder: Path, days: float, now: float) -> list[str]:
    """Move files older than so many days to the subfolder `archive` and return their names."""
    old = sorted(path for path in folder.iterdir() if path.is_file() and now - path.stat().st_mtime > days * 86_400)
    (folder / "archive").mkdir(exist_ok=True)
    for path in old:
        LOG.info("archiving %s", path.name)
        path.rename(folder / "archive" / path.name)
    return [path.name for path in old]
