import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.confined_commands import LEVELS, ROOT, Box, is_temporary


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is not in a temporary one."""
    base = next(
        folder
        for folder in (ROOT / "build", Path("/srv"), Path("/opt"), Path.home())
        if not is_temporary(folder) and os.access(folder if folder.exists() else folder.parent, os.W_OK)
    )
    base.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, prefix="dragoman-test-") as folder:
        yield Path(folder)


@pytest.fixture
def workspace(place: Path) -> Path:
    folder = place / "workspace"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / "sub").mkdir()
    (folder / "file").write_text("inside")
    (place / "outside").write_text("outside")
    return folder


@pytest.fixture(params=LEVELS)
def box(request: pytest.FixtureRequest, workspace: Path) -> Box:
    return Box(request.param, workspace)
