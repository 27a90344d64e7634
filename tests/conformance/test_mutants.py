"""`check` is checked: each deliberate mistake in it turns its own tests red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.mutants import MUTANTS, Mutant
from tests.support.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"


def mutated(mutant: Mutant, folder: Path) -> None:
    """The package with one mistake; what is not `conformance` is that of the repository."""
    target = folder / "dragoman"
    target.mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name != "conformance":
            (target / entry.name).symlink_to(entry)
    shutil.copytree(PACKAGE / "conformance", target / "conformance", ignore=shutil.ignore_patterns("__pycache__"))
    file = target / "conformance" / mutant.file
    text = file.read_text()
    assert text.count(mutant.old) == 1, (
        f"{mutant.file} has changed: {mutant.old!r} stands there {text.count(mutant.old)} times"
    )
    file.write_text(text.replace(mutant.old, mutant.new))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("CK8")
@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_a_mistake_in_check_turns_its_tests_red(mutant: Mutant, tmp_path: Path) -> None:
    mutated(mutant, tmp_path)
    line = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", mutant.tests]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 1, f"{mutant.tests} stays green\n{done.stdout[-2000:]}"


def test_every_mistake_can_still_be_made(tmp_path: Path) -> None:
    for number, mutant in enumerate(MUTANTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        mutated(mutant, folder)
    assert len(MUTANTS) >= 20
