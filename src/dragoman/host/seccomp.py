"""A filter on system calls: what a confined command has no business to ask the kernel for.

Sockets outside the allowed families, other namespaces, mounts, other processes' memory and limits, kernel keys, and the
large and young interfaces where kernels break. No setuid or setgid bit can be set, by any call that takes a mode. The
program is classic BPF, made here and handed to bubblewrap or to the kernel. Refused calls fail with EPERM; `clone3` and
`openat2`, whose flags and modes are in memory where a filter cannot see them, do not exist, and libraries fall back.

**Unix sockets.** A path leads to any daemon of the host that listens there, and no filter can read a path. So no
command gets a socket that could use one: `socket(AF_UNIX)` is refused, and `socketpair` gives SOCK_STREAM and
SOCK_SEQPACKET only. The two ends of these are connected to each other for good: the kernel refuses to connect them
again (EISCONN, EINVAL), `sendto` and `sendmsg` with an address fail or ignore it, `listen` fails. A SOCK_DGRAM pair
(SOCK_RAW is the same to AF_UNIX) may send to any path; so the types that are allowed are named, not those refused.
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
# The network, and how to ask about it. Not AF_UNIX: a path leads to any listening process, a daemon of the host too.
NETWORK: Final = frozenset({AF_INET, AF_INET6, AF_NETLINK})

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
_LOAD: Final = 0x20
_RETURN: Final = 0x06
_IF_EQUAL: Final = 0x15
_IF_GREATER_OR_EQUAL: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_NUMBER: Final = 0  # offsets in the data a filter sees
_ARCHITECTURE: Final = 4
_X32_BIT: Final = 0x40000000
# CLONE_NEWTIME, NS, CGROUP, UTS, IPC, USER, PID, NET
_NEW_NAMESPACES: Final = 0x80 | 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI: Final = 0x5412  # puts input into the terminal we were started from
_TIOCLINUX: Final = 0x541C


_AF_UNIX: Final = 1
_SOCKET_TYPE: Final = 0xF  # the rest are flags
_PAIRS: Final = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET
_SETUID_SETGID: Final = 0o6000
_MAY_CREATE: Final = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: without one of them the mode is whatever lay there


class _Machine(NamedTuple):
    audit: int
    refused: tuple[int, ...]
    clone: int
    unshare: int
    socket: int
    socketpair: int
    ioctl: int
    prlimit: int
    modes: tuple[tuple[int, int], ...]  # calls that take a mode, and which argument it is
    opens: tuple[tuple[int, int], ...]  # calls that take a mode if flags say so, and which argument the flags are
    host_ipc: tuple[int, ...]  # shared memory, semaphores and message queues, that of the host without a namespace


_CLONE3: Final = 435
_OPENAT2: Final = 437
_FCHMODAT2: Final = (452, 2)
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
        socketpair=53,
        ioctl=16,
        prlimit=302,
        # chmod fchmod fchmodat mkdir mkdirat mknod mknodat creat
        modes=((90, 1), (91, 1), (268, 2), (83, 1), (258, 2), (133, 1), (259, 2), (85, 1), _FCHMODAT2),
        opens=((2, 1), (257, 2)),
        host_ipc=(*range(29, 32), *range(64, 72), 220, *range(240, 246)),
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
        socketpair=199,
        ioctl=29,
        prlimit=261,
        # fchmod fchmodat mkdirat mknodat; the others have no number there
        modes=((52, 1), (53, 2), (34, 2), (33, 2), _FCHMODAT2),
        opens=((56, 2),),
        host_ipc=tuple(range(180, 198)),
    ),
}


def is_known_machine() -> bool:
    """Return whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _MACHINES and struct.calcsize("P") == 8


def program(families: Collection[int], *, namespaces: bool) -> bytes:
    """Return the filter, as instructions for this machine; `families` are the sockets that may be made.

    `namespaces`: the command has its own, of processes and of shared memory. Else the filter keeps it from those of the
    host, as far as a filter can tell them apart.
    """
    machine = _MACHINES[platform.machine()]
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, machine.audit, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_IF_GREATER_OR_EQUAL, _X32_BIT, 0, 1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
        *_when(_CLONE3, _step(_RETURN, _ERRNO | errno.ENOSYS)),
        *_when(_OPENAT2, _step(_RETURN, _ERRNO | errno.ENOSYS)),
    ]
    for number in (*machine.refused, *_YOUNG, *(() if namespaces else machine.host_ipc)):
        code += _when(number, _REFUSE)
    if not namespaces:
        code += _when(machine.prlimit, *_UNLESS_OF_ANOTHER)
    special = (_step(_IF_ANY_BIT, _SETUID_SETGID, 0, 1), _REFUSE, _PASS)
    for number, mode in machine.modes:
        code += _when(number, *_argument(mode), *special)
    for number, flags in machine.opens:
        code += _when(
            number, *_argument(flags), _step(_IF_ANY_BIT, _MAY_CREATE, 1, 0), _PASS, *_argument(flags + 1), *special
        )
    code += _when(machine.clone, *_argument(0), _step(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _REFUSE, _PASS)
    code += _when(machine.unshare, *_argument(0), _step(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _REFUSE, _PASS)
    known = [instruction for one in sorted(families) for instruction in (_step(_IF_EQUAL, one, 0, 1), _PASS)]
    code += _when(machine.socket, *_argument(0), *known, _REFUSE)
    pairs = [instruction for one in _PAIRS for instruction in (_step(_IF_EQUAL, one, 0, 1), _PASS)]
    unix = (*_argument(0), _step(_IF_EQUAL, _AF_UNIX, 1, 0), _REFUSE)
    code += _when(machine.socketpair, *unix, *_argument(1), _step(_AND, _SOCKET_TYPE), *pairs, _REFUSE)
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
# prlimit64(pid, resource, new, old): all limits may be read, and one's own be set. With `new`, both halves of which are
# looked at, the pid has to be 0.
_UNLESS_OF_ANOTHER: Final = (
    *_argument(0),
    _step(_IF_EQUAL, 0, 0, 1),
    _PASS,
    *_argument(2),
    _step(_IF_EQUAL, 0, 0, 2),
    _step(_LOAD, 16 + 8 * 2 + 4),
    _step(_IF_EQUAL, 0, 1, 0),
    _REFUSE,
    _PASS,
)
