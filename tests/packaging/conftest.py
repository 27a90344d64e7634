"""The wheel and the bare environment as fixtures."""

from pathlib import Path

import pytest

from tests.packaging.bare import Bare, build, install, once


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (file,) = once(tmp_path_factory, "wheel", build).glob("*.whl")
    return file


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    # Not moved afterwards: its programs know where they are.
    folder = once(tmp_path_factory, "bare", lambda making: install(wheel, making.parent / "bare-environment"))
    return Bare(folder.parent / "bare-environment", wheel)
