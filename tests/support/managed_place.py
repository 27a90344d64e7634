"""A place for an administrator's file that a test may write: the program is told of it from inside of its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.cli import managed


def written(folder: Path, text: str) -> Path:
    """Write the file as an administrator leaves it: its folder and itself for others to read alone."""
    file = folder / "managed" / "managed.toml"
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.write_text(text)
    file.chmod(0o644)
    return file


def told(file: Path) -> str:
    """A program that has the process it runs in look there, for `Editor(first=…)`."""
    return (
        "from dragoman.cli import managed as _managed; "
        f"_managed.MANAGED_FILE, _managed.OWNER = {str(file)!r}, {os.getuid()}; _managed.managed_settings.cache_clear()"
    )


@contextmanager
def looking_at(file: Path) -> Iterator[None]:
    """Have our own process look there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managed, "MANAGED_FILE", str(file))
        patch.setattr(managed, "OWNER", os.getuid())
        managed.managed_settings.cache_clear()
        try:
            yield
        finally:
            managed.managed_settings.cache_clear()
