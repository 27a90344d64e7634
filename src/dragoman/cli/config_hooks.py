"""The hooks that count in a folder, as `dragoman config show` lists them: where they are from, and whether they run."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.coder.hook_files import Hook
    from dragoman.coder.managed_settings import ManagedSettings


def find_hooks(managed: "ManagedSettings | None") -> tuple[list[dict[str, str]], list[str]]:
    """Return the hooks that a session in the present folder has, and what of their files is not understood.

    Blocks. Where there is no file of hooks, nothing is imported.
    """
    from dragoman.cli.home import own_path
    from dragoman.host.markdown_files import project_folders
    from dragoman.host.trusted_parts import HOOK_FILES

    user_file = own_path("hooks.json")
    projects = project_folders(os.getcwd(), os.environ.get("HOME", ""))
    files = [user_file, *(os.path.join(folder, name) for folder in projects for name in HOOK_FILES)]
    has_managed = managed is not None and bool(managed.hooks.managed)
    if not has_managed and not any(map(os.path.lexists, files)):
        return [], []
    from dragoman.coder.hook_sources import HookSources
    from dragoman.coder.hook_starts import HookStarts
    from dragoman.coder.managed_settings import NOTHING_MANAGED
    from dragoman.host.environment import child_environment

    home = os.environ.get("HOME", "")
    folders = [os.path.realpath(one) for one in projects]
    starts = HookStarts(folders, child_environment(os.environ), user_home=home, user_file=user_file)
    found = HookSources(user_file, own_path("trust.json"), managed or NOTHING_MANAGED, starts).find(projects)
    return [_entry(one.hook, one.refusal) for one in found.hooks], list(found.remarks)


def _entry(hook: "Hook", refusal: str) -> dict[str, str]:
    return {
        "event": hook.event,
        "matcher": hook.matcher,
        "runs": hook.line(),
        "origin": hook.origin,
        "file": os.path.join(hook.folder, hook.file),
        "state": refusal or "runs",
    }


def hook_words(entry: Mapping[str, str]) -> tuple[str, str]:
    """Return in words what a hook runs and when, and where it is from and whether it runs."""
    about = f" {entry['matcher']}" if entry["matcher"] not in ("", "*") else ""
    state = "" if entry["state"] == "runs" else f", does not run: {entry['state']}"
    return f"{entry['event']}{about}: {entry['runs']}", f"{entry['origin']}, {entry['file']}{state}"
