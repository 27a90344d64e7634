"""System calls by which a confined command could reach the host, made by their bare numbers: each is refused."""

import errno
import os
import platform
import sys
from pathlib import Path

import pytest

from tests.support.confined_commands import Box

# As (x86_64, aarch64) with arguments that would be valid where nothing is confined. PID is a process of the host.
CALLS = {
    "io_uring_setup": (425, 425, "8, buffer"),
    "io_uring_register": (427, 427, "-1, 0, 0, 0"),
    "unshare of users": (272, 97, "0x10000000"),
    "setns": (308, 268, "folder, 0"),
    "mount": (165, 40, "b'none', b'/tmp', b'tmpfs', 0, 0"),
    "move_mount": (429, 429, "folder, b'', -100, b'/tmp', 4"),
    "open_tree": (428, 428, "-100, b'/', 1"),
    "pivot_root": (155, 41, "b'/tmp', b'/tmp'"),
    "ptrace": (101, 117, "16, PID, 0, 0"),
    "process_vm_readv": (310, 270, "PID, buffer, 1, buffer, 1, 0"),
    "process_vm_writev": (311, 271, "PID, buffer, 1, buffer, 1, 0"),
    "pidfd_getfd": (438, 438, "libc.syscall(434, PID, 0), 0, 0"),
    "pidfd_send_signal": (424, 424, "libc.syscall(434, PID, 0), 0, 0, 0"),
    "bpf": (321, 280, "0, buffer, 64"),
    "perf_event_open": (298, 241, "buffer, 0, -1, -1, 0"),
    "userfaultfd": (323, 282, "0"),
    "add_key": (248, 217, "b'user', b'dragoman', b'x', 1, -3"),
    "keyctl": (250, 219, "0, -3, 1"),
    "request_key": (249, 218, "b'user', b'dragoman', 0, 0"),
    "open_by_handle_at": (304, 265, "folder, buffer, 0"),
    "kexec_load": (246, 104, "0, 0, 0, 0"),
    "init_module": (175, 105, "buffer, 1, b''"),
    "swapon": (167, 224, "b'/tmp/x', 0"),
    "reboot": (169, 142, "0, 0, 0, 0"),
    "settimeofday": (164, 170, "buffer, 0"),
    "sethostname": (170, 161, "b'x', 1"),
    "acct": (163, 89, "b'/tmp/x'"),
    "quotactl": (179, 60, "0, 0, 0, 0"),
    "mknod of a disk": (259, 33, "-100, b'device', 0o060600, 0xFE00"),
    "TIOCSTI": (16, 29, "0, 0x5412, b'x'"),
    "TIOCLINUX": (16, 29, "0, 0x541C, buffer"),
}
PROGRAM = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(4096)
folder = os.open("/", os.O_RDONLY)
PID = int(sys.argv[1])
for call in sys.argv[2:]:
    number, *words = eval(f"({call},)")
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    print(ctypes.get_errno() if done == -1 else 0)
"""


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_no_call_reaches_the_host(level: str, tmp_path: Path) -> None:
    at = 0 if platform.machine() == "x86_64" else 1
    box = Box(level, tmp_path)
    calls = [f"{row[at]}, {row[2]}" for row in CALLS.values()]
    done = box.python(PROGRAM, str(os.getpid()), *calls)
    codes = dict(zip(CALLS, map(int, done.stdout.split()), strict=True))
    # A filter says EPERM or ENOSYS; where there is no such process, terminal or right, the kernel says so.
    refused = {errno.EPERM, errno.ENOSYS, errno.EACCES, errno.ESRCH, errno.ENOTTY, errno.EBADF}
    assert {name: errno.errorcode.get(code, "done") for name, code in codes.items() if code not in refused} == {}


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_nothing_outside_is_renamed_or_linked_into_reach(level: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "work"
    folder.mkdir()
    outside.write_text("as it was")
    box = Box(level, folder)
    attempts = [
        f"mv {outside} .",
        f"ln {outside} hard",
        f"mv /etc/hostname {tmp_path}/x",
        f"ln {sys.executable} python",
    ]
    box.succeeded([*attempts, "echo x > hard", "echo x > outside"])
    assert outside.read_text() == "as it was"
    assert os.stat(outside).st_nlink == 1
    assert sorted(os.listdir(tmp_path)) == ["outside", "work"]
