"""The contract of a model: one call, a stream of pieces, and failures with a kind."""

from collections.abc import AsyncGenerator
from typing import Final, Literal, NamedTuple, Protocol

FailureKind = Literal["auth", "rate_limit", "network", "server", "garbage"]
FAILURE_KINDS: Final[tuple[FailureKind, ...]] = ("auth", "rate_limit", "network", "server", "garbage")


class Said(NamedTuple):
    """A piece of the answer."""

    text: str


class Thought(NamedTuple):
    """A piece of a thought."""

    text: str


class Called(NamedTuple):
    """A tool the model wants to use."""

    tool: str
    input: dict[str, object]


class Used(NamedTuple):
    """Tokens of this model call."""

    input: int
    output: int


class Stopped(NamedTuple):
    """Why the model stopped, where it is more than being done: an end of a turn. Nothing comes after it."""

    reason: str


Piece = Said | Thought | Called | Used | Stopped


class ModelFailed(Exception):
    """A model call failed. `kind` decides whether trying again helps; the text is fit for the user."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Model(Protocol):
    """Something that answers. One object per session: it may remember where it is."""

    name: str

    def retry_seconds(self, attempt: int) -> float:
        """How long to wait before trying again, the first time with attempt 1."""

    def respond(self, prompt: str) -> AsyncGenerator[Piece, None]:
        """One model call. A generator, so that leaving it early ends the call; it raises `ModelFailed` and no more."""
