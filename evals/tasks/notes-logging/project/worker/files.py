"""Work on the files of a folder."""

import logging
from pathlib import Path

LOG = logging.getLogger(__name__)


def sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a folder by its name."""
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
