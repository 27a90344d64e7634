"""A filter on system calls: what a confined command has no business to ask the kernel for.

Sockets outside the allowed families, other namespaces, mounts, other processes' memory, kernel keys, and the large and
young interfaces where kernels break. The program is classic BPF, made here and handed to bubblewrap or to the kernel.
Refused calls fail with EPERM; `clone3`, whose flags a filter cannot see, does not exist, and libraries fall back.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Collection
from typing import Final, NamedTuple

AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16
# The network, and how to ask about it. Not AF_UNIX: a path leads to whoever listens there, a daemon of the host too.
NETWORK: Final = frozenset({AF_INET, AF_INET6, AF_NETLINK})

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
_LOAD: Final = 0x20
_RETURN: Final = 0x06
_IF_EQUAL: Final = 0x15
_IF_GREATER_OR_EQUAL: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_NUMBER: Final = 0  # offsets in the data a filter sees
_ARCHITECTURE: Final = 4
_X32_BIT: Final = 0x40000000
# CLONE_NEWTIME, NS, CGROUP, UTS, IPC, USER, PID, NET
_NEW_NAMESPACES: Final = 0x80 | 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI: Final = 0x5412  # typing into the terminal of whoever started us
_TIOCLINUX: Final = 0x541C


class _Machine(NamedTuple):
    audit: int
    refused: tuple[int, ...]
    clone: int
    unshare: int
    socket: int
    ioctl: int


_CLONE3: Final = 435
# On every machine: io_uring, new mounts, pidfd_getfd.
_YOUNG: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 467)
_MACHINES: Final = {
    # ptrace mount umount2 pivot_root chroot setns bpf add_key request_key keyctl perf_event_open userfaultfd kexec_load
    # kexec_file_load init_module finit_module delete_module open_by_handle_at process_vm_readv process_vm_writev
    # quotactl swapon swapoff reboot acct settimeofday clock_settime clock_adjtime ioperm iopl kcmp fanotify_init
    # lookup_dcookie syslog sethostname setdomainname vhangup
    "x86_64": _Machine(
        0xC000003E,
        (
            *(101, 165, 166, 155, 161, 308, 321, 248, 249, 250, 298, 323, 246, 320, 175, 313, 176, 304, 310, 311),
            *(179, 167, 168, 169, 163, 164, 227, 305, 173, 172, 312, 300, 212, 103, 170, 171, 153),
        ),
        clone=56,
        unshare=272,
        socket=41,
        ioctl=16,
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (
            *(117, 40, 39, 41, 51, 268, 280, 217, 218, 219, 241, 282, 104, 294, 105, 273, 106, 265, 270, 271),
            *(60, 224, 225, 142, 89, 170, 112, 266, 272, 262, 18, 116, 161, 162, 58),
        ),
        clone=220,
        unshare=97,
        socket=198,
        ioctl=29,
    ),
}


def is_known_machine() -> bool:
    """Whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _MACHINES and struct.calcsize("P") == 8


def program(families: Collection[int]) -> bytes:
    """The filter, as instructions for this machine; `families` are the sockets that may be made."""
    machine = _MACHINES[platform.machine()]
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, machine.audit, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_IF_GREATER_OR_EQUAL, _X32_BIT, 0, 1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
        *_when(_CLONE3, _step(_RETURN, _ERRNO | errno.ENOSYS)),
    ]
    for number in (*machine.refused, *_YOUNG):
        code += _when(number, _REFUSE)
    code += _when(machine.clone, *_argument(0), _step(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _REFUSE, _PASS)
    code += _when(machine.unshare, *_argument(0), _step(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _REFUSE, _PASS)
    known = [instruction for one in sorted(families) for instruction in (_step(_IF_EQUAL, one, 0, 1), _PASS)]
    code += _when(machine.socket, *_argument(0), *known, _REFUSE)
    bad = [_step(_IF_EQUAL, _TIOCSTI, 1, 0), _step(_IF_EQUAL, _TIOCLINUX, 0, 1), _REFUSE, _PASS]
    code += _when(machine.ioctl, *_argument(1), *bad)
    return b"".join([*code, _PASS])


def apply(instructions: bytes) -> None:
    """Filters this process and all it becomes, for ever; `OSError` if the kernel will not."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    filter_program = _FilterProgram(len(instructions) // 8, ctypes.addressof(buffer))
    pr_set_seccomp, mode_filter = 22, 2
    if libc.prctl(pr_set_seccomp, mode_filter, ctypes.byref(filter_program), 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(number: int, *then: bytes) -> list[bytes]:
    """Steps for one system call; they end by returning. The number stays loaded for the others."""
    return [_step(_IF_EQUAL, number, 0, len(then)), *then]


def _argument(index: int) -> list[bytes]:
    """Loads the lower half of an argument, which is all the kernel looks at in those we ask about."""
    return [_step(_LOAD, 16 + 8 * index)]


_PASS: Final = _step(_RETURN, _ALLOW)
_REFUSE: Final = _step(_RETURN, _ERRNO | errno.EPERM)
