"""The failures of a model call that come from what the request holds, so that another conversation mends them."""

import math
from typing import Final

from dragoman.coder.models.contract import FailureKind, ModelFailed

# Waiting does not help: the loop tells the user instead of trying again.
NEVER: Final = math.inf


class ProviderBusy(ModelFailed):
    """The provider limits us, or has too much to do: it will answer again, in minutes rather than seconds."""


class ContextFull(ModelFailed):
    """The conversation is longer than the model can see."""

    def __init__(self, model: str) -> None:
        super().__init__("server", f"The conversation is too long for {model}", NEVER)


class RequestTooLarge(ContextFull):
    """The request has more bytes than the provider accepts, of text or of media."""

    def __init__(self, model: str) -> None:
        ModelFailed.__init__(self, "server", f"The conversation is larger than a request to {model} may be", NEVER)


class RequestRejected(ModelFailed):
    """The provider takes the conversation for invalid (HTTP 400 and the like), so it will do so again."""

    def __init__(self, message: str, kind: FailureKind = "server") -> None:
        super().__init__(kind, message, NEVER)


class MediaRejected(RequestRejected):
    """The provider names an image or other media as the reason."""


class OverMinuteLimit(RequestRejected):
    """The request alone has more tokens than the account may send in a minute: nothing in it is invalid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "rate_limit")


class ProviderCrashed(ModelFailed):
    """The provider failed in itself (HTTP 500). Trying again may help; media that it cannot decode may be the cause."""

    def __init__(self, message: str, retry_seconds: float | None = None) -> None:
        super().__init__("server", message, retry_seconds)
