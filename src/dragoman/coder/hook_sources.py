"""Which hooks there are: the administrator's, the user's, those of projects, and which of them run.

The user's count at once, but for those that start files of the workspace (`hook_starts`): what stands there may be of
strangers, so these run where the user trusts the folder. A project's count only where the user has trusted exactly
these and the files that they start (`host.trust`); what runs is read from the very bytes that were trusted. Everything
here blocks: for a thread.
"""

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.coder.hook_files import Hook, HookFile, parse_hooks
from dragoman.coder.hook_starts import HookStarts
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.project_trust import ProjectTrust
from dragoman.host.regular_file import read_whole
from dragoman.host.text import visible_line
from dragoman.host.trusted_parts import HOOK_BYTES, HOOK_FILES, hooks_part


class FoundHook(NamedTuple):
    """A hook, and why it does not run; empty: it runs."""

    hook: Hook
    refusal: str = ""


class FoundHooks(NamedTuple):
    """All hooks, and what of their files is not understood, or not used, in words for the user."""

    hooks: tuple[FoundHook, ...] = ()
    remarks: tuple[str, ...] = ()

    def running(self) -> tuple[Hook, ...]:
        """Return those that run."""
        return tuple(one.hook for one in self.hooks if not one.refusal)


class HookSources:
    """Where hooks are looked for. `user_file` is the user's; `trust` the list of trusted folders."""

    def __init__(self, user_file: str, trust: str, managed: ManagedSettings, starts: HookStarts) -> None:
        self._user_file: Final = user_file
        self._starts: Final = starts
        self._trust: Final = ProjectTrust(trust)
        self._managed: Final = managed

    def find(self, projects: Sequence[str]) -> FoundHooks:
        """Return the hooks, in the order in which their answers count. `projects` are folders, nearest first."""
        found = [FoundHook(hook) for hook in self._managed.hook_list()]
        remarks: list[str] = []
        for hooks, mistakes in (self._users(), *(self._of_project(folder) for folder in projects)):
            found += hooks
            remarks += mistakes
        return FoundHooks(tuple(found), tuple(remarks))

    def is_as_trusted(self, hook: Hook) -> bool:
        """Return whether a project's hook, and the files that it starts, are still what the user has trusted."""
        if hook.origin != "project":
            return True
        state = self._trust.state(hook.folder)
        data = None if state.files is None else state.files.get(hook.file)
        return data is not None and hook in parse_hooks(data, hook.file, "project", hook.folder).hooks

    def start_refusal(self, hook: Hook) -> str:
        """Return why a hook of the user's does not run: it starts files of a folder that is not trusted."""
        refusals = (self._trust.refusal_of(one, self._starts.user_home) for one in self._starts.folders_of(hook))
        return next((one for one in refusals if one), "")

    def _users(self) -> tuple[list[FoundHook], tuple[str, ...]]:
        if not self._user_file:
            return [], ()
        try:
            data = read_whole(self._user_file, HOOK_BYTES)
        except FileNotFoundError:
            return [], ()
        except OSError as error:
            why = (error.strerror or "it cannot be read").lower()
            return [], (f"{visible_line(self._user_file)}: none of its hooks runs: {why}",)
        hooks, mistakes = self._judged(parse_hooks(data, self._user_file, "user"))
        found = [one if one.refusal else one._replace(refusal=self.start_refusal(one.hook)) for one in hooks]
        refusals = {one.refusal for one, judged in zip(found, hooks, strict=True) if one.refusal and not judged.refusal}
        remarks = (f"Hooks of yours do not run that start files of the workspace: {one}" for one in sorted(refusals))
        return found, (*mistakes, *remarks)

    def _of_project(self, folder: str) -> tuple[list[FoundHook], tuple[str, ...]]:
        found: list[FoundHook] = []
        remarks: list[str] = []
        for name in HOOK_FILES:
            data, refusal = self._trusted(folder, name)
            if not data:
                continue
            hooks, mistakes = self._judged(parse_hooks(data, name, "project", folder), refusal)
            found += hooks
            remarks += mistakes
            if refusal and hooks:
                remarks.append(f"The hooks of {visible_line(os.path.join(folder, name))} do not run: {refusal}")
        return found, tuple(remarks)

    def _trusted(self, folder: str, name: str) -> tuple[bytes, str]:
        """Return the hooks of a file as they were trusted; else as they are, and why they do not run."""
        try:
            data = hooks_part(name, read_whole(os.path.join(folder, name), HOOK_BYTES))
        except OSError:
            return b"", ""  # it is not there, or what is there is nothing that trust could be about
        if not data:
            return b"", ""
        state = self._trust.state(folder)
        if state.files is not None and state.files.get(name) == data:
            return data, ""
        reason = visible_line(state.reason) or "it has changed since it was trusted"
        return data, f"the project is not trusted ({reason}): dragoman trust {visible_line(folder)}"

    def _judged(self, file: HookFile, refusal: str = "") -> tuple[list[FoundHook], tuple[str, ...]]:
        """Return the hooks of a file, with what the administrator says of their origin."""

        def why(hook: Hook) -> str:
            allowed = self._managed.hooks.allows(hook.origin)
            return refusal if allowed else self._managed.says(f"hooks of {hook.whose}")

        return [FoundHook(hook, why(hook)) for hook in file.hooks], file.mistakes
