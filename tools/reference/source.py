"""Where the code is."""

from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parent.parent.parent / "src" / "dragoman"
