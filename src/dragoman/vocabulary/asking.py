"""Requests, replies and notifications: a request is answered once, a notification never. Beside these there are events.

Every request class names the class of its reply, so that whatever asks it is given that type: `ask(Request[R]) -> R`.
"""

from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import UNSET

from dragoman.vocabulary.word import Word


class Reply(Word, frozen=True, gc=False):
    """The answer to a request."""


# The reply type of a request, for functions that are given a request and give back its reply.
R = TypeVar("R", bound=Reply)
if TYPE_CHECKING:
    import typing_extensions

    # A bare `Request` is a request with any reply. Covariant: a request for a `Done` is one for a `Reply` too.
    R_co = typing_extensions.TypeVar("R_co", bound=Reply, default=Reply, covariant=True)
else:
    R_co = TypeVar("R_co", covariant=True)  # only Python 3.13 has defaults; at run time they have no use


class Request(Word, Generic[R_co], frozen=True, gc=False):
    """A message that is answered once, with an `R_co` or an error."""


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
