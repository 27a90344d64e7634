"""The exceptions of pydantic-ai as those that `failures` explains. Loaded together with the library, never before."""

import asyncio
import json

import httpx2
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
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

from dragoman.coder.models.wires.errors import (
    BrokenOff,
    Encoded,
    ErrorCategory,
    NoEvents,
    ProviderError,
    ResponseTooLarge,
)

_CATEGORIES: tuple[tuple[type[Exception], ErrorCategory], ...] = (
    (ModelAuthenticationError, "auth"),
    (ModelContextWindowExceededError, "context_full"),
    (ModelQuotaExceededError, "quota"),
    (ModelRateLimitError, "rate_limit"),
    (ModelUnavailableError, "unavailable"),
    (ModelServerError, "server"),
    (ModelNotFoundError, "not_found"),
    (ModelRequestRejectedError, "rejected"),
)
# Of the exceptions that one was made from: these say what has happened.
_TELLING = (ResponseTooLarge, Encoded, TimeoutError, httpx2.TransportError, OSError)
# What the clouds' own libraries raise where there is no login, or one that has ended. By name: few have them.
_NO_LOGIN = frozenset(
    {
        *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError"),
        *("SSOTokenLoadError", "UnauthorizedSSOTokenError", "NoAuthTokenError", "ProfileNotFound"),
        *("DefaultCredentialsError", "RefreshError", "ReauthFailError"),
    }
)
# Bounded, because a chain can be a circle.
_CHAIN = 8


def explicable(error: Exception) -> Exception:
    """Return the exception of ours that says what one of the library does."""
    # Errors by status carry the HTTP library's as their cause; they say more than it does.
    causes = [] if isinstance(error, ModelHTTPError) else _causes(error)
    for cause in causes:
        if type(cause).__name__ in _NO_LOGIN:
            return ProviderError("auth")
        if isinstance(cause, _TELLING):
            return cause
        if isinstance(cause, ModelRequestTimeout):
            return TimeoutError()
        if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
            return NoEvents()
    match error:
        case ContentFilterError():
            return error
        case UserError():
            return ProviderError("rejected", message=str(error))
        case ModelAPIError(body=None, __cause__=None, in_stream=False):
            # The library's own complaint: the stream ended, and not with an end.
            return BrokenOff()
        case ModelAPIError():
            return _provider_error(error)
        case _:
            return error


def _provider_error(error: ModelAPIError) -> ProviderError:
    category: ErrorCategory = next((name for kind, name in _CATEGORIES if isinstance(error, kind)), "unknown")
    status = error.status_code if isinstance(error, ModelHTTPError) else getattr(error.__cause__, "status_code", 0)
    return ProviderError(
        category,
        status=status if isinstance(status, int) else 0,
        body=error.body,
        codes=(error.provider_error_code or "", error.provider_error_type or ""),
        message=error.message if error.body is None and error.in_stream else "",
        in_stream=error.in_stream,
        retry_after=error.retry_after,
    )


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error and what it was made from, the outermost first."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(chain) < _CHAIN:
        chain.append(following)
        following = following.__cause__
    return [one for one in chain if not isinstance(one, asyncio.CancelledError)]
