"""The contract of a wire form: a request of ours becomes a body, and the events of the stream become pieces. Pure.

A `WireForm` belongs to one model at one address and knows nothing of HTTP but the path and its headers. A
`StreamDecoder` belongs to one response. What a provider sends and cannot be read raises `msgspec.DecodeError`; what it
sends instead of a response, `ProviderError`.
"""

from typing import Final, Literal, NamedTuple, Protocol

from dragoman.coder.models.contract import ModelRequest, SearchReport, TextDelta, ThoughtDelta, TokenCounts
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.wires.errors import ProviderError
from dragoman.coder.models.wires.stored import StoredPart

# Why a response has ended: done, cut off at its bound, refused, or failed at the provider.
StopReason = Literal["", "max_tokens", "refusal", "error"]
Delta = TextDelta | ThoughtDelta
# Of one request to search the web: how often the provider may search for it, and how long its answer may be.
SEARCHES: Final = 3
SEARCH_TOKENS: Final = 8_192


class HttpRequest(NamedTuple):
    """What is posted. `path` stands behind the provider's address."""

    path: str
    headers: dict[str, str]
    body: bytes


class FullResponse(NamedTuple):
    """What is known of a response at its end."""

    parts: list[StoredPart]
    stop: StopReason
    tokens: TokenCounts
    # As the provider names the model that has answered; empty: it names none.
    model: str = ""
    # What some prices depend on.
    service_tier: str = ""
    # Of a request to search the web.
    search: SearchReport = SearchReport()


class StreamDecoder(Protocol):
    """Reads the events of one response."""

    # Whether the provider has said its last: what still comes is the end of the stream alone.
    is_complete: bool

    def decode(self, data: bytes) -> list[Delta] | None:
        """Return what one event adds to be shown; None: the event is a sign of life and no more."""

    def end(self) -> FullResponse:
        """Return the response, or raise `BrokenOff`."""


class WireForm(Protocol):
    """How one model is spoken to."""

    def encode(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is posted."""

    def decoder(self) -> StreamDecoder:
        """Return a decoder for one response."""

    def error(self, status: int, body: object) -> ProviderError:
        """Return what an HTTP status with this body, JSON or a text, stands for."""

    def adapt(self, error: ProviderError) -> bool:
        """Leave out, from now on, what the provider has refused; False: nothing of it can be left out."""


def bearer(endpoint: Endpoint) -> dict[str, str]:
    """Return the header with the key, as most providers want it. Some servers want a key and look at none."""
    return {"authorization": f"Bearer {endpoint.key.reveal() if endpoint.key else 'none'}"}
