"""Which of the things a client can lend an agent is told of: files, terminals, forms. A value.

Some agents do better with their own. What is not lent is not announced, so the agent never asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OfferedCapabilities:
    """True: lent, as far as the caller has it to lend."""

    read: bool = True
    write: bool = True
    terminal: bool = True
    elicitation: bool = True

    def of(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What is left of the settings for `connect`."""
        kept_back = {
            "read_text_file": not self.read,
            "write_text_file": not self.write,
            "terminals": not self.terminal,
            "elicitation": not self.elicitation,
        }
        return {name: value for name, value in settings.items() if not kept_back.get(name)}


EVERYTHING = OfferedCapabilities()
# An agent elsewhere works on the files there; forms are for the person here.
FORMS_ALONE = OfferedCapabilities(read=False, write=False, terminal=False)
