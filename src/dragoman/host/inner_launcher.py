"""What runs first inside of bubblewrap: sets the limits of the command, adds Landlock, and becomes the command.

Mounts that are read-only do not keep a command from writing into a FIFO that it finds there: a daemon may listen at the
other end. Landlock does: it lets nothing be opened for writing but what lies in the roots and in the folders that are
the command's own. It is a second wall for all else that the mounts promise, too.

It needs our interpreter inside, by its real path, and nothing of this package: what it runs is handed over as text, as
the workspace, or a temporary folder, may be where the package is. Where the interpreter is hidden, or Landlock does not
work, a shell sets the limits and there is no second wall.
"""

import functools
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dragoman.host import landlock
from dragoman.host.bubblewrap import FRESH
from dragoman.host.paths import is_inside
from dragoman.host.resources import ProcessLimits

_OWN: Final = ("/dev/shm",)
# For the shell: folders and their numbers, up to `--`.
_CHECK_SHOWN: Final = """while [ "$1" != -- ]; do
  if [ "$(stat -c %d:%i "$1")" != "$2" ]; then
    echo "The command was not run, because it could not be confined: $1 leads elsewhere by now." >&2; exit 125
  fi
  shift 2
done; shift; """
# Behind the text of `landlock`, whose names it uses. Fails with what `env` says when it cannot start a command.
_MAIN: Final = """
import json, resource, sys
def confine_further(writable, devices, memory, processes, shown):
    for path, number in shown.items():
        found = os.stat(path)
        if f"{found.st_dev}:{found.st_ino}" != number:
            raise OSError(f"{path} leads elsewhere by now; a link was put in its way")
    abi = version()
    rules = [("/", READ), (devices, everything(abi) & ~_MAKE_DEVICES)]
    rules += [(path, writing(abi)) for path in writable]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for which, limit in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_NPROC, processes)):
        if limit:
            resource.setrlimit(which, (limit, limit))
    restrict(rules, abi=abi, network=True)
try:
    confine_further(**json.loads(sys.argv[1]))
except (OSError, ValueError) as error:
    sys.stderr.write(f"The command was not run, because it could not be confined: {error}.\\n")
    sys.exit(125)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.stderr.write(f"Cannot run {sys.argv[2]}: {(error.strerror or 'it is no program').lower()}.\\n")
    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
"""


def launcher_argv(
    *,
    writable: Iterable[str],
    hidden: Sequence[str],
    roots: Sequence[str] = (),
    limits: ProcessLimits,
    layered: bool,
    shown: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the words to put before the command. `layered`: Landlock works in bubblewrap on this machine.

    `roots` are seen where they lie in what is `hidden`. `shown` are folders with their device and number, as `1:2`:
    where another one stands there the command is not run.
    """
    shown = shown or {}
    if not layered or not _is_visible(hidden, roots):
        words = [word for path, number in shown.items() for word in (path, number)]
        return ["/bin/sh", "-c", f'{_CHECK_SHOWN}{limits.shell()} && exec "$@"', "sh", *words, "--"]
    policy = {
        "writable": [*writable, *(path for path in (*FRESH, *_OWN) if not os.path.islink(path))],
        "devices": "/dev",
        "memory": limits.memory,
        "processes": limits.processes,
        "shown": shown,
    }
    return [_python(), "-I", "-S", "-c", _text(), json.dumps(policy)]


def _is_visible(hidden: Sequence[str], roots: Sequence[str]) -> bool:
    """Return whether our interpreter and its library are there inside."""
    needed = (_python(), os.path.realpath(os.path.dirname(os.__file__)))
    return not any(_is_hidden(path, folder, roots) for path in needed for folder in (*FRESH, *hidden))


def _is_hidden(path: str, folder: str, roots: Sequence[str]) -> bool:
    """Return whether a path is in a folder that is hidden, and in no root that is shown in it again."""
    shown = any(is_inside(path, root) and is_inside(root, folder) and root != folder for root in roots)
    return is_inside(path, folder) and not shown


def _python() -> str:
    return os.path.realpath(sys.executable)


@functools.cache
def _text() -> str:
    with open(landlock.__file__, encoding="utf-8") as file:
        return file.read() + _MAIN
