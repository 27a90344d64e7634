"""Everything that can go wrong with a hosted model, as one `ModelFailed` a person can read.

Promise: whatever comes in, the sentence that goes out holds no key, no header and no address beyond the host's name.
What a provider said is repeated only shortly and scrubbed, and not at all where it speaks about a key.
Loaded together with the connection, never before.
"""

import logging
import os
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Final, assert_never, get_args

import httpx2
import msgspec

from dragoman.coder.credentials import KEY_VARIABLES, without_secrets
from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.endpoints import ADDRESS_VARIABLES, DEFAULT_SOURCE, Endpoint
from dragoman.coder.models.error_wordings import Meaning, meaning_of
from dragoman.coder.models.known_providers import Family
from dragoman.coder.models.request_failures import (
    NEVER,
    ContextFull,
    MediaRejected,
    OverMinuteLimit,
    ProviderBusy,
    ProviderCrashed,
    RequestRejected,
    RequestTooLarge,
)
from dragoman.coder.models.wires.errors import (
    BrokenOff,
    Encoded,
    NoEvents,
    ProviderError,
    ResponseTooLarge,
    error_fields,
)
from dragoman.coder.models.wires.wait_hints import WHOLE_DAY, wait_from_body, wait_from_words
from dragoman.limits import KIB

# What is repeated of a provider's own words: a sentence or two.
_WORDS: Final = 300
# What is looked through for it.
_BODY_BYTES: Final = 16 * KIB

# Statuses that speak of what the request holds.
_INVALID: Final = (400, 413, 415, 422)
# Settings that OpenAI names in `param`; others name them at the beginning of their sentence (`error_wordings`).
_SETTINGS: Final = re.compile(
    r"(?:max_\w*tokens|tools|tool_choice|parallel_tool_calls|functions|thinking|reasoning|stream|system|instructions"
    r"|temperature|top_[kp]|metadata|model|include|store|service_tier|prompt_cache\w*|output_config|betas"
    r"|generation_config)\b"
)
_ANY_MEANING: Final = frozenset(get_args(Meaning))
# Codes of a stream that say no more than that the request is invalid.
_INVALID_CODES: Final = ("invalid_prompt", "invalid_request_error")

# Exceptions that one was made from. Bounded, because a chain can be a circle.
_CHAIN: Final = 8

# Who signs requests with a login of the cloud's own.
_CLOUD_LOGINS: Final[Mapping[Family, str]] = {
    "bedrock": "Run: aws configure, or aws sso login; or set AWS_BEARER_TOKEN_BEDROCK",
    "vertex": "Run: gcloud auth application-default login",
}

_log = logging.getLogger(__name__)


def explain_failure(error: Exception, endpoint: Endpoint) -> ModelFailed:
    """Return the failure, in a kind and a sentence."""
    provider_name = endpoint.provider
    match error:
        case ProviderError():
            return _recognised(error, endpoint) or _explain(error, endpoint)
        case TimeoutError() | httpx2.TimeoutException():
            return ModelFailed("network", f"{provider_name} ({endpoint.place}) did not answer in time")
        case httpx2.TransportError() | OSError():
            return ModelFailed(
                "network", f"The connection to {provider_name} ({endpoint.place}) failed{_system(error)}"
            )
        case BrokenOff():
            return ModelFailed("network", f"{provider_name} broke off in the middle of its answer")
        case ResponseTooLarge() | Encoded() | NoEvents() | msgspec.DecodeError() | UnicodeDecodeError():
            pass
        case _:
            # The text stays here: it may quote what came, and what came may quote us.
            _log.warning("unreadable answer of a model: %s", type(error).__name__)
    return ModelFailed("garbage", f"{provider_name} sent an answer that cannot be read")


def _explain(error: ProviderError, endpoint: Endpoint) -> ModelFailed:
    """Return the failure that the category of an error stands for."""
    provider_name, wait = endpoint.provider, _wait(error)
    refuses = f"{provider_name} refuses the request{_words(error, endpoint)}"
    match error.category:
        case "auth":
            where = "" if endpoint.source == DEFAULT_SOURCE else f" ({endpoint.place})"
            return ModelFailed(
                "auth",
                f"{provider_name}{where} does not accept the {_credential(endpoint)}. {_how_to_log_in(endpoint)}",
            )
        case "context_full":
            return ContextFull(f"{provider_name}/{endpoint.model}")
        case "quota":
            no_credit = f"The account at {provider_name} has no credit left{_words(error, endpoint)}"
            return ModelFailed("rate_limit", no_credit, NEVER)
        case "rate_limit":
            return ProviderBusy("rate_limit", f"{provider_name} asks to slow down{_words(error, endpoint)}", wait)
        case "unavailable":
            return ProviderBusy("server", f"{provider_name} is overloaded{_words(error, endpoint)}", wait)
        case "server":
            sentence = f"{provider_name} failed{f' (status {error.status})' if error.status else ''}"
            return ProviderCrashed(sentence, wait) if error.status == 500 else ModelFailed("server", sentence, wait)
        case "not_found":
            origin = "" if endpoint.source == DEFAULT_SOURCE else f" (set by {endpoint.source})"
            sentence = f"{provider_name} has no model {endpoint.model}, or {endpoint.host} is not its address{origin}"
            return ModelFailed("server", f"{sentence}{_words(error, endpoint)}", NEVER)
        case "rejected":
            return RequestRejected(refuses)
        case "unknown":
            return _explain_by_status(error, endpoint, refuses)
        case _:
            assert_never(error.category)


def _explain_by_status(error: ProviderError, endpoint: Endpoint, refuses: str) -> ModelFailed:
    provider_name = endpoint.provider
    if 300 <= error.status < 400:
        moved = f"{provider_name} ({endpoint.place}) sends us to another address; {_how_to_move(endpoint)}"
        return ModelFailed("server", moved, NEVER)
    if error.status == 413:
        return RequestTooLarge(f"{provider_name}/{endpoint.model}")
    if error.status in _INVALID or any(code in _INVALID_CODES for code in error.codes):
        return RequestRejected(refuses)
    if error.status:
        return ModelFailed("server", refuses, NEVER)
    return ModelFailed("server", f"{provider_name} failed{_words(error, endpoint)}", _wait(error))


def _system(error: BaseException) -> str:
    """Return a colon and why the connection failed, from its errno and never from the error's text; else nothing."""
    cause: BaseException | None = error
    for _ in range(_CHAIN):
        if isinstance(cause, socket.gaierror):
            return ": no machine of that name is known"
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno:
            return f": {os.strerror(cause.errno).lower()}"
        cause = None if cause is None else cause.__cause__ or cause.__context__
    return ""


def _wait(error: ProviderError) -> float | None:
    """Return what the other side asked us to wait, if that is a number to go by; `NEVER`: a limit of a day is used up.

    A header says it more exactly than a body, but knows nothing of days.
    """
    said = error.retry_after
    asked = wait_from_body(error.body) if error.body is not None else wait_from_words(error.message)
    if asked == WHOLE_DAY:
        return NEVER
    return said if said is not None and 0 <= said < NEVER else asked


def _recognised(error: ProviderError, endpoint: Endpoint) -> ModelFailed | None:
    """Return the failure that the provider's own words describe; None: they say nothing that is known."""
    provider_name, model = endpoint.provider, f"{endpoint.provider}/{endpoint.model}"
    possible = _possible_meanings(error)
    is_setting = "setting" in possible and _names_setting(error)
    meaning = "setting" if is_setting else meaning_of(_strings(error), possible)
    match meaning:
        case "context_full" | "probably_full":
            return ContextFull(model)
        case "request_too_large":
            return RequestTooLarge(model)
        case "minute_limit":
            sentence = f"The request has more tokens than {provider_name} accepts in a minute{_words(error, endpoint)}"
            return OverMinuteLimit(f"{sentence}. Nothing was removed from the conversation; /compact makes it shorter")
        case "media":
            return MediaRejected(f"{provider_name} refuses the request{_words(error, endpoint)}")
        case "setting":
            return ModelFailed("server", f"{provider_name} refuses the request{_words(error, endpoint)}", NEVER)
        case None:
            return None
        case _:
            assert_never(meaning)


def _possible_meanings(error: ProviderError) -> frozenset[Meaning]:
    """Return what words may mean beside this status: an overloaded server that says "limit" is still overloaded."""
    match error.category:
        case "auth" | "quota" | "unavailable":
            return frozenset()
        case "rate_limit" | "context_full":
            return frozenset({"minute_limit"})
        case "not_found":
            return frozenset({"media"})
        case _ if error.status and error.status not in _INVALID:
            return frozenset({"media", "context_full"})
        case _:
            return _ANY_MEANING


def _names_setting(error: ProviderError) -> bool:
    param = error_fields(error.body).get("param")
    return isinstance(param, str) and _SETTINGS.match(param) is not None


def _strings(error: ProviderError) -> list[str]:
    """Return the texts and codes of an error, wherever in its body they stand."""
    strings = [*error.codes, error.message]
    bodies, left = [error.body], _BODY_BYTES
    while bodies and left > 0:
        body = bodies.pop()
        if isinstance(body, str):
            strings.append(body[:left])
            left -= len(body)
        elif isinstance(body, dict | list):
            bodies += body.values() if isinstance(body, dict) else body
            left -= len(body)
    return strings


def _words(error: ProviderError, endpoint: Endpoint) -> str:
    """Return the provider's message, if a person can read it."""
    body = error.body if error.body is not None else error.message
    for _ in range(3):  # {"error": {"message": "…"}}, in a list with some
        if isinstance(body, list) and body:
            body = body[0]
        if isinstance(body, dict):
            body = body.get("message") or body.get("error") or body.get("detail")
    return _plain(body, endpoint) if isinstance(body, str) else ""


def _plain(text: str, endpoint: Endpoint) -> str:
    """Return a colon and the provider's text as one short line without keys or its full stop; nothing for HTML."""
    text = " ".join(text.split()).rstrip(".")
    if not text or text.startswith("<"):
        return ""
    text = without_secrets(text[:_BODY_BYTES], endpoint.secrets)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return ": " + (text if len(text) <= _WORDS else text[:_WORDS] + "…")


def _credential(endpoint: Endpoint) -> str:
    return "login" if endpoint.family in _CLOUD_LOGINS and endpoint.key is None else "key"


def _how_to_move(endpoint: Endpoint) -> str:
    """Say where the right address goes: where the wrong one was set."""
    variable = ADDRESS_VARIABLES.get(endpoint.provider)
    return f"put the right one into {variable if variable == endpoint.source else 'base_url'}"


def _how_to_log_in(endpoint: Endpoint) -> str:
    if endpoint.family in _CLOUD_LOGINS and endpoint.key is None:
        return _CLOUD_LOGINS[endpoint.family]
    variable = endpoint.config.api_key_env or KEY_VARIABLES.get(endpoint.provider)
    return f"Set {variable or 'the right one'}, or run: dragoman login {endpoint.provider}"
