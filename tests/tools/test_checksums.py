"""What is published can be checked by others, with tools that they have."""

import subprocess
from pathlib import Path

from tests.support.needs import need
from tools.checksums import NAMESPACE, sign, write_checksums


def key_pair(folder: Path) -> Path:
    key = folder / "key"
    subprocess.run([need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    return key


def is_signed(folder: Path, key: Path, content: bytes) -> bool:
    (folder / "signers").write_text(f"release@example.org {key.with_suffix('.pub').read_text()}")
    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        str(folder / "signers"),
        "-I",
        "release@example.org",
        "-n",
        NAMESPACE,
    ]
    command += ["-s", str(folder / "SHA256SUMS.sig")]
    return subprocess.run(command, input=content, capture_output=True, check=False).returncode == 0


def test_sums_are_those_of_sha256sum_and_a_changed_file_or_list_is_found(tmp_path: Path) -> None:
    files = [tmp_path / "b.whl", tmp_path / "a.tar.gz"]
    for file in files:
        file.write_bytes(file.name.encode() * 1000)
    sums, key = write_checksums(files, tmp_path), key_pair(tmp_path)
    check = ["sha256sum", "-c", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    sign(sums, key)
    assert is_signed(tmp_path, key, sums.read_bytes())
    assert not is_signed(tmp_path, key, sums.read_bytes() + b" ")
    files[0].write_bytes(b"other")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1
