"""Every wording of the table is understood, sent by a server as that server sends it, and others are not misread."""

import math
from typing import Any, get_args

import pytest

from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.error_wordings import WORDINGS, ErrorWording, Meaning, meaning_of
from dragoman.coder.models.request_failures import (
    ContextFull,
    MediaRejected,
    OverMinuteLimit,
    ProviderBusy,
    ProviderCrashed,
    RequestRejected,
    RequestTooLarge,
)
from tests.coder.models.asking import ask, connected, endpoint
from tests.coder.models.refusals import error_event, response_failed
from tests.support.upstream import Reply, answers, data, streams, upstream

ALL = frozenset(get_args(Meaning))
FAILURES: dict[Meaning, type[ModelFailed]] = {
    "context_full": ContextFull,
    "probably_full": ContextFull,
    "request_too_large": RequestTooLarge,
    "minute_limit": OverMinuteLimit,
    "media": MediaRejected,
    "setting": ModelFailed,
}
FAMILIES: dict[str, tuple[Family, str]] = {
    "anthropic": ("anthropic", "claude-opus-4-8"),
    "openai": ("openai", "gpt-5"),
    "google": ("google", "gemini-2.5-flash"),
}


def body_of(wording: ErrorWording) -> bytes | dict[str, Any]:
    """The body of an error with this example: as a sentence, or as a code beside another sentence."""
    if wording.example.startswith("<html>"):
        return wording.example.encode()
    is_code = wording.example.isidentifier()
    message = "Not so." if is_code else wording.example
    code = wording.example if is_code else None
    match wording.server:
        case "anthropic":
            return {"type": "error", "error": {"type": code or "invalid_request_error", "message": message}}
        case "google":
            return {"error": {"code": wording.status, "message": message, "status": "INVALID_ARGUMENT"}}
        case "tgi":
            return {"error": message, "error_type": "validation"}
        case "llama.cpp":
            return {"error": {"code": wording.status, "message": message, "type": code or "invalid_request_error"}}
        case _:
            return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


async def failure_of(reply: Reply, server: str = "") -> ModelFailed:
    family, model = FAMILIES.get(server, ("compatible", "m"))
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        with pytest.raises(ModelFailed) as caught:
            await ask(it)
    return caught.value


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: f"{wording.server}: {wording.example[:40]}")
async def test_every_wording_of_the_table_is_the_failure_that_it_means(wording: ErrorWording) -> None:
    failure = await failure_of(answers(wording.status, body_of(wording)), wording.server)
    assert (type(failure), failure.retry_seconds) == (FAILURES[wording.meaning], math.inf)


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: f"{wording.server}: {wording.example[:40]}")
def test_no_earlier_row_of_the_table_takes_an_example_for_something_else(wording: ErrorWording) -> None:
    assert meaning_of([wording.example], ALL) == wording.meaning


OTHERS: dict[str, tuple[int, str, type[ModelFailed]]] = {
    "a rate limit that passes": (
        429,
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 9, Used 8",
        ProviderBusy,
    ),
    "a limit of the answer": (400, "max_tokens is too large: 40000. This model supports 16384 tokens", RequestRejected),
    "a limit of an id": (400, "Invalid 'messages[1].tool_calls[0].id': string too long.", RequestRejected),
    "a server that is down": (503, "The input queue exceeds the limit of tokens", ProviderBusy),
    "a server that fails": (500, "prompt cache: more than 3 tokens of the lock were taken", ProviderCrashed),
    "a model that is missing": (404, "No endpoints found for m.", ModelFailed),
    "a model without tools": (404, "No endpoints found that support tool use.", ModelFailed),
    "no reason": (400, "Not so.", RequestRejected),
}


@pytest.mark.parametrize(("status", "words", "failure"), OTHERS.values(), ids=OTHERS)
async def test_words_about_something_else_are_not_misread(status: int, words: str, failure: type[ModelFailed]) -> None:
    assert type(await failure_of(answers(status, {"error": {"message": words}}))) is failure


# -- told in the stream ----------------------------------------------------------------------------------------------


CODES: dict[str, type[ModelFailed]] = {
    "context_length_exceeded": ContextFull,
    "invalid_image": MediaRejected,
    "invalid_base64_image": MediaRejected,
    "image_parse_error": MediaRejected,
    "image_too_large": MediaRejected,
    "unsupported_image_media_type": MediaRejected,
    "invalid_prompt": RequestRejected,
    "server_error": ProviderCrashed,
    "vector_store_timeout": ModelFailed,
}


@pytest.mark.parametrize("event", [response_failed, error_event])
@pytest.mark.parametrize(("code", "expected"), CODES.items(), ids=CODES)
async def test_a_code_in_the_stream_of_openai_is_understood(event: Any, code: str, expected: type[ModelFailed]) -> None:
    failure = await failure_of(event(code, "Sorry."), "openai")
    assert type(failure) is expected
    assert "broke off" not in str(failure)


async def test_an_overflow_in_the_stream_of_a_compatible_server_is_understood() -> None:
    words = "The number of tokens to keep from the initial prompt is greater than the context length."
    assert type(await failure_of(streams(data({"error": {"message": words}})))) is ContextFull


async def test_the_sentence_of_a_failure_in_the_stream_is_told() -> None:
    failure = await failure_of(response_failed("vector_store_timeout", "The store was slow."), "openai")
    assert str(failure) == "openai failed: vector_store_timeout: The store was slow"
