"""Everything that can go wrong with a hosted model, as one `ModelFailed` a person can read.

Promise: whatever comes in, the sentence that goes out holds no key, no header and no address beyond the host's name.
What a provider said is repeated only shortly and scrubbed, and not at all where it speaks about a key.
Loaded together with the SDKs, never before.
"""

import asyncio
import json
import logging
import os
import re
import socket
import ssl
from typing import Final, assert_never, cast, get_args

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UserError,
)

from dragoman.coder.credentials import KEY_VARIABLES, without_secrets
from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.endpoints import ADDRESS_VARIABLES, DEFAULT_SOURCE, Endpoint
from dragoman.coder.models.error_wordings import Meaning, meaning_of
from dragoman.coder.models.request_failures import (
    NEVER,
    ContextFull,
    MediaRejected,
    OverMinuteLimit,
    ProviderCrashed,
    RequestRejected,
    RequestTooLarge,
)
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

# Exceptions that one was made from.
_CHAIN: Final = 8

_log = logging.getLogger(__name__)


class ResponseTooLarge(Exception):
    """An answer beyond every bound."""


class Encoded(Exception):
    """A compressed answer, which we had asked not to get."""


def explain_failure(error: Exception, endpoint: Endpoint) -> ModelFailed:
    """Return the failure, in a kind and a sentence."""
    provider_name = endpoint.provider
    for cause in _causes(error):
        match cause:
            case ResponseTooLarge() | Encoded():
                return ModelFailed("garbage", f"{provider_name} sent an answer that cannot be read")
            case TimeoutError() | ModelRequestTimeout() | httpx2.TimeoutException():
                return ModelFailed("network", f"{provider_name} ({endpoint.place}) did not answer in time")
            case httpx2.DecodingError():
                return ModelFailed("garbage", f"{provider_name} sent an answer that cannot be read")
            case httpx2.TransportError() | OSError():
                return ModelFailed(
                    "network", f"The connection to {provider_name} ({endpoint.place}) failed{_system(error)}"
                )
            case _:
                pass
    if isinstance(error, ModelAPIError) and (recognised := _recognised(error, endpoint)) is not None:
        return recognised
    match error:
        case ModelAuthenticationError():
            where = "" if endpoint.source == DEFAULT_SOURCE else f" ({endpoint.place})"
            return ModelFailed("auth", f"{provider_name}{where} does not accept the key. {_how_to_log_in(endpoint)}")
        case ModelContextWindowExceededError():
            return ContextFull(f"{provider_name}/{endpoint.model}")
        case ModelQuotaExceededError():
            return ModelFailed(
                "rate_limit", f"The account at {provider_name} has no credit left{_words(error, endpoint)}", NEVER
            )
        case ModelRateLimitError():
            return ModelFailed("rate_limit", f"{provider_name} asks to slow down", _wait(error))
        case ModelUnavailableError():
            return ModelFailed("server", f"{provider_name} is overloaded", _wait(error))
        case ModelServerError():
            sentence = f"{provider_name} failed{_status(error)}"
            if isinstance(error, ModelHTTPError) and error.status_code == 500:
                return ProviderCrashed(sentence, _wait(error))
            return ModelFailed("server", sentence, _wait(error))
        case ModelConnectionError():
            return ModelFailed(
                "network", f"The connection to {provider_name} ({endpoint.place}) failed{_system(error)}"
            )
        case ModelNotFoundError():
            origin = "" if endpoint.source == DEFAULT_SOURCE else f" (set by {endpoint.source})"
            sentence = f"{provider_name} has no model {endpoint.model}, or {endpoint.host} is not its address{origin}"
            return ModelFailed("server", f"{sentence}{_words(error, endpoint)}", NEVER)
        case ModelHTTPError(status_code=413):
            return RequestTooLarge(f"{provider_name}/{endpoint.model}")
        case ModelHTTPError(status_code=status) if status not in _INVALID:
            return ModelFailed("server", f"{provider_name} refuses the request{_words(error, endpoint)}", NEVER)
        case ModelRequestRejectedError() | ModelHTTPError():
            return RequestRejected(f"{provider_name} refuses the request{_words(error, endpoint)}")
        case UserError():
            return RequestRejected(f"{provider_name} cannot be asked this{_plain(str(error), endpoint)}")
        case ModelAPIError() if _is_redirect(error):
            return ModelFailed(
                "server",
                f"{provider_name} ({endpoint.place}) sends us to another address; {_how_to_move(endpoint)}",
                NEVER,
            )
        case ModelAPIError(provider_error_code=code) if code in _INVALID_CODES:
            return RequestRejected(f"{provider_name} refuses the request{_words(error, endpoint)}")
        case ModelAPIError(body=None, __cause__=None, in_stream=False):
            # The library's own complaint: the stream ended, and not with an end.
            return ModelFailed("network", f"{provider_name} broke off in the middle of its answer")
        case ModelAPIError() if not _is_unreadable(error):
            return ModelFailed("server", f"{provider_name} failed{_words(error, endpoint)}", _wait(error))
    # The text stays here: it may quote what came, and what came may quote us.
    _log.warning("unreadable answer of a model: %s", type(error).__name__)
    return ModelFailed("garbage", f"{provider_name} sent an answer that cannot be read")


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error and what it was made from, the outermost first; bounded, because a chain can be a circle."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(chain) < _CHAIN:
        chain.append(following)
        following = following.__cause__
    # Status errors carry the HTTP library's as their cause; they say more than it does.
    return (
        []
        if isinstance(error, ModelHTTPError)
        else [one for one in chain if not isinstance(one, asyncio.CancelledError)]
    )


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


def _is_unreadable(error: BaseException) -> bool:
    return any(isinstance(cause, json.JSONDecodeError | UnicodeDecodeError) for cause in _causes(error))


def _is_redirect(error: BaseException) -> bool:
    status = getattr(error.__cause__, "status_code", 0)
    return isinstance(status, int) and 300 <= status < 400


def _wait(error: BaseException) -> float | None:
    """Return what the other side asked us to wait, if that is a number to go by."""
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return wait if wait is not None and 0 <= wait < NEVER else None


def _status(error: BaseException) -> str:
    return f" (status {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _recognised(error: ModelAPIError, endpoint: Endpoint) -> ModelFailed | None:
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


def _possible_meanings(error: ModelAPIError) -> frozenset[Meaning]:
    """Return what words may mean beside this status: an overloaded server that says "limit" is still overloaded."""
    match error:
        case ModelAuthenticationError() | ModelQuotaExceededError() | ModelUnavailableError() | ModelConnectionError():
            return frozenset()
        case ModelRateLimitError():
            return frozenset({"minute_limit"})
        case ModelContextWindowExceededError():
            return frozenset({"minute_limit"})
        case ModelNotFoundError():
            return frozenset({"media"})
        case ModelHTTPError(status_code=status) if status not in _INVALID:
            return frozenset({"media", "context_full"})
        case _:
            return _ANY_MEANING


def _names_setting(error: ModelAPIError) -> bool:
    param = _plain_error(error.body).get("param")
    return isinstance(param, str) and _SETTINGS.match(param) is not None


def _strings(error: ModelAPIError) -> list[str]:
    """Return the texts and codes of an error, wherever in its body they stand."""
    strings = [text for text in (error.provider_error_code, error.provider_error_type) if text]
    if error.body is None and error.in_stream:
        strings.append(error.message)
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


def _plain_error(body: object) -> dict[str, object]:
    """Return the object that describes an error, wherever a provider puts it."""
    for _ in range(2):  # {"error": {…}}, in a list with some
        if isinstance(body, list) and body:
            body = body[0]
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            body = body["error"]
    return cast(dict[str, object], body) if isinstance(body, dict) else {}


def _words(error: BaseException, endpoint: Endpoint) -> str:
    """Return the provider's message, if a person can read it."""
    body = error.body if isinstance(error, ModelAPIError) else None
    if body is None and isinstance(error, ModelAPIError) and error.in_stream:
        body = error.message  # an event in the stream, of which the library has kept the sentence alone
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
    text = without_secrets(text[:_BODY_BYTES], [endpoint.key] if endpoint.key else [])
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return ": " + (text if len(text) <= _WORDS else text[:_WORDS] + "…")


def _how_to_move(endpoint: Endpoint) -> str:
    """Say where the right address goes: where the wrong one was set."""
    variable = ADDRESS_VARIABLES.get(endpoint.provider)
    return f"put the right one into {variable if variable == endpoint.source else 'base_url'}"


def _how_to_log_in(endpoint: Endpoint) -> str:
    variable = endpoint.config.api_key_env or KEY_VARIABLES.get(endpoint.provider)
    return f"Set {variable or 'the right one'}, or run: dragoman login {endpoint.provider}"
