"""The table of known providers: each has its own address, key and default, and a key goes nowhere else."""

from collections.abc import Mapping

import pytest
from genai_prices.data_snapshot import get_snapshot

from dragoman.coder.credentials import KEY_VARIABLES, Credentials, Secret
from dragoman.coder.models.contract import TokenCounts
from dragoman.coder.models.endpoints import Endpoint, find_endpoint
from dragoman.coder.models.factory import ModelUnavailable, find_default_model, usable_providers
from dragoman.coder.models.known_providers import KNOWN_PROVIDERS
from dragoman.coder.models.names import ModelName, parse
from dragoman.coder.models.prices import cost_of
from dragoman.host.environment import is_secret

KEY = "sk-canary-0123456789"
KEYED = [name for name, known in KNOWN_PROVIDERS.items() if known.key_variable]
PLACES = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com", "AWS_REGION": "eu-west-1"}


def found(name: str, environment: Mapping[str, str] = {}, **tables: object) -> Endpoint:
    return find_endpoint(
        parse(name, configured=tables), environment=environment, config={"providers": tables}, credentials=Credentials()
    )


@pytest.mark.parametrize("provider", KEYED)
def test_a_key_goes_to_its_own_provider_and_no_other(provider: str) -> None:
    environment = {**PLACES, **{variable: f"key-of-{name}" for name, variable in KEY_VARIABLES.items()}}
    place = found(f"{provider}/some-model", environment)
    assert place.key == Secret(f"key-of-{provider}")
    known = KNOWN_PROVIDERS[provider]
    assert place.base_url.startswith("https://")
    assert not known.url or (place.base_url, place.source) == (known.url, "default")
    assert (place.family, place.provider, place.model) == (known.family, provider, "some-model")


def test_no_two_providers_share_a_variable_or_an_address() -> None:
    variables = [known.key_variable for known in KNOWN_PROVIDERS.values() if known.key_variable]
    urls = [known.url for known in KNOWN_PROVIDERS.values() if known.url]
    assert len(set(variables)) == len(variables)
    assert len(set(urls)) == len(urls)


@pytest.mark.parametrize("variable", KEY_VARIABLES.values())
def test_no_child_sees_the_variable_of_a_key(variable: str) -> None:
    assert is_secret(variable, "0123456789abcdef")


@pytest.mark.parametrize("provider", [name for name, known in KNOWN_PROVIDERS.items() if known.prices and known.model])
def test_a_default_model_is_one_that_the_price_list_knows(provider: str) -> None:
    known = KNOWN_PROVIDERS[provider]
    place = Endpoint(known.family, provider, known.model, known.url, None)
    assert cost_of(place, TokenCounts(1000, 100)) is not None


def test_the_names_in_the_price_list_are_there() -> None:
    ids = {provider.id for provider in get_snapshot().providers}
    assert {known.prices for known in KNOWN_PROVIDERS.values() if known.prices} <= ids


def usable(environment: Mapping[str, str] = {}, stored: Mapping[str, Secret] = {}, **tables: object) -> list[str]:
    return usable_providers(environment, {"providers": tables}, Credentials(stored))


def test_a_key_in_the_environment_makes_its_provider_usable_and_the_default() -> None:
    environment = {"GROQ_API_KEY": KEY}
    assert usable(environment) == ["groq"]
    assert find_default_model(environment, {}, Credentials()) == ModelName("groq", "openai/gpt-oss-120b")


def test_a_key_that_is_set_for_other_work_is_used_where_its_provider_is_named() -> None:
    environment = {"HF_TOKEN": KEY, "AWS_BEARER_TOKEN_BEDROCK": KEY, **PLACES}
    assert usable(environment) == []
    assert usable(environment, huggingface={}, bedrock={"region": "eu-west-1"}) == ["huggingface", "bedrock"]
    assert usable({}, {"huggingface": Secret(KEY)}) == ["huggingface"]
    assert found("huggingface/openai/gpt-oss-120b", environment).key == Secret(KEY)


def test_azure_needs_to_be_placed() -> None:
    environment = {"AZURE_OPENAI_API_KEY": KEY}
    assert usable(environment) == []
    with pytest.raises(ModelUnavailable, match="needs a base_url, or set AZURE_OPENAI_ENDPOINT"):
        found("azure/gpt-5", environment)
    assert usable({**environment, **PLACES}) == ["azure"]
    assert found("azure/gpt-5", {**environment, **PLACES}).source == "AZURE_OPENAI_ENDPOINT"


@pytest.mark.parametrize(
    ("name", "environment", "table", "url"),
    [
        ("bedrock/m", {"AWS_REGION": "eu-west-1"}, {}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("bedrock/m", PLACES, {"region": "us-east-2"}, "https://bedrock-runtime.us-east-2.amazonaws.com"),
        ("vertex/m", {}, {}, "https://aiplatform.googleapis.com"),
        ("vertex/m", {"GOOGLE_CLOUD_LOCATION": "europe-west4"}, {}, "https://europe-west4-aiplatform.googleapis.com"),
    ],
)
def test_a_cloud_is_in_the_region_that_is_set(
    name: str, environment: Mapping[str, str], table: Mapping[str, str], url: str
) -> None:
    assert found(name, environment, **{name.partition("/")[0]: table}).base_url == url


@pytest.mark.parametrize("region", ["evil.example.org/", "eu west", "x" * 90, "a@b"])
def test_a_region_does_not_lead_elsewhere(region: str) -> None:
    with pytest.raises(ModelUnavailable, match=r"no region|cannot be the region"):
        found("bedrock/m", {"AWS_REGION": region})
    with pytest.raises(ModelUnavailable, match="cannot be the region"):
        found("bedrock/m", {}, bedrock={"region": region})


def test_bedrock_without_a_region_says_where_to_write_it() -> None:
    with pytest.raises(ModelUnavailable, match=r"needs a region: write region in \[providers.bedrock\], or set AWS_"):
        found("bedrock/m")


# -- what the user says of a provider --------------------------------------------------------------------------------


def test_a_provider_of_the_users_own_is_spoken_to_as_its_kind_says() -> None:
    place = found("work/claude-sonnet-5", {"K": KEY}, work={"kind": "anthropic", "api_key_env": "K"})
    assert (place.family, place.base_url) == ("anthropic", "https://api.anthropic.com")
    place = found("gate/m", {}, gate={"kind": "openai-responses", "base_url": "https://gate.example.org/v1"})
    assert (place.family, place.key) == ("openai", None)
    with pytest.raises(ModelUnavailable, match=r"unknown kind soap; there are openai-chat, openai-responses,"):
        found("gate/m", {}, gate={"kind": "soap", "base_url": "https://x"})
    with pytest.raises(ModelUnavailable, match="needs a base_url"):
        found("gate/m", {}, gate={"kind": "openai-chat"})


def test_headers_are_filled_in_and_shown_to_no_one() -> None:
    table = {"base_url": "https://gate.example.org/v1", "headers": {"X-Team": "tools", "Authorization": "Bearer $T"}}
    place = found("gate/m", {"T": KEY}, gate=table)
    assert place.sent_headers == {"x-team": "tools", "authorization": f"Bearer {KEY}"}
    assert KEY not in repr(place) and KEY not in str(place.headers)
    assert Secret(f"Bearer {KEY}") in place.secrets


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"X-A": "$MISSING"}, "the header x-a needs the variable MISSING, which is not set."),
        ({"X-A": "a\r\nEvil: 1"}, "has a value that no header can have"),
        ({"X A": "a"}, "must be a name and a text"),
        ({"X-A": 7}, "must be a name and a text"),
        ({"Host": "evil.example.org"}, "the header Host belongs to the connection and cannot be set."),
        ({"content-type": "text/plain"}, "belongs to the connection"),
        ({f"x-{number}": "a" for number in range(33)}, "there are 33 headers, and 32 at most can be sent."),
        ("X-A: a", "headers must be a table such as"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(headers: object, sentence: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        found("gate/m", {}, gate={"base_url": "https://x/v1", "headers": headers})
    assert sentence in str(caught.value)


def test_a_server_of_ones_own_under_a_known_name_needs_no_key() -> None:
    assert found("groq/m", {}, groq={"base_url": "http://localhost:1234/v1"}).key is None
    with pytest.raises(ModelUnavailable, match=r"groq needs a key\. Set GROQ_API_KEY, or run: dragoman login groq"):
        found("groq/m")


def test_a_size_behind_a_colon_is_a_name_where_a_server_of_many_makers_is_current() -> None:
    local, lab = ModelName("ollama", "llama3.2"), ModelName("lab", "m")
    assert parse("mistral:7b", current=local) == ModelName("ollama", "mistral:7b")
    assert parse("mistral:7b", current=lab) == ModelName("lab", "mistral:7b")
    assert parse("mistral:codestral") == ModelName("mistral", "codestral")
    assert parse("mistral:codestral", current=ModelName("openai", "gpt-5")) == ModelName("mistral", "codestral")
