"""`SHA256SUMS` beside what is published, and its signature by an SSH key.

`sha256sum -c SHA256SUMS` checks the files, `ssh-keygen -Y verify` who has made the list. An SSH key, because who
publishes has one, and who checks needs nothing that is not installed with git.
"""

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

NAME = "SHA256SUMS"
# What a signature is for: one that was made for something else does not count here.
NAMESPACE = "dragoman-release"


def write_checksums(files: Iterable[Path], folder: Path) -> Path:
    """Write the list of the files, which are in `folder`, as `sha256sum` does; return its path."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    sums = folder / NAME
    sums.write_text("".join(lines), encoding="utf-8")
    return sums


def sign(sums: Path, key: Path) -> Path:
    """Sign the list with a private SSH key; return the signature's path. ssh-keygen asks for the key's words itself."""
    signature = sums.with_name(f"{NAME}.sig")
    signature.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(sums)], check=True)
    return signature
