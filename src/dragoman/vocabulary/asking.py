"""Asking and telling: requests are answered once, notes never. Beside these there are only events."""

from msgspec import UNSET

from dragoman.vocabulary.word import Word


class Request(Word, frozen=True, gc=False):
    """Something that is asked, and answered once."""


class Reply(Word, frozen=True, gc=False):
    """An answer."""


class Note(Word, frozen=True, gc=False):
    """Something that is told, and never answered."""


class Done(Reply, frozen=True, gc=False):
    """Yes, done; nothing more to say."""


class Extension(Request, frozen=True, gc=False):
    """A method outside the vocabulary, its params as plain JSON values."""

    method: str
    params: object = UNSET


class ExtensionResult(Reply, frozen=True, gc=False):
    """Whatever the other side answered."""

    result: object = UNSET


class ExtensionNote(Note, frozen=True, gc=False):
    """A notification outside the vocabulary."""

    method: str
    params: object = UNSET
