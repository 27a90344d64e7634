"""Refusals that OpenAI sends in the stream."""

from tests.support.provider_streams import named, openai_response
from tests.support.upstream import Reply, streams


def response_failed(code: str, message: str) -> Reply:
    """Answers with a response that has failed."""
    error = {"code": code, "message": message}
    return _after_beginning(named("response.failed", response=openai_response("failed", [], error=error)))


def error_event(code: str, message: str) -> Reply:
    """Answers with the stream's own event for an error."""
    return _after_beginning(named("error", code=code, message=message, param=None))


def _after_beginning(event: bytes) -> Reply:
    begins = named("response.created", response=openai_response("in_progress", []))
    numbered = [
        one.replace(b'data: {"', b'data: {"sequence_number": %d, "' % at) for at, one in enumerate([begins, event])
    ]
    return streams(*numbered)
