"""What providers answer instead of a response, and which kind of failure each means. Pure.

An error comes as an HTTP status or as an event of a stream that had begun well; both become a `ProviderError`, with the
status that the same error has outside of a stream. Codes are the providers' own; what their sentences mean is in
`error_wordings`.
"""

from typing import Final, Literal, cast

ErrorCategory = Literal[
    "auth", "quota", "rate_limit", "unavailable", "server", "context_full", "not_found", "rejected", "unknown"
]

_BY_STATUS: Final[dict[int, ErrorCategory]] = {
    400: "rejected",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    422: "rejected",
    429: "rate_limit",
    503: "unavailable",
    529: "unavailable",
}

# -- codes of OpenAI and of the servers that speak like it -----------------------------------------------------------

# An account without credit is refused with 429 as well; waiting does not help it.
_QUOTA_CODES: Final = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
)
_OPENAI_CODES: Final[dict[str, ErrorCategory]] = {
    **dict.fromkeys(_QUOTA_CODES, "quota"),
    "context_length_exceeded": "context_full",
    "model_not_found": "not_found",
    "invalid_api_key": "auth",
}
_OPENAI_STATUSES: Final = {
    **dict.fromkeys(_QUOTA_CODES, 429),
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "context_length_exceeded": 400,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "server_is_overloaded": 503,
    "overloaded": 503,
    "server_error": 500,
}

# -- types of Anthropic ----------------------------------------------------------------------------------------------

_ANTHROPIC_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

# -- statuses of Google ----------------------------------------------------------------------------------------------

_GOOGLE_STATUSES: Final[dict[str, ErrorCategory]] = {
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "unavailable",
    "INTERNAL": "server",
    "INVALID_ARGUMENT": "rejected",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "NOT_FOUND": "not_found",
}


class ResponseTooLarge(Exception):
    """An answer beyond every bound."""


class Encoded(Exception):
    """A compressed answer, which we had asked not to get."""


class NoEvents(Exception):
    """An answer that ended without a single event: it was no stream."""


class BrokenOff(Exception):
    """The stream ended before the response did."""


class ProviderError(Exception):
    """A provider refused or failed. `status` is the HTTP status that such an error has; 0: it has none."""

    def __init__(
        self,
        category: ErrorCategory,
        *,
        status: int = 0,
        body: object = None,
        codes: tuple[str, ...] = (),
        message: str = "",
        in_stream: bool = False,
        retry_after: float | None = None,
    ) -> None:
        # No text: what came may quote what was sent.
        super().__init__(category)
        self.category = category
        self.status = status
        self.body = body
        self.codes = tuple(code for code in codes if code)
        # What is repeated where there is no body to look for words in.
        self.message = message
        self.in_stream = in_stream
        self.retry_after = retry_after


def openai_error(status: int, body: object, *, in_stream: bool = False, message: str = "") -> ProviderError:
    """Return an error of OpenAI or of a server that speaks like it; `status` 0: it came without one."""
    fields = error_fields(body)
    codes = (_text(fields.get("code")), _text(fields.get("type")))
    status = status or next(filter(None, map(_status_of_code, codes)), 0)
    words = _text(fields.get("message")) or (body if isinstance(body, str) else "")
    category = next((_OPENAI_CODES[code] for code in codes if code in _OPENAI_CODES), None)
    if category is None and any(phrase in words.lower() for phrase in _FULL_WORDS):
        category = "context_full"
    if category is None and any(phrase in code.lower() for code in codes for phrase in _OVERLOADED_WORDS):
        category = "unavailable"
    return ProviderError(
        category or by_status(status),
        status=status,
        body=None if message else body,
        codes=codes,
        message=message,
        in_stream=in_stream,
    )


_FULL_WORDS: Final = ("maximum context length", "reduce the length of the messages")
_OVERLOADED_WORDS: Final = ("overloaded", "over capacity")


def anthropic_error(status: int, body: object, *, in_stream: bool = False) -> ProviderError:
    """Return an error of Anthropic; in a stream its type tells the status."""
    fields = error_fields(body)
    kind, words = _text(fields.get("type")), _text(fields.get("message")).lower()
    status = status or _ANTHROPIC_STATUSES.get(kind, 0)
    category: ErrorCategory = by_status(_ANTHROPIC_STATUSES.get(kind, status)) if status else "unknown"
    if kind == "invalid_request_error" and "prompt is too long" in words:
        category = "context_full"
    elif kind == "invalid_request_error" and "credit balance is too low" in words:
        # The one refusal for want of money that has the status of an invalid request.
        category = "quota"
    return ProviderError(category, status=status, body=body, codes=(kind,), in_stream=in_stream)


def google_error(status: int, body: object, *, in_stream: bool = False) -> ProviderError:
    """Return an error of Gemini, whose bodies repeat the HTTP status as `code`."""
    fields = error_fields(body)
    code, name, words = fields.get("code"), _text(fields.get("status")), _text(fields.get("message")).lower()
    status = status or (code if isinstance(code, int) else 0)
    category = _GOOGLE_STATUSES.get(name) or by_status(status)
    if name == "INVALID_ARGUMENT" and ("input token count" in words or "number of tokens allowed" in words):
        category = "context_full"
    elif "API_KEY_INVALID" in _reasons(fields.get("details")):
        # A wrong key is an invalid argument to Gemini.
        category = "auth"
    return ProviderError(category, status=status, body=body, codes=(name,), in_stream=in_stream)


def by_status(status: int) -> ErrorCategory:
    """Return what a status stands for by itself."""
    return _BY_STATUS.get(status) or ("server" if 500 <= status < 600 else "unknown")


def error_fields(body: object) -> dict[str, object]:
    """Return the object that describes an error, wherever a provider puts it."""
    for _ in range(2):  # {"error": {…}}, in a list with some
        if isinstance(body, list) and body:
            body = body[0]
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            body = body["error"]
    return cast(dict[str, object], body) if isinstance(body, dict) else {}


def _status_of_code(code: str) -> int:
    """Return the status of a code; some gateways send the status itself as the code."""
    number = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else 0
    return _OPENAI_STATUSES.get(code, number if 400 <= number < 600 else 0)


def _reasons(details: object) -> list[object]:
    return [detail.get("reason") for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
