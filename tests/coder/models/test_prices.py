"""What a call costs, and the windows of the price list, whose figures are the package's."""

import pytest
from genai_prices import Usage, calc_price

from dragoman.coder.models.contract import TokenCounts
from dragoman.coder.models.descriptions import ModelDescription, Prices
from dragoman.coder.models.endpoints import Endpoint, Family, ProviderConfig
from dragoman.coder.models.prices import cost_of, has_price, window_of

USED = TokenCounts(input=10_000, output=1_000, cache_read=6_000, cache_write=2_000)


def place(family: Family, model: str, url: str = "", prices: Prices | None = None) -> Endpoint:
    config = ProviderConfig(every_model=ModelDescription(prices=prices))
    return Endpoint(family, "mine" if family == "compatible" else family, model, url, None, config)


def test_the_prices_of_the_configuration_count() -> None:
    every = Prices(input=10.0, output=100.0, cache_read=1.0, cache_write=20.0)
    # 2,000 fresh, 6,000 read, 2,000 written, 1,000 out
    assert cost_of(place("openai", "gpt-5", prices=every), USED) == pytest.approx(0.02 + 0.006 + 0.04 + 0.1)
    assert cost_of(place("ollama", "m", prices=Prices(10.0, 100.0)), USED) == pytest.approx(0.1 + 0.1)
    assert cost_of(place("compatible", "m", prices=Prices(0.0, 0.0)), USED) == 0.0


@pytest.mark.parametrize(
    ("family", "model"), [("openai", "gpt-5.6-sol"), ("anthropic", "claude-sonnet-5"), ("google", "gemini-3.8-flash")]
)
def test_a_call_costs_what_the_list_says_and_less_where_the_cache_was_read(family: Family, model: str) -> None:
    usage = Usage(input_tokens=10_000, output_tokens=1_000, cache_read_tokens=6_000, cache_write_tokens=2_000)
    cost = cost_of(place(family, model), USED)
    assert cost == float(calc_price(usage, model, provider_id=family).total_price)
    fresh = cost_of(place(family, model), TokenCounts(10_000, 1_000))
    read = cost_of(place(family, model), TokenCounts(10_000, 1_000, cache_read=6_000))
    assert read is not None and fresh is not None and 0 < read < fresh


def test_a_provider_with_a_name_of_the_users_own_is_known_by_its_address() -> None:
    assert cost_of(place("compatible", "deepseek-chat", "https://api.deepseek.com/v1"), USED)
    assert cost_of(place("compatible", "deepseek-chat", "https://deepseek.example.org/v1"), USED) is None


def test_the_model_that_has_answered_decides_where_it_is_known() -> None:
    asked = place("openai", "gpt-5-mini")
    assert cost_of(asked, USED, "gpt-5") == cost_of(place("openai", "gpt-5"), USED) != cost_of(asked, USED)
    assert cost_of(asked, USED, "gpt-99") == cost_of(asked, USED)


@pytest.mark.parametrize(
    ("family", "model", "used"),
    [
        ("openai", "gpt-99", USED),
        ("anthropic", "who-knows", USED),
        ("ollama", "gpt-5", USED),
        ("compatible", "gpt-5", USED),
    ],
)
def test_a_cost_that_is_not_known_is_none(family: Family, model: str, used: TokenCounts) -> None:
    assert cost_of(place(family, model, "http://127.0.0.1:1/v1"), used) is None


def test_counts_that_contradict_each_other_cost_as_much_as_if_nothing_was_saved() -> None:
    gpt = place("openai", "gpt-5")
    assert cost_of(gpt, TokenCounts(1, 1, cache_read=2)) == cost_of(gpt, TokenCounts(1, 1))


def test_it_is_known_which_models_have_a_price() -> None:
    known = [("openai", "gpt-5"), ("openai", "gpt-99"), ("ollama", "gpt-5"), ("compatible", "gpt-5")]
    assert [has_price(place(family, model, "http://127.0.0.1:1/v1")) for family, model in known] == [  # type: ignore[arg-type]
        *(True, False, False, False)
    ]


def test_the_list_knows_windows() -> None:
    assert window_of(place("openai", "gpt-5-pro")) == 400_000
    assert window_of(place("anthropic", "claude-opus-4-8")) == 1_000_000
    assert window_of(place("compatible", "openai/gpt-oss-120b", "https://api.groq.com/openai/v1")) == 131_072
    for stranger in (
        place("openai", "gpt-99"),
        place("ollama", "gpt-5"),
        place("compatible", "gpt-5", "http://box/v1"),
    ):
        assert window_of(stranger) is None
