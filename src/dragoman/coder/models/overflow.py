"""The one failure that waiting never mends and a shorter conversation does."""

import math
from typing import Final

from dragoman.coder.models.contract import ModelFailed

# Waiting does not help: whoever would retry tells the user instead.
NEVER: Final = math.inf


class ContextFull(ModelFailed):
    """The conversation is longer than the model can see."""

    def __init__(self, model: str) -> None:
        super().__init__("server", f"The conversation is too long for {model}", NEVER)
