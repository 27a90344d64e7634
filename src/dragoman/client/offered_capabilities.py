"""`OfferedCapabilities`: which of its callbacks a client offers to one agent. A value.

Some agents do better with files and terminals of their own. What is not offered is not announced in `initialize`, so
the agent never asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OfferedCapabilities:
    """What is offered, as far as the caller has a callback for it."""

    read: bool = True
    write: bool = True
    terminal: bool = True
    elicitation: bool = True

    def select(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings for `connect` without the callbacks that are not offered."""
        is_offered = {
            "read_text_file": self.read,
            "write_text_file": self.write,
            "terminals": self.terminal,
            "elicitation": self.elicitation,
        }
        return {name: value for name, value in settings.items() if is_offered.get(name, True)}


EVERYTHING = OfferedCapabilities()
# For an agent on another machine: it works on the files there, and forms are for the user here.
FORMS_ONLY = OfferedCapabilities(read=False, write=False, terminal=False)
