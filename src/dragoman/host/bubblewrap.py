"""The command line of bubblewrap for one command: a machine to look at, and roots to work in.

Everything is there and read-only; what is hidden is empty; the temporary folders and /run are new; /proc and /dev show
only this command; the roots are what they are outside. No network but an own loopback, no capability, no host process.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.host.paths import is_inside

# Sockets of daemons live here, and other people's files.
FRESH: Final = ("/run", "/var/run", "/tmp", "/var/tmp")
_RESOLVER: Final = "/etc/resolv.conf"
_NAMESPACES: Final = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")


class Bind(NamedTuple):
    """A file or folder that is shown at a path."""

    source: str
    path: str
    writable: bool


class Mounts(NamedTuple):
    """What a command sees. All paths are real ones; `writable` and `readable` say where each root comes from."""

    writable: Mapping[str, str]
    readable: Mapping[str, str]
    hidden: Sequence[str]
    looked_at: Mapping[str, str] = {}  # where to look for what is in a root, if its source is not there yet
    pinned: Sequence[tuple[str, str]] = ()  # folders that may not be moved away, source first
    fixed: Sequence[tuple[str, str]] = ()  # what may not be changed, source first
    layers: Sequence[Bind] = ()  # what is shown in the place of other things, in this order
    shown_files: Sequence[str] = ()  # files in what is hidden that can be read


def arguments(mounts: Mounts, *, network: bool, cwd: str, room: int = 0) -> list[str]:
    """Return all but the program and the command.

    `room` bounds each temporary folder, in bytes; 0: half of the memory.
    """
    temporary = [*(["--size", str(room)] if room else []), "--perms", "1777", "--tmpfs"]
    return [
        *_NAMESPACES,
        *([] if network else ["--unshare-net"]),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--ro-bind", "/", "/", "--dev", "/dev", *temporary, "/dev/shm", "--remount-ro", "/dev", "--proc", "/proc"),
        # Root without any capability may still write to most of /proc/sys: it owns it.
        *("--remount-ro", "/proc"),
        *(word for path in FRESH if _is_real_folder(path) for word in (*temporary, path)),
        *(_resolver() if network else []),
        *_hides(mounts, inside=False),
        *(word for path in mounts.shown_files for word in ("--ro-bind", path, path)),
        *(word for root, source in mounts.readable.items() for word in ("--ro-bind", source, root)),
        *(word for root, source in mounts.writable.items() for word in ("--bind", source, root)),
        *(word for path, source in sorted(_pins(mounts).items()) for word in ("--bind", source, path)),
        *(word for bind in mounts.layers for word in ("--bind" if bind.writable else "--ro-bind", *bind[:2])),
        *(word for source, path in mounts.fixed for word in ("--ro-bind", source, path)),
        # Last: what is bound above may be, or have in it, what is hidden.
        *_hides(mounts, inside=True),
        *(word for path in _around_roots(mounts) for word in ("--remount-ro", path)),
        *("--chdir", cwd),
    ]


def _pins(mounts: Mounts) -> dict[str, str]:
    """Folders that may not be moved away, with their sources: also those on the way to what is hidden in a root. What
    is hidden is so by its path, and would be seen under another one by the next command."""
    pins = {path: source for source, path in mounts.pinned}
    for hidden in mounts.hidden:
        for root, source in mounts.writable.items():
            folder = os.path.dirname(hidden)
            while is_inside(folder, root) and folder != root:
                if _is_real_folder(mounts.looked_at.get(root, source) + folder[len(root) :]):
                    pins[folder] = source + folder[len(root) :]
                folder = os.path.dirname(folder)
    return pins


def _hides(mounts: Mounts, *, inside: bool) -> Iterator[str]:
    """Hides what lies inside of the roots, after they are there; or what lies outside, before."""
    roots = {**mounts.readable, **mounts.writable}
    for path in mounts.hidden:
        root = max((root for root in roots if is_inside(path, root)), key=len, default=None)
        if (root is not None) != inside or _is_hidden_already(path, root, mounts.hidden):
            continue
        source = path if root is None else mounts.looked_at.get(root, roots[root]) + path[len(root) :]
        if _is_real_folder(source):
            # A root in it needs a place to be mounted at, so such a folder is closed when the roots are there.
            yield from ("--tmpfs", path, *(() if path in _around_roots(mounts) else ("--remount-ro", path)))
        elif os.path.lexists(source):
            yield from ("--ro-bind", "/dev/null", path)


def _around_roots(mounts: Mounts) -> list[str]:
    """Return the hidden folders that have a root in them."""
    roots = {**mounts.readable, **mounts.writable}
    return [
        path
        for path in mounts.hidden
        if _is_real_folder(path)
        and any(root != path and is_inside(root, path) for root in (*roots, *mounts.shown_files))
        and not any(is_inside(path, root) for root in roots)
        and not _is_hidden_already(path, None, mounts.hidden)
    ]


def _is_hidden_already(path: str, root: str | None, hidden: Sequence[str]) -> bool:
    """Return whether a path lies in something that is hidden or new as a whole, where nothing can be mounted any more.

    A root between the two shows it again.
    """
    if root is None and any(is_inside(path, folder) for folder in (*FRESH, "/dev")):
        return True
    return any(
        path != folder and is_inside(path, folder) and (root is None or is_inside(folder, root)) for folder in hidden
    )


def _resolver() -> list[str]:
    real = os.path.realpath(_RESOLVER)
    return ["--ro-bind", real, real] if any(is_inside(real, path) for path in FRESH) and os.path.exists(real) else []


def _is_real_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
