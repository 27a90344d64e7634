"""The failures of a model call that waiting never mends and another conversation does."""

import math
from typing import Final

from dragoman.coder.models.contract import FailureKind, ModelFailed

# Waiting does not help: the loop tells the user instead of trying again.
NEVER: Final = math.inf


class ContextFull(ModelFailed):
    """The conversation is longer than the model can see."""

    def __init__(self, model: str) -> None:
        super().__init__("server", f"The conversation is too long for {model}", NEVER)


class RequestRejected(ModelFailed):
    """The provider takes the conversation for invalid (HTTP 400 and the like), so it will do so again."""

    def __init__(self, message: str, kind: FailureKind = "server") -> None:
        super().__init__(kind, message, NEVER)
