"""Whether the user trusts what a file of a project would run or choose: asked when it is used, of the file as it is."""

from pathlib import Path
from typing import Final

from dragoman.host.markdown_files import MarkdownFile
from dragoman.host.text import visible_line
from dragoman.host.trust import TrustFailed, TrustState, trust_state
from dragoman.host.trusted_parts import trusted_part


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

    def refusal(self, file: MarkdownFile, text: str) -> str:
        """Return why what a file has beside its words does not count; empty: it does, or there is nothing."""
        part = trusted_part(text)
        if not file.project or not part:
            return ""
        state = self.state(file.project)
        if state.files is not None and state.files.get(file.place) == part:
            return ""
        reason = visible_line(state.reason) or "it has changed since it was trusted"
        return f"the project is not trusted ({reason}): dragoman trust {visible_line(file.project)}"
