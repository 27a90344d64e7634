"""What the filter on system calls says to a call, on machines that these tests do not run on as well."""

import errno
import struct

import pytest

from dragoman.host import seccomp

ALLOWED = "allowed"
REFUSED = errno.errorcode[errno.EPERM]
UNKNOWN = errno.errorcode[errno.ENOSYS]
# The same calls by their numbers: x86_64, aarch64 (None: there is none).
CALLS: list[tuple[str, int | None, int | None, tuple[int, ...], str]] = [
    ("read", 0, 63, (0, 0, 10), ALLOWED),
    ("chmod", 90, None, (1, 0o4755), REFUSED),
    ("chmod", 90, None, (1, 0o1755), ALLOWED),
    ("fchmod", 91, 52, (3, 0o2755), REFUSED),
    ("fchmod", 91, 52, (0o6000, 0o755), ALLOWED),
    ("fchmodat", 268, 53, (0, 1, 0o4000), REFUSED),
    ("fchmodat", 268, 53, (0, 0o6000, 0o777), ALLOWED),
    ("fchmodat2", 452, 452, (0, 1, 0o6755, 0), REFUSED),
    ("open", 2, None, (1, 0o100, 0o4755), REFUSED),
    ("open without O_CREAT", 2, None, (1, 0o2, 0o4755), ALLOWED),
    ("openat", 257, 56, (0, 1, 0o101, 0o4755), REFUSED),
    ("openat for O_TMPFILE", 257, 56, (0, 1, 0o20200002, 0o2755), REFUSED),
    ("openat without O_CREAT", 257, 56, (0, 1, 0, 0o4755), ALLOWED),
    ("openat", 257, 56, (0, 1, 0o101, 0o644), ALLOWED),
    ("openat2", 437, 437, (0, 1, 2, 24), UNKNOWN),
    ("creat", 85, None, (1, 0o4755), REFUSED),
    ("mkdir", 83, None, (1, 0o2755), REFUSED),
    ("mkdirat", 258, 34, (0, 1, 0o2755), REFUSED),
    ("mkdirat", 258, 34, (0, 1, 0o755), ALLOWED),
    ("mknod", 133, None, (1, 0o104755, 0), REFUSED),
    ("mknodat", 259, 33, (0, 1, 0o104755, 0), REFUSED),
    ("mknodat of a FIFO", 259, 33, (0, 1, 0o010644, 0), ALLOWED),
    ("socketpair stream", 53, 199, (1, 1, 0), ALLOWED),
    ("socketpair seqpacket with flags", 53, 199, (1, 5 | 0o2004000, 0), ALLOWED),
    ("socketpair datagram", 53, 199, (1, 2, 0), REFUSED),
    ("socketpair datagram with flags", 53, 199, (1, 2 | 0o2000000, 0), REFUSED),
    ("socketpair raw, which is datagram", 53, 199, (1, 3, 0), REFUSED),
    ("socketpair of another family", 53, 199, (30, 1, 0), REFUSED),
    ("socket unix", 41, 198, (1, 1, 0), REFUSED),
    ("socket inet", 41, 198, (2, 1, 0), ALLOWED),
    ("shmget", 29, 194, (0, 1, 0), REFUSED),
    ("semtimedop", 220, 192, (0, 1, 0), REFUSED),
    ("mq_open", 240, 180, (1, 0, 0), REFUSED),
    ("msgrcv", 70, 188, (1, 0, 0), REFUSED),
    ("prlimit64 of its own", 302, 261, (0, 7, 1, 0), ALLOWED),
    ("prlimit64 that reads another's", 302, 261, (77, 7, 0, 1), ALLOWED),
    ("prlimit64 that sets another's", 302, 261, (77, 7, 4096, 0), REFUSED),
    ("prlimit64 with a far pointer", 302, 261, (77, 7, 1 << 32, 0), REFUSED),
]
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(program: bytes, audit: int, number: int, arguments: tuple[int, ...]) -> str:
    """What the kernel's interpreter would make of it."""
    data = struct.pack("<IIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = list(struct.iter_unpack("=HBBI", program))
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return ALLOWED if value == 0x7FFF0000 else errno.errorcode[value & 0xFFFF]
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", AUDIT)
def test_every_call_gets_its_verdict_on_both_machines(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    program = seccomp.program(seccomp.NETWORK, namespaces=False)
    found, expected = [], []
    for name, x86, arm, arguments, outcome in CALLS:
        number = x86 if machine == "x86_64" else arm
        if number is not None:
            found.append((name, verdict(program, AUDIT[machine], number, arguments)))
            expected.append((name, outcome))
    assert found == expected


@pytest.mark.parametrize("machine", AUDIT)
def test_a_command_with_namespaces_may_use_their_shared_memory(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    shmget = 29 if machine == "x86_64" else 194
    assert verdict(seccomp.program((), namespaces=True), AUDIT[machine], shmget, (0, 1, 0)) == ALLOWED
