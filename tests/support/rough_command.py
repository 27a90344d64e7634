"""The command that starts `rough_agent.py`, an agent that misbehaves as it is told to."""

import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("rough_agent.py")


def rough(*manners: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(SCRIPT), *manners]
