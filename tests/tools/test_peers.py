"""Peers in Python get an environment each: made once, made anew when half of it is there, named when it cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import peers

# Installers: the arguments after `--target FOLDER` are what is wanted.
GOOD = [sys.executable, "-c", "import pathlib, sys; (pathlib.Path(sys.argv[2]) / 'thing.py').write_text('WORD = 7\\n')"]
BAD = [sys.executable, "-c", "import sys; sys.exit('there is no such package')"]


def installed(folder: Path, installer: list[str]) -> list[str]:
    said: list[str] = []
    peers.iac_code(folder, installer, said.append)
    return said


def test_an_environment_is_made_once_and_has_nothing_of_ours(tmp_path: Path) -> None:
    assert installed(tmp_path, GOOD) == ["Installing iac-code."]
    assert installed(tmp_path, BAD) == []
    python = tmp_path / "iac-code" / "bin" / "python"
    found = "import thing, importlib.util; print(thing.WORD, importlib.util.find_spec('msgspec'))"
    done = subprocess.run([python, "-P", "-c", found], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "7 None\n"


def test_half_an_environment_is_made_anew(tmp_path: Path) -> None:
    with pytest.raises(peers.Missing, match=r"iac-code could not be installed: there is no such package"):
        installed(tmp_path, BAD)
    leftover = peers.packages_of(tmp_path / "iac-code") / "leftover.py"
    leftover.touch()
    assert installed(tmp_path, GOOD) == ["Installing iac-code."]
    assert not leftover.exists()


def test_another_version_is_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, GOOD)
    monkeypatch.setattr(peers, "IAC_CODE", ("iac-code==99",))
    assert installed(tmp_path, GOOD) == ["Installing iac-code."]
