"""Git repositories for tests."""

import os
import subprocess
from pathlib import Path

from tests.support.needs import need


def git(folder: Path, *words: str) -> str:
    """Git as the user has it: without any setting of ours, and without a global one."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [need("git"), *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def repository(folder: Path) -> Path:
    """An ordinary repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    (folder / "file").write_text("one\n")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def program(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def trapped_submodule(folder: Path, mark: Path) -> None:
    """A submodule of a repository, committed, whose own configuration has a filter that makes `mark`.

    Git starts the filter when it looks whether the submodule's file, with its new time, has changed.
    """
    inner = repository(folder / "inner")
    (inner / ".gitattributes").write_text("* filter=x\n")
    git(inner, "add", ".gitattributes")
    git(inner, "commit", "-q", "-m", "attributes")
    git(folder, "add", "inner")
    git(folder, "commit", "-q", "-m", "submodule")
    git(inner, "config", "filter.x.clean", str(program(inner.parent.parent / "filter", f"touch {mark}", "cat")))
    os.utime(inner / "file", (1_000_000_000, 1_000_000_000))
