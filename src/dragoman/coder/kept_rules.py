"""The answers "always" and "never" that outlive their session: for one project, or everywhere.

They are in `permissions.json` of our data folder, which no confined command sees and no tool writes. A project is the
real path of its repository's root, else of the working folder; so what a workspace contains adds no rule and takes none
away. The file is read anew when it has changed, so a rule that was removed elsewhere counts no more.

The rules of a file that cannot be read, or that others can write, are not known. As some of them may say never,
nothing is allowed then (`KeptRulesFailed`).
"""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from dragoman.errors import UsageError, WorldError
from dragoman.host.private_file import write_private
from dragoman.host.regular_file import read_whole
from dragoman.permissions.rule import PermissionRule

FILE: Final = "permissions.json"
# How far an answer reaches. Those of a session are in its log (`rule_log`).
RuleScope = Literal["session", "project", "everywhere"]
_FORMAT: Final = 1
_FILE_BYTES: Final = 1024 * 1024
# More cannot be looked through by a person.
_MOST_RULES: Final = 2_000
# Another process that writes the file needs milliseconds.
_LOCK_SECONDS: Final = 5.0
_TRY_SECONDS: Final = 0.01
# From the working folder up to the repository's root.
_MOST_FOLDERS: Final = 40


class KeptRulesFailed(WorldError):
    """The file of rules cannot be read or written. The text says why, and what to do."""


class KeptRule(NamedTuple):
    """A rule of the file. `project` is the real path of the folder that it counts in; empty: everywhere."""

    project: str
    rule: PermissionRule

    @property
    def id(self) -> str:
        """The name to remove it by: the same as long as it says the same."""
        text = msgspec.json.encode([self.project, self.rule], order="deterministic")
        return hashlib.sha256(text).hexdigest()[:8]

    def counts_in(self, project: str) -> bool:
        """Return whether it counts in a project."""
        return self.project in ("", project)


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    everywhere: list[PermissionRule] = []
    projects: dict[str, list[PermissionRule]] = {}


class KeptRules:
    """The rules of the file. Its methods block."""

    def __init__(self, home: str | Path) -> None:
        self._path = Path(home) / FILE
        self._seen: tuple[int, ...] | None = None
        self._rules: tuple[KeptRule, ...] = ()

    def __repr__(self) -> str:
        return f"<KeptRules {len(self._rules)} read>"

    def rules(self) -> tuple[KeptRule, ...]:
        """Return all rules, in the order of the file. Raises `KeptRulesFailed`."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            self._seen, self._rules = None, ()
            return ()
        except OSError as error:
            raise self._failure((error.strerror or "cannot be read").lower()) from error
        seen = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)
        if seen != self._seen:
            self._seen = None
            self._rules = self._read(found)
            self._seen = seen
        return self._rules

    def add(self, project: str, rules: Sequence[PermissionRule]) -> None:
        """Add rules for a project; everywhere, if that is empty. Those that are there are not added again."""
        with self._locked():
            known = self.rules()
            new = [kept for rule in rules if (kept := KeptRule(project, rule)) not in known]
            if len(known) + len(new) > _MOST_RULES:
                raise self._failure("is full; take some out: dragoman permissions remove")
            self._write([*known, *dict.fromkeys(new)])

    def remove(self, ids: Sequence[str]) -> list[KeptRule]:
        """Remove the rules with these ids, and return them; ids that no rule has are passed over."""
        with self._locked():
            known = self.rules()
            gone = [kept for kept in known if kept.id in ids]
            if gone:
                self._write([kept for kept in known if kept not in gone])
            return gone

    def _read(self, found: os.stat_result) -> tuple[KeptRule, ...]:
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise self._failure("can be written by other users")
        try:
            stored = msgspec.json.decode(read_whole(self._path, _FILE_BYTES, follow=False), type=_Stored)
        except OSError as error:
            raise self._failure((error.strerror or "cannot be read").lower()) from error
        except (msgspec.DecodeError, UsageError, UnicodeError, RecursionError) as error:
            raise self._failure("is no list of rules") from error
        if stored.format != _FORMAT:
            raise self._failure(f"has format {stored.format}, and this release reads {_FORMAT}")
        if any(not os.path.isabs(project) for project in stored.projects):
            raise self._failure("names a project without its whole path")
        everywhere = [KeptRule("", rule) for rule in stored.everywhere]
        return (*everywhere, *(KeptRule(name, rule) for name, rules in stored.projects.items() for rule in rules))

    def _write(self, rules: Sequence[KeptRule]) -> None:
        projects: dict[str, list[PermissionRule]] = {}
        for kept in rules:
            if kept.project:
                projects.setdefault(kept.project, []).append(kept.rule)
        stored = _Stored(_FORMAT, [kept.rule for kept in rules if not kept.project], projects)
        text = msgspec.json.format(msgspec.json.encode(stored), indent=1) + b"\n"
        if len(text) > _FILE_BYTES:
            raise self._failure("is full; take some out: dragoman permissions remove")
        try:
            write_private(self._path, text)
        except OSError as error:
            raise self._failure((error.strerror or "cannot be written").lower()) from error
        self._seen = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing the file meanwhile."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(self._path.with_name(f"{FILE}.lock"), flags, 0o600)
        except OSError as error:
            raise self._failure((error.strerror or "cannot be written").lower()) from error
        try:
            self._lock(lock)
            yield
        finally:
            os.close(lock)

    def _lock(self, lock: int) -> None:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise self._failure("is being written by another process for too long") from None
                time.sleep(_TRY_SECONDS)
            else:
                return

    def _failure(self, reason: str) -> KeptRulesFailed:
        return KeptRulesFailed(f"the rules in {self._path} cannot be used: the file {reason}")


def project_of(folder: str, user_home: str) -> str:
    """Return the real path of the project that a folder belongs to: its repository's root, else the folder. Blocks.

    A home folder that is a repository, of dotfiles, is no project: everything in it would share the rules.
    """
    real = os.path.realpath(folder)
    here = real
    for _ in range(_MOST_FOLDERS):
        if here in ("/", os.path.realpath(user_home)):
            break
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        here = os.path.dirname(here)
    return real
