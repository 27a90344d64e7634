"""The launcher: a child of it confines itself by Landlock and seccomp and becomes the command. Started by `sandbox`.

Promise: the command starts confined as the policy says, or not at all. It has no capability, gains none by a setuid
program, and dies with who started us; what it leaves behind is ended with it. The policy comes as one JSON argument, so
that nothing is read from a file that can change; standard library only, because every command pays for the imports.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.host import landlock, seccomp
from dragoman.host.resources import ProcessLimits

# What `env`, `nice` and others say when they could not start a command.
CANNOT_CONFINE: Final = 125
CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127

_SET_PARENT_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36
_DROP_BOUNDING: Final = 24
_SET_NO_NEW_PRIVILEGES: Final = 38
_CLEAR_AMBIENT: Final = (47, 4)
_CAPABILITY_VERSION: Final = 0x20080522
_CAPABILITIES: Final = 64

# How long the last processes of a command may take to end.
_END_SECONDS: Final = 10.0

# Devices that a command may need and that cannot be used to harm other processes.
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class ConfinementPolicy(NamedTuple):
    """What a command may do. All paths are real ones."""

    writable: list[str]
    readable: list[str]
    hidden: list[str]
    protected: list[str]
    network: bool
    parent: int
    groups: list[str]  # control groups to enter
    memory: int  # limits of the process, 0: none
    processes: int

    def dumped(self) -> str:
        """Return the policy as one argument of a command line."""
        return json.dumps(self._asdict())


def rules(policy: ConfinementPolicy, abi: int) -> list[tuple[str, int]]:
    """Reading all but what is hidden, writing in the roots but not what is protected."""
    hidden = [*policy.hidden, "/dev"]
    allowed = [(path, landlock.READ) for path in landlock.around("/", hidden)]
    # Names may be listed everywhere. A folder beside something hidden could not be listed otherwise.
    allowed.append(("/", landlock.READ_DIR))
    for root in (*policy.readable, *policy.writable):
        allowed += [(path, landlock.READ) for path in landlock.around(root, policy.hidden)]
    for root in policy.writable:
        within = [path for path in policy.hidden if path != root and not root.startswith(f"{path}/")]
        allowed += [(path, landlock.writing(abi)) for path in landlock.around(root, [*within, *policy.protected])]
    allowed += [(path, landlock.READ | landlock.WRITE_FILE) for path in _DEVICES]
    return allowed


def confine(policy: ConfinementPolicy) -> None:
    """Confines this process; `OSError` if any part of it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = landlock.version()
    if abi < landlock.LEAST_VERSION:
        raise OSError("this kernel has no Landlock, or one that is too old")
    for group in policy.groups:
        _enter(group)
    _prctl(libc, _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != policy.parent:
        raise OSError("the process that started the command has ended")
    _prctl(libc, _SET_NO_NEW_PRIVILEGES, 1)
    ProcessLimits(policy.memory, policy.processes).set()
    _drop_capabilities(libc)
    landlock.restrict(rules(policy, abi), abi=abi, network=policy.network)
    seccomp.apply(seccomp.program(seccomp.NETWORK if policy.network else (), namespaces=False))


def _enter(group: str) -> None:
    fd = os.open(group, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(os.getpid()).encode())
    finally:
        os.close(fd)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Root without them is one more user, who happens to own much."""
    for number in range(_CAPABILITIES):
        libc.prctl(_DROP_BOUNDING, number, 0, 0, 0)  # fails for who is not root, and has none to lose
    libc.prctl(*_CLEAR_AMBIENT, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main(arguments: Sequence[str]) -> int:
    """`POLICY PROGRAM [ARGUMENT…]`. Runs the command in a child, and ends with it and like it."""
    text, *argv = arguments
    try:
        policy = ConfinementPolicy(**json.loads(text))
        child = _fork(policy)
        if child:
            return _outlive(child)
        confine(policy._replace(parent=os.getppid()))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"The command was not run, because it could not be confined: {error}.\n")
        return CANNOT_CONFINE
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError:
        sys.stderr.write(f"Cannot run {argv[0]}: there is no such program.\n")
        return NOT_FOUND
    except OSError as error:
        sys.stderr.write(f"Cannot run {argv[0]}: {(error.strerror or 'it is no program').lower()}.\n")
        return CANNOT_RUN


def _fork(policy: ConfinementPolicy) -> int:
    """Fork; the parent is who all orphans of the command come to, so that none can hide, and dies with who started it.

    0 in the child. Every process that the command leaves behind has this parent then, whatever it did to its session,
    its group and its environment.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _prctl(libc, _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != policy.parent:
        raise OSError("the process that started the command has ended")
    _prctl(libc, _SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # meant for the command, which has it as well
    return child


def _outlive(child: int) -> int:
    """Wait for the command, end what it left behind, and end as it did."""
    status = 0
    while True:
        ended, its_status = os.wait()
        if ended == child:
            status = its_status
            break
    until = time.monotonic() + _END_SECONDS
    while time.monotonic() < until and (left := _children()):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.wait()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def _children() -> list[int]:
    """Return the processes whose parent this one is."""
    own = str(os.getpid()).encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if file.read(4096).rpartition(b")")[2].split()[1] == own:
                    found.append(int(name))
    return found
