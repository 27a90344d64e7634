"""The files that configurations of trusted projects start: no agent writes one without a question."""

import os

from dragoman.cli.home import home_folder


def started_files() -> list[str]:
    """Return their paths, as named and as they really are. Most users have none, and import nothing for it."""
    registry = os.path.join(home_folder(), "trust.json")
    if not os.path.lexists(registry):
        return []
    from pathlib import Path

    from dragoman.host import trust

    return trust.started_files(Path(registry))
