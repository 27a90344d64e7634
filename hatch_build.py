"""The build hook of the wheel and the source distribution: both contain the console, which is built if it is not there.

An editable install leaves that to `./dev`, which has a node for it.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tools import console


class ConsoleHook(BuildHookInterface[Any]):
    """Builds the console before files are collected."""

    def dependencies(self) -> list[str]:
        """Ask for node where there is none and the console has to be built."""
        return [] if console.is_built() or console.find_node() is not None else [console.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the console, except for an editable install."""
        if version != "editable":
            console.prepare()
