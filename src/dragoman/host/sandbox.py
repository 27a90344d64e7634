"""Run a command where it can harm nothing but the roots, or do not run it.

Two ways: bubblewrap, where it works; else our own launcher with Landlock and seccomp (`landlock_launcher`). `probe`
tries them for real and says why one does not work. `confine` makes the command line; if neither way is there, or a
promise cannot be kept for these roots, it raises `SandboxRefused`. Nothing here ever runs a command bare.

| | bubblewrap | Landlock |
|---|---|---|
| writing outside the roots | no | no; but modes, times and attributes of own files can be changed |
| protected things that exist (`workspace_watch`) | read-only, or put back | put back, or read-only |
| new ones | some cannot be made; the others go to a quarantine | the same; nothing new beside those in a root |
| the `.git` of a root (`git_layer`) | a copy, of which the usual files go back | read-only |
| setuid and setgid bits, capabilities of files | cannot be set | cannot be set |
| network off | own loopback only | no network sockets |
| Unix sockets | connected stream pairs only, nothing that takes an address | the same |
| FIFOs outside the roots | not written into, if Landlock works inside (`inner_launcher`); can be read from | the same |
| other processes | invisible | visible; no signals (from Landlock 6 on), no limits; priorities can be changed |
| shared memory and message queues | its own | none |
| memory and processes | `resources`; its temporary folders are bounded (bubblewrap 0.7) | `resources` |
| temporary folder | its own /tmp | its own folder, in TMPDIR |
| files of the host that it may read | can be locked (`flock`) for as long as it runs | the same |
"""

import functools
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.errors import WorldError
from dragoman.host import bubblewrap, landlock, seccomp
from dragoman.host.bubblewrap import FRESH, Mounts
from dragoman.host.command_limits import CommandLimits
from dragoman.host.confined_command import NOT_TO_BE_MADE, ConfinedCommand, Level, WatchedRoots, watch_roots
from dragoman.host.inner_launcher import launcher_argv
from dragoman.host.landlock_launcher import ConfinementPolicy
from dragoman.host.paths import is_inside, open_root
from dragoman.host.placeholders import Placeholder, is_placeholder
from dragoman.host.resources import ResourceLimits, default_limits
from dragoman.host.secrets import SYSTEM_SECRETS
from dragoman.host.workspace_watch import CannotWatch

# Where programs of the system are. Not the PATH: a workspace may have put itself there.
_PROGRAM_FOLDERS: Final = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_PROBE_SECONDS: Final = 10.0
_UNFINISHED: Final = "it does not come to an end."
# A command that fails unless it sees itself confined: a filter on system calls, and one thing more.
_PROBE: Final = 'grep -q "^Seccomp:.*2" /proc/self/status && {test} && echo confined'
_OWN_NAMESPACE: Final = "test $$ -lt 10"  # few processes in a namespace of its own
_HIDDEN: Final = "/etc/passwd"
_BLIND: Final = f"! head -c 1 {_HIDDEN} >/dev/null 2>&1"
_INSTALL: Final = (
    "Install bubblewrap: on Debian and Ubuntu `apt install bubblewrap`, on Fedora `dnf install bubblewrap`."
)


# Without `site`, which takes longer than all the rest; so the launcher is told where it lives.
_LAUNCHER: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from dragoman.host.landlock_launcher import main; sys.exit(main(sys.argv[2:]))"
)
_PACKAGES: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


_log = logging.getLogger(__name__)


class SandboxRefused(WorldError):
    """A command cannot be confined and was not run. The text says why, and what to do."""


class Confinement(NamedTuple):
    """What this machine can do. `lacks` has a sentence for everything that it cannot."""

    bubblewrap: str | None
    landlock: int
    lacks: tuple[str, ...]
    layered: bool = False  # Landlock works inside of bubblewrap

    @property
    def level(self) -> Level | None:
        """The best way there is."""
        return "bubblewrap" if self.bubblewrap else "landlock" if self.landlock else None


def confine(
    argv: Sequence[str],
    *,
    cwd: str,
    writable: Sequence[str] = (),
    readable: Sequence[str] = (),
    hidden: Sequence[str] = (),
    shown_files: Sequence[str] = (),
    protected: Sequence[str] | None = None,
    protected_paths: Sequence[str] = (),
    quarantine: str = "",
    network: bool = False,
    views: Mapping[str, str] | None = None,
    enter: Sequence[str] = (),
    limits: ResourceLimits | None = None,
    confinement: Confinement | None = None,
) -> ConfinedCommand:
    """Return the command line for a command that may write in `writable` only; `SandboxRefused` if it cannot be made.

    `hidden` can be neither read nor written, nor what always is (`secrets.SYSTEM_SECRETS`); `shown_files` are files in
    what is hidden that can be read all the same, as roots in it can (bubblewrap only). What is protected by its
    name or as a git folder, and `protected_paths`, stays as it is (`workspace_watch`); what the command leaves of that
    kind goes to a folder below `quarantine`. `protected`, if given, is all there is instead: names relative to each
    writable root. `views` and `enter` are the `sources` and `enter` of a `view.View`: what to show in
    the place of a root, and how it comes there (bubblewrap only). In a view nothing is protected: changes are reviewed.
    `limits` are `resources.default_limits` unless said otherwise.
    The caller starts it in `cwd`, from a thread that lives as long as the command, with what
    `secrets.confined_environment` leaves of the environment and `ConfinedCommand.environment` beside it.
    """
    confinement = confinement or probe()
    roots = check_roots(confinement, cwd, writable=writable, readable=readable, hidden=hidden)
    writable, readable, cwd, secret = roots
    views = {os.path.realpath(root): view for root, view in (views or {}).items()}
    program, wanted = confinement.bubblewrap, limits or default_limits()
    if program is None and views:
        raise SandboxRefused(f"A view of the workspace needs bubblewrap. {_INSTALL}")
    watched: WatchedRoots | None = None
    if writable and not views and protected is None:
        try:
            watched = watch_roots(writable, protected_paths, quarantine, binds=program is not None)
        except CannotWatch as error:
            raise SandboxRefused(str(error)) from error
    names = () if views or protected is None else protected
    try:
        if program is None:
            return _by_landlock(argv, writable, readable, secret, names, network, wanted, watched)
        looked_at = {root: root for root in views} if enter else {}
        mounts = Mounts(
            _sources(writable, views), _sources(readable, views), secret, looked_at, shown_files=shown_files
        )
        layered = confinement.layered
        return _by_bubblewrap(
            program, argv, mounts, names, network, cwd, enter, limits=wanted, layered=layered, watched=watched
        )
    except BaseException:
        if watched is not None:
            shutil.rmtree(watched.scratch, ignore_errors=True)
        raise


class _CheckedRoots(NamedTuple):
    """What a command is shown, by real paths: roots of which none is inside of another, and what is hidden."""

    writable: list[str]
    readable: list[str]
    cwd: str
    hidden: list[str]


def check_roots(
    confinement: Confinement,
    cwd: str,
    *,
    writable: Sequence[str] = (),
    readable: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> _CheckedRoots:
    """Raise `SandboxRefused` for roots that no command can be confined in. The arguments are those of `confine`."""
    if confinement.level is None:
        raise SandboxRefused(f"Commands cannot be confined on this machine. {' '.join(confinement.lacks)}")
    writable, readable = _outermost(writable), _outermost(readable)
    cwd = os.path.realpath(cwd)
    if not any(is_inside(cwd, root) for root in (*writable, *readable)):
        raise SandboxRefused(f"{cwd} is outside of the workspace.")
    secret = list(dict.fromkeys(os.path.realpath(path) for path in (*hidden, *SYSTEM_SECRETS)))
    for root in (*writable, *readable):
        if root in secret:
            raise SandboxRefused(f"{root} cannot be a workspace: it holds secrets.")
    return _CheckedRoots(writable, readable, cwd, secret)


def probe(*, again: bool = False) -> Confinement:
    """Return what this machine can do, tried out once.

    Up to a few tenths of a second, bounded by `_PROBE_SECONDS` each.
    """
    if again:
        _probe.cache_clear()
    return _probe()


@functools.cache
def _probe() -> Confinement:
    found = try_out(find_bubblewrap())
    _log.info("commands are confined by %s here; %d things lacking", found.level or "nothing", len(found.lacks))
    return found


def find_bubblewrap() -> str | None:
    """Return the system's bubblewrap."""
    return shutil.which("bwrap", path=os.pathsep.join(_PROGRAM_FOLDERS))


@functools.cache
def has_tmpfs_size(program: str) -> bool:
    """Return whether this bubblewrap can bound a temporary folder (0.7 and newer)."""
    try:
        done = subprocess.run(
            [program, "--help"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--size" in done.stdout + done.stderr


def try_out(program: str | None) -> Confinement:
    """Return what works, with this bubblewrap: it is run, and the command in it has to see that it is confined."""
    lacks: list[str] = []
    if not seccomp.is_known_machine() or not sys.platform.startswith("linux"):
        return Confinement(None, 0, ("Only Linux on x86_64 and aarch64 is supported.",))
    if program is None:
        lacks.append(f"There is no bubblewrap. {_INSTALL}")
    else:
        mounts = Mounts({}, {}, ())
        box = _by_bubblewrap(program, _probe_command(_OWN_NAMESPACE), mounts, (), False, "/", limits=default_limits())
        if failure := _failure(box):
            lacks.append(f"Bubblewrap does not work here: {failure}")
            program = None
    abi = landlock.version()
    if abi < landlock.LEAST_VERSION:
        lacks.append("This kernel has no Landlock, or one older than version 3 (Linux 6.2).")
        abi = 0
    else:
        box = _by_landlock(_probe_command(_BLIND), [], [], [_HIDDEN], (), False, default_limits())
        if failure := _failure(box):
            lacks.append(f"Landlock does not work here: {failure}")
            abi = 0
        elif abi < landlock.SCOPE_VERSION:
            lacks.append("This kernel's Landlock does not keep a command from sending signals to your other processes.")
    return Confinement(program, abi, tuple(lacks), program is not None and abi > 0 and _is_layered(program))


def _is_layered(program: str) -> bool:
    """Return whether Landlock works inside of bubblewrap.

    A trial that a busy machine did not finish says nothing, and counts as a yes: then a command is refused where it
    does not work, instead of being run behind one wall where there could be two.
    """
    command, mounts = _probe_command(_OWN_NAMESPACE), Mounts({}, {}, ())
    box = _by_bubblewrap(program, command, mounts, (), False, "/", limits=default_limits(), layered=True)
    return _failure(box) in (None, _UNFINISHED)


def _probe_command(test: str) -> list[str]:
    return ["/bin/sh", "-c", _PROBE.format(test=test)]


def _failure(box: ConfinedCommand) -> str | None:
    """Return why a command that should have seen itself confined has not, or None."""
    try:
        with box:
            done = subprocess.run(
                box.argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
                cwd="/",
                env={"PATH": os.pathsep.join(_PROGRAM_FOLDERS), **box.environment},
            )
    except subprocess.TimeoutExpired:
        return _UNFINISHED
    except OSError as error:
        return f"it cannot be started ({(error.strerror or 'unknown').lower()})."
    if done.returncode == 0 and done.stdout == b"confined\n":
        return None
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return words[-1][:200] if words else "what it runs is not confined."


def _outermost(roots: Sequence[str]) -> list[str]:
    """Real folders, none inside of another."""
    real = sorted({os.path.realpath(root) for root in roots}, key=len)
    for root in roots:
        if os.path.isabs(root) and os.path.realpath(root) != os.path.normpath(root):
            raise SandboxRefused(f"{root} leads elsewhere by now; a link was put in its way.")
    for root in real:
        if root == "/" or not os.path.isdir(root):
            raise SandboxRefused(f"{root} cannot be a workspace: it is {'everything' if root == '/' else 'no folder'}.")
    return [root for at, root in enumerate(real) if not any(is_inside(root, other) for other in real[:at])]


def _sources(roots: Sequence[str], views: Mapping[str, str]) -> dict[str, str]:
    return {root: views.get(root, root) for root in roots}


def _by_bubblewrap(
    program: str,
    argv: Sequence[str],
    mounts: Mounts,
    protected: Sequence[str],
    network: bool,
    cwd: str,
    enter: Sequence[str] = (),
    *,
    limits: ResourceLimits,
    layered: bool = False,
    watched: WatchedRoots | None = None,
) -> ConfinedCommand:
    placeholders: list[Placeholder] = []
    pinned: dict[str, str] = {}
    fixed: dict[str, str] = {path: path for path in watched.watch.fixed} if watched else {}
    try:
        for root, source in mounts.writable.items():
            for name in protected:
                _protect(root, source, name, pinned, fixed, placeholders)
        if watched:
            pinned |= {path: path for path in watched.watch.pinned}
        for path in watched.missing if watched else ():
            placeholders.append(Placeholder.hold(path))
            fixed[path] = path
    except OSError as error:
        for placeholder in placeholders:
            placeholder.release()
        raise SandboxRefused(f"{error.filename or 'A name'} cannot be protected from commands: {error}.") from error
    full = mounts._replace(
        pinned=[(source, path) for path, source in pinned.items()],
        fixed=[(source, path) for path, source in fixed.items()],
        layers=watched.watch.layers if watched else (),
    )
    command_limits = CommandLimits(limits, namespace=True)
    room = limits.memory // _TEMPORARY_FOLDERS if has_tmpfs_size(program) else 0
    words = bubblewrap.arguments(full, network=network, cwd=cwd, room=room)
    line = ["/bin/bash", "--noprofile", "--norc", "-c", _WITH_FILTER, "bash", *command_limits.entrances, "--"]
    line += [_filter_text(), watched.info if watched else ""]
    # The process that mounts a layer is root in its user namespace; the command gets our own ids back.
    user = ["--uid", str(os.getuid()), "--gid", str(os.getgid())] if enter else []
    # Inside, where the kernel counts the processes of this command alone.
    own = [*mounts.writable, *(bind.path for bind in full.layers if bind.writable)]
    # Bubblewrap finds what it shows by names, and a link can be put above a root until it does.
    shown = {path: _number_of(path) for path in _shown_by_name(full)} if not enter else {}
    limited = launcher_argv(
        writable=own,
        hidden=mounts.hidden,
        roots=[*mounts.readable, *mounts.writable],
        limits=command_limits.process,
        layered=layered,
        shown=shown,
    )
    info_options = ["--info-fd", "8"] if watched else []
    line += [*enter, program, "--seccomp", "9", *info_options, *user, *words, "--", *limited, *argv]
    environment = {**_scratch_variables("/tmp"), **(watched.variables if watched else {})}
    return ConfinedCommand(
        "bubblewrap", line, environment, placeholders, command_limits=command_limits, watched=watched
    )


def _shown_by_name(mounts: Mounts) -> list[str]:
    """Return the folders that a command can write to, where they are shown at their own place."""
    roots = {**mounts.readable, **mounts.writable}
    pins = [path for source, path in mounts.pinned if source == path]
    return [*(root for root, source in roots.items() if source == root), *pins]


def _number_of(folder: str) -> str:
    """Return what tells a folder from all others, looked up through no link."""
    try:
        fd = open_root(folder)
    except OSError as error:
        raise SandboxRefused(f"{folder} leads elsewhere by now; a link was put in its way.") from error
    try:
        found = os.fstat(fd)
        return f"{found.st_dev}:{found.st_ino}"
    finally:
        os.close(fd)


def _protect(
    root: str, source: str, name: str, pinned: dict[str, str], fixed: dict[str, str], placeholders: list[Placeholder]
) -> None:
    """Make a name in a root unchangeable: the thing itself, and the folders on the way, which could be moved away."""
    here, there = source, root
    parts = name.strip("/").split("/")
    for at, part in enumerate(parts):
        here, there = os.path.join(here, part), os.path.join(there, part)
        if os.path.islink(here):
            raise OSError(0, "it is a link", here)
        if not os.path.lexists(here) or is_placeholder(here):
            placeholders.append(Placeholder.hold(here))
            break
        if at == len(parts) - 1 or not os.path.isdir(here):
            break
        pinned[there] = here
    fixed[there] = here


# `Child` passes no descriptors on, and nothing that we hold open can be opened in /proc (see `process_privacy`): a
# shell writes the filter into a pipe, from its own command line, and becomes bubblewrap, which reads it there.
# Before, it enters the control group of the command. What bubblewrap tells about its processes goes to the file $3, if
# that is named: a descriptor that bubblewrap does not know would be the command's as well.
_WITH_FILTER: Final = (
    'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; '
    '[ -z "$3" ] || exec 8> "$3"; exec 9< <(builtin printf "$2"); shift 3; exec "$@"'
)
# The temporary folders and shared memory of a command are memory: each may have its part of what the command may have.
_TEMPORARY_FOLDERS: Final = 4


@functools.cache
def _filter_text() -> str:
    """Return the filter on system calls, as the format of a `printf` that writes it."""
    return "".join(f"\\{byte:03o}" for byte in seccomp.program(seccomp.NETWORK, namespaces=True))


def _by_landlock(
    argv: Sequence[str],
    writable: Sequence[str],
    readable: Sequence[str],
    hidden: Sequence[str],
    protected: Sequence[str],
    network: bool,
    limits: ResourceLimits,
    watched: WatchedRoots | None = None,
) -> ConfinedCommand:
    scratch = tempfile.mkdtemp(prefix="dragoman-")
    names = [os.path.join(root, name) for root in writable for name in (NOT_TO_BE_MADE if watched else protected)]
    # A link with a protected name is watched, and what it leads to; nothing can be made in its place either way.
    fixed = [*watched.watch.fixed, *(path for path in names if not os.path.islink(path))] if watched else names
    for path in fixed:
        if os.path.realpath(path) != path:
            shutil.rmtree(scratch, ignore_errors=True)
            raise SandboxRefused(f"{path} cannot be protected from commands: it is a link.")
    command_limits = CommandLimits(limits, namespace=False)
    fresh = [path for path in FRESH if os.path.isdir(path) and not os.path.islink(path)]
    policy = ConfinementPolicy(
        writable=[*writable, os.path.realpath(scratch)],
        readable=list(readable),
        hidden=[*hidden, *fresh],
        protected=fixed,
        network=network,
        parent=os.getpid(),
        groups=command_limits.entrances,
        memory=command_limits.process.memory,
        processes=command_limits.process.processes,
    )
    line = [sys.executable, "-I", "-S", "-c", _LAUNCHER, _PACKAGES, policy.dumped(), *argv]
    return ConfinedCommand(
        "landlock", line, _scratch_variables(scratch), scratch=scratch, command_limits=command_limits, watched=watched
    )


def _scratch_variables(folder: str) -> dict[str, str]:
    """Return where tools put what they would put in the home folder, which is not theirs to write."""
    cache = os.path.join(folder, "cache")
    return {"TMPDIR": folder, "XDG_CACHE_HOME": cache, "npm_config_cache": os.path.join(cache, "npm")}
