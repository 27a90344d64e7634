"""A confined command leaves no file behind that runs as its owner: no setuid or setgid bit, no capability."""

import os
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from dragoman.host.copy_view import CopyView
from dragoman.host.paths import Place, write_bytes
from tests.support.confined_commands import Box

SCRIPTS = [
    "chmod 4755 file",
    "chmod u+s file",
    "chmod g+s file",
    "chmod 2755 sub",
    "chmod 6755 file",
    "install -m 4755 file made",
    "mkdir -m 2755 folder && test -g folder",
    "cp -p special copy && test -u copy",
    "tar xpf special.tar && test -u unpacked",
]
# By the bare numbers of the calls, as a program would that has no library: where a library knows none, -1.
CALLS = """
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
AT, CREATE, TEMPORARY = -100, os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY
how = (ctypes.c_uint64 * 3)(CREATE, 0o4755, 0)
calls = {
    "chmod": (90, b"file", 0o4755) if x86 else None,
    "fchmod": (91 if x86 else 52, os.open("file", os.O_RDONLY), 0o4755),
    "fchmodat": (268 if x86 else 53, AT, b"file", 0o4755),
    "fchmodat2": (452, AT, b"file", 0o4755, 0),
    "open": (2, b"by-open", CREATE, 0o4755) if x86 else None,
    "creat": (85, b"by-creat", 0o4755) if x86 else None,
    "openat": (257 if x86 else 56, AT, b"by-openat", CREATE, 0o4755),
    "openat-high": (257 if x86 else 56, AT, b"by-openat-high", CREATE, 0o6755 | 1 << 40),
    "tmpfile": (257 if x86 else 56, AT, b".", TEMPORARY, 0o4755),
    "openat2": (437, AT, b"by-openat2", ctypes.byref(how), 24),
    "mknod": (133, b"by-mknod", 0o104755, 0) if x86 else None,
    "mknodat": (259 if x86 else 33, AT, b"by-mknodat", 0o104755, 0),
    "mkdir": (83, b"by-mkdir", 0o6755) if x86 else None,
    "mkdirat": (258 if x86 else 34, AT, b"by-mkdirat", 0o6755),
}
for name, call in calls.items():
    if call is not None:
        words = [ctypes.c_long(one) if isinstance(one, int) else one for one in call]
        print(name, libc.syscall(*words) >= 0 and "done" or os.strerror(ctypes.get_errno()))
"""


def special_bits(folder: Path) -> list[str]:
    """What below a folder has one of the bits."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    )


@pytest.fixture
def special(box: Box) -> Box:
    """A box whose workspace has a setuid file of the user's own, and one in an archive."""
    workspace = box.workspace
    (workspace / "unpacked").write_text("x")
    (workspace / "unpacked").chmod(0o4755)
    subprocess.run(["tar", "cf", "special.tar", "unpacked"], cwd=workspace, check=True)
    (workspace / "unpacked").rename(workspace / "special")
    return box


def test_no_setuid_or_setgid_bit_can_be_set(special: Box) -> None:
    assert special.succeeded(SCRIPTS) == []
    assert special_bits(special.workspace) == ["special"]


def test_the_same_bits_can_be_set_without_a_sandbox(workspace: Path) -> None:
    for script in SCRIPTS[:6]:
        subprocess.run(["/bin/bash", "-c", script], check=True, cwd=workspace)
    assert special_bits(workspace) == ["file", "made", "sub"]


def test_no_call_of_the_kernel_sets_such_a_bit(box: Box) -> None:
    done = box.python(CALLS)
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert outcomes.pop("openat2") == "Function not implemented"
    assert len(outcomes) == (13 if os.uname().machine == "x86_64" else 8), done.stderr
    assert set(outcomes.values()) == {"Operation not permitted"}
    assert special_bits(box.workspace) == []


def test_ordinary_modes_can_be_set(box: Box) -> None:
    script = "umask 0 && chmod 755 file && chmod 1777 sub && mkdir -m 700 a && install -m 640 file b && mkfifo -m 600 c"
    assert box.sh(script).returncode == 0
    modes = {name: oct((box.workspace / name).stat().st_mode & 0o7777) for name in ("file", "sub", "a", "b", "c")}
    assert modes == {"file": "0o755", "sub": "0o1777", "a": "0o700", "b": "0o640", "c": "0o600"}


def test_no_capability_can_be_given_to_a_file(box: Box) -> None:
    capability = struct.pack("<IIIII", 0x02000001, 1 << 7, 0, 0, 0).hex()
    grant = "import os, sys; os.setxattr('file', 'security.capability', bytes.fromhex(sys.argv[1]))"
    done = box.python(grant, capability)
    assert "Operation not permitted" in done.stderr
    assert "security.capability" not in os.listxattr(box.workspace / "file")


def test_a_rewritten_file_loses_such_bits(tmp_path: Path) -> None:
    """As with any write: the new content is not what the bit was given to."""
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o6755)
    write_bytes(Place(str(tmp_path), ("file",)), b"new")
    assert oct(stat.S_IMODE(file.stat().st_mode)) == "0o755"


def test_such_a_bit_in_a_view_is_not_applied(tmp_path: Path) -> None:
    root, views = tmp_path / "root", tmp_path / "views"
    root.mkdir()
    views.mkdir()
    (root / "file").write_text("old")
    (root / "mine").write_text("old")
    (root / "mine").chmod(0o4755)
    with CopyView.open([str(root)], folder=str(views)) as view:
        copy = Path(view.paths[str(root)])
        assert special_bits(copy) == []
        (copy / "file").chmod(0o6755)
        (copy / "mine").write_text("new")
        (copy / "made").write_text("new")
        (copy / "made").chmod(0o2755)
        (copy / "folder").mkdir()
        (copy / "folder").chmod(0o2755)
        assert view.apply(view.changes()) == []
    assert special_bits(root) == []
    assert (root / "mine").read_text() == "new"


def test_a_folder_keeps_the_group_bit_of_the_folder_around_it(tmp_path: Path) -> None:
    """Teams share a group that way; it is no program's bit."""
    root, views = tmp_path / "root", tmp_path / "views"
    root.mkdir()
    root.chmod(0o2775)
    views.mkdir()
    with CopyView.open([str(root)], folder=str(views)) as view:
        (Path(view.paths[str(root)]) / "made").mkdir(mode=0o700)
        assert view.apply(view.changes()) == []
    assert oct(stat.S_IMODE((root / "made").stat().st_mode)) == "0o2700"
