"""What a call costs and how long a model's window is, as the list of the package `genai-prices` says.

Imports that package, which takes some 60 ms beside the HTTP library, so it is imported with the first call, off the
loop. Nothing is asked over the network: the list is the one that was installed. What is not in it is unknown, and no
guess: `None`.
"""

from collections.abc import Mapping
from typing import Any, Final

from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot

from dragoman.coder.models.contract import TokenCounts
from dragoman.coder.models.descriptions import Prices
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.known_providers import KNOWN_PROVIDERS

# Read here, and not by the first question, which may come on the loop.
_LIST: Final = get_snapshot()
_MILLION: Final = 1_000_000
# Prices can depend on the length of a call; this is a short one.
_THOUSAND_IN: Final = Usage(input_tokens=1000, output_tokens=0)
_THOUSAND_OUT: Final = Usage(input_tokens=0, output_tokens=1000)


def window_of(endpoint: Endpoint) -> int | None:
    """Return the model's window in tokens; None: unknown."""
    if endpoint.family == "ollama":
        return None
    try:
        return _LIST.find_provider_model(endpoint.model, None, **_place(endpoint))[1].context_window
    except LookupError:
        return None


def has_price(endpoint: Endpoint) -> bool:
    """Return whether it is known what a call costs."""
    one = Usage(input_tokens=1, output_tokens=1)
    return endpoint.description.prices is not None or _listed_cost(endpoint, one, "", None) is not None


def prices_of(endpoint: Endpoint) -> Prices | None:
    """Return what a million tokens cost: by config.toml, else what the list says of a short call; None: unknown."""
    if endpoint.description.prices is not None:
        return endpoint.description.prices
    costs = [_listed_cost(endpoint, usage, "", None) for usage in (_THOUSAND_IN, _THOUSAND_OUT)]
    given, made = (None if cost is None else round(cost * 1000, 6) for cost in costs)
    return None if given is None or made is None else Prices(given, made)


def cost_of(
    endpoint: Endpoint,
    used: TokenCounts,
    model: str = "",
    details: Mapping[str, Any] | None = None,
    *,
    searches: int = 0,
) -> float | None:
    """Return what a call has cost in dollars; None: unknown. The prices of config.toml come before the list's.

    `model` is the one that has answered, as far as the provider names it. `details` is what else the answer says of
    itself: some prices depend on its service tier. `searches` of the web are priced by the list alone.
    """
    described = endpoint.description.prices
    if described is not None:
        listed = _listed_cost(endpoint, Usage(web_searches=searches), model, details) if searches else None
        return _sum(described, used) + (listed or 0.0)
    usage = Usage(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        web_searches=searches,
    )
    return _listed_cost(endpoint, usage, model, details)


def _listed_cost(endpoint: Endpoint, usage: Usage, model: str, details: Mapping[str, Any] | None) -> float | None:
    if endpoint.family == "ollama":
        return None
    # Counts that contradict each other (more read from the cache than was sent) have no price in the list. What nothing
    # was saved on costs the most, so a spend cap holds whatever a server reports.
    plain = Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, web_searches=usage.web_searches)
    for name in filter(None, (model, endpoint.model)):
        for counts in (usage, plain):
            try:
                return float(calc_price(counts, name, **_place(endpoint), price_context=details).total_price)
            except LookupError:  # not in the list
                break
            except ValueError:
                continue
    return None


def _place(endpoint: Endpoint) -> dict[str, Any]:
    """Return where the list is to look: by name, or by address for a provider that has no name in it."""
    known = KNOWN_PROVIDERS.get(endpoint.provider)
    if known is not None and known.prices:
        return {"provider_id": known.prices, "provider_api_url": None}
    return {"provider_id": None, "provider_api_url": endpoint.base_url}


def _sum(prices: Prices, used: TokenCounts) -> float:
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    fresh = max(used.input - used.cache_read - used.cache_write, 0)
    dollars = fresh * prices.input + used.cache_read * read + used.cache_write * write + used.output * prices.output
    return dollars / _MILLION
