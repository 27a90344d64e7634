"""Whether the user trusts what a file of a project would run or choose: asked when it is used, of the file as it is."""

from pathlib import Path
from typing import Final

from dragoman.host.markdown_files import MarkdownFile, project_folders
from dragoman.host.text import visible_line
from dragoman.host.trust import TrustFailed, TrustState, trust_state
from dragoman.host.trusted_parts import trusted_part

_CHANGED: Final = "it has changed since it was trusted"


class ProjectTrust:
    """Looks into the list of trusted folders, each time anew. Its methods block: for a thread."""

    def __init__(self, registry: str) -> None:
        """`registry` is the list; empty: nothing is trusted."""
        self._registry: Final = registry

    def state(self, project: str) -> TrustState:
        """Return what the user trusts of a project."""
        if not self._registry:
            return TrustState(None, "nothing is trusted here")
        try:
            return trust_state(Path(self._registry), Path(project))
        except TrustFailed as error:
            return TrustState(None, str(error))

    def refusal_of(self, folder: str, user_home: str) -> str:
        """Return why the user trusts neither a folder nor the repository that it is in, and how to; empty: one is."""
        states = [self.state(project) for project in project_folders(folder, user_home)]
        if any(state.files is not None for state in states):
            return ""
        reason = next((visible_line(state.reason) for state in states if state.reason), _CHANGED)
        return f"the project is not trusted ({reason}): dragoman trust {visible_line(folder)}"

    def refusal(self, file: MarkdownFile, text: str) -> str:
        """Return why what a file has beside its words does not count; empty: it does, or there is nothing."""
        part = trusted_part(text)
        if not file.project or not part:
            return ""
        state = self.state(file.project)
        if state.files is not None and state.files.get(file.place) == part:
            return ""
        reason = visible_line(state.reason) or _CHANGED
        return f"the project is not trusted ({reason}): dragoman trust {visible_line(file.project)}"
