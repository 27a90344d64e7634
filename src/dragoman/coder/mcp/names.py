"""`mcp__SERVER__TOOL`: what a server's tool is called here.

Promise: such a name matches `[A-Za-z0-9_-]{1,64}`, as every model provider wants it, and begins with `mcp__`, as no
tool of ours does. No two servers of a session share one, whatever they and their tools call themselves: a label holds
no `__`, so it ends at the first one. The name of a tool depends on nothing but its server's label and its own name.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "mcp__"
NAME_CHARACTERS: Final = 64
# Leaves 33 for the tool.
LABEL_CHARACTERS: Final = 24
_DIGEST_CHARACTERS: Final = 8


def labels(names: Iterable[str]) -> list[str]:
    """Return a label for each server, in order; later twins are numbered."""
    labels_so_far: list[str] = []
    for name in names:
        base = re.sub("[^A-Za-z0-9-]+", "_", name)[:LABEL_CHARACTERS].strip("_") or "server"
        label, number = base, 1
        while label in labels_so_far:
            number += 1
            label = f"{base[: LABEL_CHARACTERS - 4].strip('_')}-{number}"
        labels_so_far.append(label)
    return labels_so_far


def tool_name(label: str, tool: str) -> str:
    """Return the name of a server's tool. One that had to be changed or cut carries a digest of what it was."""
    room = NAME_CHARACTERS - len(PREFIX) - len(label) - len("__")
    name = re.sub("[^A-Za-z0-9_-]", "_", tool)
    if name != tool or not name or len(name) > room:
        digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
        name = f"{name[: room - 1 - _DIGEST_CHARACTERS]}_{digest}"
    return f"{PREFIX}{label}__{name}"
