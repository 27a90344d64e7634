"""A workspace's own programs do not take the place of the system's."""

import os
import shutil
from pathlib import Path

import pytest

from dragoman.host.programs import path_outside


@pytest.mark.requirement("H6")
def test_a_program_in_the_workspace_never_shadows_another(tmp_path: Path) -> None:
    shadow = tmp_path / "root" / "bin"
    shadow.mkdir(parents=True)
    (shadow / "ls").write_text("#!/bin/sh\n")
    (shadow / "ls").chmod(0o755)
    (tmp_path / "way-in").symlink_to(shadow)
    path = os.pathsep.join(
        [str(shadow), ".", "", "bin", str(tmp_path / "way-in"), f"{shadow}/../bin", "/usr/bin", "/bin"]
    )
    assert shutil.which("ls", path=path) == str(shadow / "ls")
    assert path_outside(path, [str(tmp_path / "root")]) == "/usr/bin:/bin"
