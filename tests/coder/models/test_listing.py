"""What a provider lists: asked once, bounded, without what is no model to talk with, and kept for a day."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.credentials import Secret
from dragoman.coder.models import listing
from dragoman.coder.models.catalog import FRESH_SECONDS, ModelCatalog
from dragoman.coder.models.descriptions import NOTHING, ListedModel, ModelDescription
from dragoman.coder.models.endpoints import Endpoint, Family
from dragoman.coder.models.listing import ListingFailed, chat_models, list_models
from tests.coder.models.asking import PATHS
from tests.support.provider_server import KEY, ProviderServer, provider_server

FAMILIES: tuple[Family, ...] = ("openai", "anthropic", "google", "ollama", "compatible", "mistral")
each_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture
def up() -> Iterator[ProviderServer]:
    with provider_server() as server:
        yield server


def place(up: ProviderServer, family: Family = "openai", key: str = KEY) -> Endpoint:
    provider = "mine" if family == "compatible" else family
    return Endpoint(family, provider, "", up.url + (PATHS[family] if family != "mistral" else "/v1"), Secret(key))


def names_of(models: list[ListedModel]) -> list[str]:
    return [model.name for model in models]


@each_family
async def test_a_provider_is_asked_in_its_own_way(up: ProviderServer, family: Family) -> None:
    up.lists("model-b", "model-a", "text-embedding-3-small")
    assert names_of(await list_models(place(up, family))) == ["model-b", "model-a"]
    (heard,) = up.heard
    assert (heard.method, heard.path) == ("GET", "/v1/models")


@pytest.mark.parametrize("family", ["anthropic", "google"])
async def test_pages_are_read_to_a_bound(up: ProviderServer, family: Family) -> None:
    up.page = 2
    up.lists(*(f"m{number}" for number in range(5)))
    assert names_of(await list_models(place(up, family))) == ["m0", "m1", "m2", "m3", "m4"]
    up.page, up.heard = 1, []
    up.lists(*(f"m{number}" for number in range(500)))
    assert names_of(await list_models(place(up, family))) == ["m0", "m1", "m2", "m3", "m4"]
    assert len(up.heard) == 5


async def test_a_picker_gets_no_more_than_it_can_show(up: ProviderServer) -> None:
    up.lists(*(f"m{number}" for number in range(listing.MOST_LISTED + 1)))
    assert names_of(await list_models(place(up))) == [f"m{number}" for number in range(listing.MOST_LISTED)]


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        (
            [{"id": "old", "created": 1}, {"id": "new", "created": 9}, {"id": "mid", "created": 5}],
            ["new", "mid", "old"],
        ),
        ([{"id": "a", "created_at": "2025-01-01"}, {"id": "b", "created_at": "2026-01-01"}], ["b", "a"]),
        ([{"id": "a", "created": 1}, {"id": "b"}], ["a", "b"]),
        (
            [{"id": "a"}, {"id": "a"}, {"id": 7}, {}, {"id": ""}, {"id": "../x"}, {"id": "a b"}, {"id": "x" * 300}],
            ["a"],
        ),
        ([{"id": "gpt-4o"}, {"id": "gpt-4o-2024-08-06"}, {"id": "claude-x-20250101"}], ["gpt-4o", "claude-x-20250101"]),
        ([{"id": "gpt-4o-audio-preview"}, {"id": "gpt-image-1"}, {"id": "whisper-1"}, {"id": "tts-1-hd"}], []),
        ([{"id": "omni-moderation-latest"}, {"id": "dall-e-3"}, {"id": "nomic-embed-text:v1.5"}, {"id": "sora-2"}], []),
        ([{"id": "gpt-realtime"}, {"id": "gpt-4o-transcribe"}, {"id": "davinci-002"}, {"id": "veo-3.0"}], []),
        ([{"id": "olive-7b"}, {"id": "imagenet-chat"}, {"id": "o3"}], ["olive-7b", "imagenet-chat", "o3"]),
        ([{"name": "models/g", "supportedGenerationMethods": ["generateContent"]}], ["g"]),
        ([{"name": "models/g", "supportedGenerationMethods": ["embedContent"]}], []),
        ([{"id": "p", "architecture": {"output_modalities": ["image"]}}], []),
        ([{"id": "q", "architecture": {"output_modalities": ["text", "image"]}}], ["q"]),
        ([{"id": "r", "type": "embedding"}, {"id": "s", "capabilities": {"completion_chat": False}}], []),
    ],
)
def test_what_is_no_model_to_talk_with_is_not_listed(entries: list[Any], names: list[str]) -> None:
    assert names_of(chat_models(entries)) == names


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {
                "max_input_tokens": 200_000,
                "capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}},
            },
            (200_000, True, False),
        ),
        ({"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}, (1_048_576, None, None)),
        ({"context_length": 131_072, "architecture": {"input_modalities": ["text", "image"]}}, (131_072, True, False)),
        ({"context_length": None, "architecture": {"input_modalities": ["text", "file"]}}, (None, False, True)),
        ({"max_model_len": 32_768, "capabilities": {}}, (32_768, None, None)),
        ({"context_window": 8_192, "capabilities": {"vision": False}}, (8_192, False, None)),
        ({"max_context_length": 40_960, "capabilities": {"vision": True}}, (40_960, True, None)),
        ({"context_length": -1}, (None, None, None)),
        ({"context_length": True}, (None, None, None)),
        ({"context_length": 10**12}, (None, None, None)),
        ({"context_length": "8k", "architecture": [], "capabilities": {"vision": "yes"}}, (None, None, None)),
    ],
)
def test_what_a_list_says_of_a_model_is_read(
    entry: dict[str, Any], said: tuple[int | None, bool | None, bool | None]
) -> None:
    assert chat_models([{"id": "m", **entry}]) == [ListedModel("m", *said)]


async def test_a_list_with_nothing_around_it_is_read(up: ProviderServer) -> None:
    up.raw = b'[{"id": "one", "context_length": 8192}, {"id": "two", "type": "embedding"}]'
    assert await list_models(place(up)) == [ListedModel("one", 8192)]


@pytest.mark.parametrize("family", ["azure", "bedrock", "vertex"])
async def test_who_has_no_list_is_not_asked(up: ProviderServer, family: Family) -> None:
    with pytest.raises(ListingFailed, match=f"{family} has no list of models that can be asked for"):
        await list_models(Endpoint(family, family, "", up.url, Secret(KEY)))
    assert up.heard == []


@pytest.mark.parametrize(
    ("status", "raw", "words"),
    [
        (401, None, "does not accept the key"),
        (404, None, "has no list of models: status 404"),
        (302, None, "status 302"),
        (200, b"<html>", "something else than a list"),
        (200, b"[]", "something else than a list"),
        (200, b'{"data": 7}', "something else than a list"),
        (200, b"[" * 100_000, "something else than a list"),
        (200, b" " * (5 << 20), "too long"),
    ],
)
async def test_a_list_that_cannot_be_had_is_said_without_the_key(
    up: ProviderServer, status: int, raw: bytes | None, words: str
) -> None:
    up.status, up.raw = status, raw
    with pytest.raises(ListingFailed) as caught:
        await list_models(place(up))
    assert words in str(caught.value) and up.host in str(caught.value)
    assert KEY not in str(caught.value)


async def test_a_silent_provider_is_waited_for_so_long_and_no_longer(up: ProviderServer) -> None:
    up.hold.clear()
    with pytest.raises(ListingFailed, match="did not answer in time"):
        await list_models(place(up), seconds=0.2)
    nowhere = Endpoint("openai", "openai", "", "http://127.0.0.1:1/v1", Secret(KEY))
    with pytest.raises(ListingFailed, match=r"The connection to openai \(127.0.0.1:1\) failed"):
        await list_models(nowhere)


# -- the catalog -----------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_list_is_kept_for_a_day_in_a_private_file_without_the_key(up: ProviderServer, tmp_path: Path) -> None:
    clock = Clock()
    up.lists("one", "two")
    await ModelCatalog(str(tmp_path), clock).refresh(place(up))
    (file,) = (tmp_path / "models").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY not in file.read_text() and file.name.startswith("openai-")
    again = ModelCatalog(str(tmp_path), clock)
    assert (again.names(place(up)), again.is_due(place(up))) == (("one", "two"), False)
    await again.refresh(place(up))
    assert len(up.heard) == 1
    clock.now += FRESH_SECONDS
    up.lists("three")
    assert (again.names(place(up)), again.is_due(place(up))) == (("one", "two"), True)
    await again.refresh(place(up))
    assert (again.names(place(up)), len(up.heard)) == (("three",), 2)


async def test_what_was_listed_of_a_model_is_known_after_a_restart(up: ProviderServer, tmp_path: Path) -> None:
    up.lists("one", max_model_len=32_768)
    await ModelCatalog(str(tmp_path)).refresh(place(up))
    again = ModelCatalog(str(tmp_path))
    assert again.description(place(up)._replace(model="one")) == ModelDescription(window=32_768)
    assert again.description(place(up)._replace(model="two")) == NOTHING


async def test_each_address_has_a_list_of_its_own(up: ProviderServer, tmp_path: Path) -> None:
    up.lists("one")
    catalog = ModelCatalog(str(tmp_path))
    await catalog.refresh(place(up))
    elsewhere = place(up)._replace(base_url="http://127.0.0.1:1/v1")
    assert (catalog.names(elsewhere), catalog.is_due(elsewhere)) == ((), True)


async def test_many_calls_at_once_make_one_request(up: ProviderServer) -> None:
    up.lists("one")
    catalog = ModelCatalog("")
    await asyncio.gather(*(catalog.refresh(place(up)) for _ in range(10)))
    assert (catalog.names(place(up)), len(up.heard)) == (("one",), 1)


async def test_a_failure_is_quiet_keeps_the_old_list_and_is_not_repeated_at_once(
    up: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dragoman")
    clock = Clock()
    catalog = ModelCatalog("", clock)
    up.lists("one")
    await catalog.refresh(place(up))
    clock.now += FRESH_SECONDS
    up.status = 500
    await catalog.refresh(place(up))
    await catalog.refresh(place(up))
    assert (catalog.names(place(up)), len(up.heard)) == (("one",), 2)
    assert "no list of models of openai" in caplog.text and KEY not in caplog.text
    clock.now += 3600
    assert catalog.is_due(place(up))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[[7], 3]", b"x" * 100_000, b'[["a"], 1000000.0]'),
        *(b'[[["../x"]], 3.0]', b'[[["a"]], 9e99]', b'[[["a", -1]], 1000000.0]'),
    ],
)
async def test_a_file_that_is_no_list_counts_as_none(up: ProviderServer, tmp_path: Path, content: bytes) -> None:
    up.lists("one")
    clock = Clock()
    await ModelCatalog(str(tmp_path), clock).refresh(place(up))
    (file,) = (tmp_path / "models").iterdir()
    file.write_bytes(content)
    catalog = ModelCatalog(str(tmp_path), clock)
    assert catalog.is_due(place(up))
    await catalog.refresh(place(up))
    assert json.loads(file.read_bytes())[0] == [["one", None, None, None]]
