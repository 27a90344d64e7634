"""Requests, replies and notifications: a request is answered once, a notification never. Beside these there are events.

Every request class names the class of its reply, so that whatever asks it is given that type: `ask(Request[R]) -> R`.
"""

from typing import TYPE_CHECKING, Generic

from msgspec import UNSET

from dragoman.vocabulary.word import Word

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar


class Reply(Word, frozen=True, gc=False):
    """The answer to a request."""


if TYPE_CHECKING:
    # A bare `Request` is a request with any reply. Covariant: a request for a `Done` is one for a `Reply` too.
    R = TypeVar("R", bound=Reply, default=Reply, covariant=True)
else:
    R = TypeVar("R")  # defaults of type variables came with Python 3.13; at run time they have no use


class Request(Word, Generic[R], frozen=True, gc=False):
    """A message that is answered once, with an `R` or an error."""


class Note(Word, frozen=True, gc=False):
    """A notification: a message that is never answered."""


class Done(Reply, frozen=True, gc=False):
    """The reply that carries nothing but success."""


class Extension(Request["ExtensionResult"], frozen=True, gc=False):
    """A method outside the vocabulary, its params as plain JSON values."""

    method: str
    params: object = UNSET


class ExtensionResult(Reply, frozen=True, gc=False):
    """The result of an extension method, as a plain JSON value."""

    result: object = UNSET


class ExtensionNote(Note, frozen=True, gc=False):
    """A notification outside the vocabulary."""

    method: str
    params: object = UNSET
