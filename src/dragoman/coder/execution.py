"""Where tools work: on the files themselves, or on a copy that the user has yet to approve; commands free or confined.

An `Execution` decides whether the editor's files and terminals are used, and how a command is started. It never decides
whether a call may run: `permissions` has decided that before.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from dragoman.agent.session import Session, session_core
from dragoman.host.confined_command import ConfinedCommand
from dragoman.host.confinement_trial import escape_found
from dragoman.host.credential_files import credential_files
from dragoman.host.git_layer import tracked_files
from dragoman.host.home_view import HomeView, home_view
from dragoman.host.paths import PathRefused, Place, Roots, is_inside
from dragoman.host.programs import path_outside
from dragoman.host.resources import ResourceLimits
from dragoman.host.safe_git import git_settings, safe_git_environment, writes_git
from dragoman.host.sandbox import SandboxRefused, check_roots, confine, probe
from dragoman.host.secrets import confined_environment, credential_paths
from dragoman.host.shell import parse
from dragoman.host.text import visible_line
from dragoman.host.view import View, ViewRefused

_NO_COMMITS: Final = (
    "It runs unconfined, as you do: there is no bubblewrap on this machine, and under Landlock alone a confined "
    "command cannot write in .git."
)


_WANTED: Final = "It runs unconfined, as you do. The model says why: {reason}"


class Start(NamedTuple):
    """How a command is started, and what is to be done when it has ended."""

    argv: list[str]
    environment: Mapping[str, str]
    # Blocks, and returns what the user and the model are told of what was taken back.
    close: Callable[[], Sequence[str]]
    # What it may have, where a look from outside has to see to it; None: it is free, or the kernel sees to it.
    watched: ResourceLimits | None = None
    # Which limit it has met, by what it printed and whether it failed; None: none that is known.
    excess: Callable[[str, bool], str | None] = lambda text, failed: None


async def close_start(start: Start) -> list[str]:
    """Close a start to its end, even if the caller is cancelled meanwhile; return what was taken back, in sentences.

    The names in them, which the command has chosen, are fit to be shown.
    """
    closing = asyncio.ensure_future(asyncio.to_thread(start.close))
    try:
        return [visible_line(note) for note in await asyncio.shield(closing)]
    except asyncio.CancelledError:
        await closing
        raise


class Execution(Protocol):
    """Where tools work."""

    def files_of_editor(self) -> bool:
        """Return whether files are read and written through the client."""

    def terminal_of_editor(self, *, looks: bool = False) -> bool:
        """Return whether commands run in a terminal of the client's; `looks`: those of `start_looking`."""

    async def start(self, argv: Sequence[str], *, asked: bool) -> Start:
        """Return how to start a command; `asked`: the user has just approved it. Raise `WorldError` if it cannot be
        confined where the mode promises that."""

    async def start_looking(self, argv: Sequence[str]) -> Start:
        """Return how to start a command that runs without a question because it only reads. Raise `WorldError` as
        `start` does."""

    def cannot_look(self) -> str:
        """Return why `start_looking` would refuse a command in these roots; empty: it would not. Blocks."""

    async def start_confined(self, argv: Sequence[str]) -> Start:
        """Return how to start a command that runs without a question because it is confined, whatever the mode is by
        now. Raise `WorldError` as `start` does."""

    def keeps_confined(self) -> bool:
        """Return whether commands need no question because they run confined, and that was tried out. Blocks."""

    def start_unconfined(self, argv: Sequence[str]) -> Start:
        """Return how to start a command without confinement, after the user approved what `needs_freedom` said."""

    def needs_freedom(self, command: str, wanted: str = "") -> str:
        """Return why a command cannot do its work in the confinement of the mode; empty: it can, or is not confined.

        `wanted` is what the model says about that; empty: it does not want to leave the confinement. Blocks.
        """


class DirectExecution:
    """The files themselves."""

    def __init__(
        self,
        session: Session | None,
        roots: Roots,
        mode: Callable[[], str],
        environment: Mapping[str, str],
        home: str,
        limits: ResourceLimits | None = None,
        protected_paths: Sequence[str] = (),
        private: Sequence[str] = (),
    ) -> None:
        """`session` has the client that lends a terminal; None: there is none. `limits`: what a confined command may
        have; None: what `resources` thinks is right. `private`: what it may not see, beside our data and where keys are
        kept."""
        self._protected_paths = protected_paths
        self._limits = limits
        self._private = private
        self._session = session
        self._roots = roots
        self._mode = mode
        self._environment = environment
        self._home = home

    def __repr__(self) -> str:
        return f"<DirectExecution mode {self._mode()}, {len(self._roots.real)} roots>"

    def files_of_editor(self) -> bool:
        # In a worktree of its own, a session's files are none that the editor has open.
        return self._session is None or not session_core(self._session).is_elsewhere

    def terminal_of_editor(self, *, looks: bool = False) -> bool:
        # What runs there is confined by nothing.
        is_confined = self._confines_looking() if looks else self._mode() == "workspace-write"
        return self._session is not None and self._session.client.terminal and not is_confined

    async def start(self, argv: Sequence[str], *, asked: bool) -> Start:
        environment = self._environment if asked else self._outside()
        if self._mode() != "workspace-write":
            return Start(list(argv), environment, lambda: ())
        return await self._confined(argv, environment, writable=self._roots.real)

    async def start_confined(self, argv: Sequence[str]) -> Start:
        # The whole PATH, with the programs of the workspace: they are confined as the command is.
        return await self._confined(argv, self._environment, writable=self._roots.real, asked=False)

    def keeps_confined(self) -> bool:
        if self._mode() != "workspace-write" or self._refused(writable=self._roots.real):
            return False
        return not escape_found(self._home or tempfile.gettempdir())

    async def start_looking(self, argv: Sequence[str]) -> Start:
        environment = self._outside()
        if not self._confines_looking():
            return Start(list(argv), safe_git_environment(environment), lambda: ())
        # What only looks needs no writing, whatever git or another program makes of the files it finds.
        start = await self._confined(argv, environment, readable=self._roots.real)
        return start._replace(environment=safe_git_environment(start.environment))

    def cannot_look(self) -> str:
        return self._refused(readable=self._roots.real) if self._confines_looking() else ""

    def _refused(self, *, writable: Sequence[str] = (), readable: Sequence[str] = ()) -> str:
        """Return why no command can be confined in these roots; empty: it can. Blocks."""
        try:
            hidden = [*hidden_from_commands(self._home, self._environment), *self._private]
            check_roots(probe(), self._roots.folder, writable=writable, readable=readable, hidden=hidden)
        except (SandboxRefused, PathRefused) as error:
            return str(error)
        return ""

    def _confines_looking(self) -> bool:
        """Return whether a command that runs without a question because it only reads is kept to reading."""
        return self._mode() != "full-access"

    def start_unconfined(self, argv: Sequence[str]) -> Start:
        return Start(list(argv), self._environment, lambda: ())

    def needs_freedom(self, command: str, wanted: str = "") -> str:
        if self._mode() != "workspace-write":
            return ""
        if probe().level == "landlock" and writes_git(parse(command)):
            return _NO_COMMITS
        return _WANTED.format(reason=wanted) if wanted and probe().level is not None else ""

    def _outside(self) -> dict[str, str]:
        """Return the environment for a command that runs without a question: no program of the workspace is found."""
        environment = dict(self._environment)
        if self._mode() != "full-access":
            environment["PATH"] = path_outside(environment.get("PATH", os.defpath), self._roots.real)
        return environment

    async def _confined(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        writable: Sequence[str] = (),
        readable: Sequence[str] = (),
        asked: bool = True,
    ) -> Start:
        hidden = await asyncio.to_thread(self._hidden, not writable, asked)
        home = await asyncio.to_thread(self._home_view, [*writable, *readable], hidden)
        box = await asyncio.to_thread(
            confine,
            argv,
            cwd=self._roots.folder,
            writable=writable,
            readable=[*readable, *home.folders],
            shown_files=home.files,
            hidden=[*hidden, home.hidden] if home.hidden else hidden,
            protected_paths=self._protected_paths,
            quarantine=os.path.join(self._home, "quarantine") if self._home else "",
            limits=self._limits,
        )
        return _confined(box, environment)

    def _home_view(self, roots: Sequence[str], hidden: Sequence[str]) -> HomeView:
        """Return what is seen of the user's home folder. Under Landlock alone what is known to hold keys is hidden."""
        if probe().level != "bubblewrap":
            return HomeView("")
        real = [os.path.realpath(path) for path in hidden]
        return home_view(_user_home(self._environment), roots, real)

    def _hidden(self, looks: bool, asked: bool) -> list[str]:
        """Return what a command may not read.

        One that was not asked about reads no credentials of the workspace either.
        """
        hidden = [*hidden_from_commands(self._home, self._environment), *self._private]
        if looks:
            return hidden + credential_files(self._roots.real, _user_home(self._environment))
        return hidden if asked else hidden + untracked_credentials(self._roots.real, self._environment)


# A git that only looks writes its index anew, because the files of a copy have other times. That would be a change to
# agree to, at a protected name, of bytes that say nothing.
_KEEP_INDEX: Final = {"GIT_OPTIONAL_LOCKS": "0", **git_settings({"diff.autoRefreshIndex": "false"})}


class SandboxExecution:
    """A view of the files. Nothing of what happens there has happened yet."""

    def __init__(
        self,
        view: View,
        roots: Roots,
        environment: Mapping[str, str],
        home: str,
        limits: ResourceLimits | None = None,
        private: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._private = private
        self._view = view
        self._roots = roots
        self._environment = environment
        self._home = home

    def __repr__(self) -> str:
        return f"<SandboxExecution in a view of {len(self._roots.real)} roots>"

    def files_of_editor(self) -> bool:
        return False

    def terminal_of_editor(self, *, looks: bool = False) -> bool:
        return False

    async def start_looking(self, argv: Sequence[str]) -> Start:
        return await self.start(argv, asked=False)

    async def start_confined(self, argv: Sequence[str]) -> Start:
        return await self.start(argv, asked=False)

    def keeps_confined(self) -> bool:
        return True

    def cannot_look(self) -> str:
        return ""

    def start_unconfined(self, argv: Sequence[str]) -> Start:
        raise ViewRefused("Nothing leaves the sandbox.")

    def needs_freedom(self, command: str, wanted: str = "") -> str:
        return ""

    async def start(self, argv: Sequence[str], *, asked: bool) -> Start:
        credentials = await asyncio.to_thread(self._credentials)
        box = await asyncio.to_thread(
            confine,
            argv,
            cwd=self._roots.folder,
            writable=self._view.roots,
            hidden=[*hidden_from_commands(self._home, self._environment), *self._private, *credentials],
            views=self._view.sources,
            enter=self._view.enter,
            limits=self._limits,
        )
        start = _confined(box, self._environment)
        return start._replace(environment={**start.environment, **_KEEP_INDEX})

    def _credentials(self) -> list[str]:
        """Return the credentials of the workspace.

        Nothing is asked before the end of the turn, so none is read before it.
        """
        return untracked_credentials(self._view.roots, self._environment)


class ViewRoots(Roots):
    """The roots as a view has them. Paths are said as the user knows them, and lead into the view."""

    def __init__(self, view: View, roots: Roots) -> None:
        super().__init__(roots.given, roots.real)
        self._view = view

    def place(self, path: str, *, write: bool = False) -> Place:
        known = self._whole(path)
        found = self._view.place(known, write=write)
        return ViewPlace.of(found, known)

    def tree(self, path: str) -> Place:
        if not self._view.paths:
            raise PathRefused("This sandbox cannot be searched from outside; use sandbox_bash.")
        whole = self._whole(path)
        return Place(self._view.paths[whole], ()) if whole in self._view.paths else self._view.place(whole)

    def shown_path(self, path: str) -> str:
        for root, copy in self._view.paths.items():
            if is_inside(path, copy):
                return root + path[len(copy.rstrip("/")) :]
        return path

    def _whole(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.real[0], path))


class ViewPlace(Place):
    """A place in a view, that says where it is seen."""

    shown_path: str

    @classmethod
    def of(cls, place: Place, shown_path: str) -> "ViewPlace":
        """Return the place, under its known name."""
        place_in_view = cls(place.root, place.parts)
        place_in_view.shown_path = shown_path
        return place_in_view

    @property
    def path(self) -> str:
        """The whole path, as the user knows it."""
        return self.shown_path


def untracked_credentials(roots: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the credentials of a workspace, but for those that git tracks. Blocks.

    These are in the repository for all to read, and git could not add or commit anything while one is hidden.
    """
    found = credential_files(roots, _user_home(environment))
    tracked = frozenset[str]().union(*map(tracked_files, roots)) if found else frozenset()
    return [path for path in found if path not in tracked]


def hidden_from_commands(home: str, environment: Mapping[str, str]) -> list[str]:
    """Return what no confined command may read: our data, and where keys are kept."""
    return [path for path in (home, *credential_paths(_user_home(environment))) if path]


def _user_home(environment: Mapping[str, str]) -> str:
    return os.path.realpath(environment.get("HOME") or os.path.expanduser("~"))


def _confined(box: ConfinedCommand, environment: Mapping[str, str]) -> Start:
    return Start(
        box.argv,
        {**confined_environment(environment), **box.environment},
        box.close,
        box.watched,
        lambda text, failed: box.excess(text, failed=failed),
    )
