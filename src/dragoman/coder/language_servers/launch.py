"""Start a language server: confined where this machine can, else free where the mode confines no command.

Confined, it sees the workspace read-only and without files that hold credentials, of the home folder no more than
toolchains, itself, and no network; what it writes goes to a temporary folder of its own, which is bounded and ends with
it. Started free, nothing holds it but a look at its memory. Which folders it may be started in at all, `servers` says.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.coder.execution import hidden_from_commands
from dragoman.coder.language_servers.known import FoundServer
from dragoman.host.bubblewrap import FRESH
from dragoman.host.credential_files import credential_files
from dragoman.host.home_view import home_view
from dragoman.host.paths import PathRefused, is_inside
from dragoman.host.programs import path_outside
from dragoman.host.resources import ResourceLimits, default_limits
from dragoman.host.safe_git import safe_git_environment
from dragoman.host.sandbox import SandboxRefused, confine, probe
from dragoman.host.secrets import confined_environment

# Those of large projects take two or three gibibytes; a server that needs more is ended.
MEMORY_BYTES: Final = 4 * limits.GIB


class ServerPlace(NamedTuple):
    """Where the servers of a session run: real paths of trusted folders, the first of which is the working folder.

    `home` is our data folder, `hidden` what no command may see beside it. `limits`: what a confined command may have;
    None: what is right for this machine. `is_free`: a server may be started without confinement.
    """

    roots: Sequence[str]
    environment: Mapping[str, str]
    home: str = ""
    hidden: Sequence[str] = ()
    limits: ResourceLimits | None = None
    is_free: bool = False


class ServerStart(NamedTuple):
    """How a server is started. `close` blocks, after its end; `limits` are what a look from outside holds it to."""

    argv: list[str]
    environment: Mapping[str, str]
    close: Callable[[], object]
    limits: ResourceLimits
    is_confined: bool


def prepare(server: FoundServer, place: ServerPlace) -> ServerStart:
    """Return how to start a server. Blocks. Raises `SandboxRefused` where it may only run confined, and cannot be."""
    wanted = place.limits or default_limits()
    memory = min(wanted.memory, MEMORY_BYTES) if wanted.memory else MEMORY_BYTES
    wanted = wanted._replace(memory=memory)
    # No program of the workspace in the place of one that the server starts.
    environment = dict(place.environment)
    environment["PATH"] = path_outside(environment.get("PATH", os.defpath), place.roots)
    environment = safe_git_environment(environment)
    try:
        return _confined(server, place, environment, wanted)
    except (SandboxRefused, PathRefused):
        if not place.is_free:
            raise
        return ServerStart(server.argv, environment, lambda: None, wanted, is_confined=False)


def _confined(
    server: FoundServer, place: ServerPlace, environment: Mapping[str, str], wanted: ResourceLimits
) -> ServerStart:
    user_home = os.path.realpath(environment.get("HOME") or os.path.expanduser("~"))
    hidden = [
        *hidden_from_commands(place.home, environment),
        *place.hidden,
        *credential_files(place.roots, user_home),
    ]
    shown = _of_program(server, user_home)
    folders, files = [*shown.folders], [*shown.files]
    if probe().level == "bubblewrap":
        real = [os.path.realpath(path) for path in hidden]
        view = home_view(user_home, place.roots, real)
        folders += view.folders
        files += view.files
        hidden += [view.hidden] if view.hidden else []
    box = confine(
        shown.argv,
        cwd=place.roots[0],
        readable=[*place.roots, *folders],
        shown_files=files,
        hidden=hidden,
        limits=wanted,
    )
    temporary = box.environment.get("TMPDIR", "/tmp")
    # cargo would write into the workspace.
    own = {"CARGO_TARGET_DIR": os.path.join(temporary, "target")}
    return ServerStart(
        box.argv, {**confined_environment(environment), **own, **box.environment}, box.close, wanted, is_confined=True
    )


class _Shown(NamedTuple):
    """The command line of a server as it can be started, and what of it has to be shown."""

    argv: list[str]
    folders: list[str]
    files: list[str]


def _of_program(server: FoundServer, user_home: str) -> _Shown:
    """Return what is to be shown of a server that lies where nothing else is: in the home folder, in /tmp."""
    argv = server.argv
    places = [_installed_in(path, user_home) for path in (server.program, os.path.realpath(server.program))]
    if _is_hidden(server.program, user_home) and not places[0]:
        argv[0] = os.path.realpath(server.program)  # a link that is not shown, to what is
    # Of a link in their place there is nothing to show: bubblewrap cannot put a file over one.
    files = [word for word in argv if os.path.isabs(word) and os.path.isfile(word) and os.path.realpath(word) == word]
    files = [path for path in files if _is_hidden(path, user_home)]
    return _Shown(argv, list(dict.fromkeys(filter(None, places))), list(dict.fromkeys(files)))


def _is_hidden(path: str, user_home: str) -> bool:
    return any(is_inside(path, folder) for folder in (user_home, *FRESH))


def _installed_in(path: str, user_home: str) -> str:
    """Return the folder that a program is installed in with what belongs to it; empty: all may see it, or none is."""
    if not _is_hidden(path, user_home):
        return ""
    parts = path.split("/")
    if "node_modules" in parts:
        return os.path.realpath("/".join(parts[: parts.index("node_modules") + 1]))
    above = os.path.dirname(os.path.dirname(path))
    is_its_own = os.path.basename(os.path.dirname(path)) == "bin" and above not in _shared_by_many(user_home)
    return os.path.realpath(above) if is_its_own and not is_inside(user_home, above) else ""


def _shared_by_many(user_home: str) -> tuple[str, ...]:
    """Return folders whose `bin` has programs of all kinds: what else is in them belongs to none."""
    return (os.path.join(user_home, ".local"), *FRESH)
