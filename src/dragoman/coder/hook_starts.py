"""Which files of the workspace hooks of the user and of the administrator start, by what their commands name.

The yes to such a hook is none to these files: `make test` runs whatever a clone has in its Makefile. What a command may
mean is looked up as for configurations (`host.launch_names`). Everything here blocks: for a thread.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman.coder.hook_files import Hook, hook_launch
from dragoman.host.launch_names import PATTERN, ScriptsRefused, is_file, names_of
from dragoman.host.paths import is_inside
from dragoman.host.scripts import meant_by

# What a line writes its output to is not started. The line is the user's own: no quotes are there to deceive.
_OUTPUT: Final = re.compile(r"""(?<![<>&-])[0-9&]?>{1,2}\|?\s*(?:"[^"]*"|'[^']*'|[^\s;|&<>()"'])+""")


class HookStarts:
    """Looks into the folders of a workspace."""

    def __init__(
        self, folders: Sequence[str], environment: Mapping[str, str], *, user_home: str, user_file: str
    ) -> None:
        """`folders`: real paths. `environment`: that of the hooks. `user_file`: where the user's hooks stand."""
        self._folders: Final = tuple(folders)
        self._environment: Final = environment
        self.user_home: Final = user_home
        self._own: Final = os.path.realpath(user_file)

    def __repr__(self) -> str:
        return f"<HookStarts in {len(self._folders)} folders>"

    def folders_of(self, hook: Hook) -> list[str]:
        """Return the folders that a hook starts files of. One around the user's own hooks is the user's."""
        return [one for one in self._folders if not is_inside(self._own, one) and self._starts_any(hook, one)]

    def files_of(self, hook: Hook) -> list[str]:
        """Return the files that a hook starts: as they are named, and where that leads."""
        found: dict[str, None] = {}
        for folder in self._folders:
            try:
                found |= dict.fromkeys(self._files_in(hook, folder))
            except ScriptsRefused:  # its line goes to more folders than a line does
                continue
        return [one for path in found for one in dict.fromkeys((path, os.path.realpath(path)))]

    def _starts_any(self, hook: Hook, folder: str) -> bool:
        try:
            return any(True for _ in self._files_in(hook, folder))
        except ScriptsRefused:
            return True

    def _files_in(self, hook: Hook, folder: str) -> Iterator[str]:
        line = hook.command if hook.args is not None else _OUTPUT.sub(" ", hook.command)
        launch = hook_launch(hook._replace(command=line, folder=hook.folder or folder))
        for name in names_of(folder, launch, self._environment):
            if not name.startswith(PATTERN):
                yield from [name] if is_file(name) else []
            # `*.py` alone is what a hook compares names with. Behind a folder it is a way to files.
            elif os.path.dirname(name.removeprefix(PATTERN)) != folder:
                yield from (path for path in meant_by(name) if is_file(path))
