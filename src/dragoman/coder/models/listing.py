"""Ask a provider which models it has: one request, or a few where it answers in pages.

Promise: the key goes to the provider's address and nowhere else (no redirect is followed), an answer is bounded in
time, bytes, pages and names, and `ListingFailed` is all that is raised; its text has no key in it. Names that are no
models to talk with (embeddings, speech, pictures) are left out, as far as the provider or the name itself says so.

Imports the HTTP library, so it is imported off the loop, and only when a list is wanted.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec

from dragoman.background import call_in_background
from dragoman.coder.models.descriptions import MOST_TOKENS, ListedModel
from dragoman.coder.models.endpoints import DEFAULT_SOURCE, Endpoint, Family
from dragoman.coder.models.known_providers import KNOWN_PROVIDERS
from dragoman.coder.models.names import is_model_name
from dragoman.host.tls import verify_for
from dragoman.limits import MIB

# A list is for a picker, which is not worth a longer wait.
SECONDS: Final = 10.0
# All pages together. The longest real lists have about half of one.
_BYTES: Final = 4 * MIB
_PAGES: Final = 5
# Of one provider; any other name can still be typed. The longest real list has some 900.
MOST_LISTED: Final = 2_000
# Where a name is given to a deployment of the user's own, or no list can be had with a key alone.
_WITHOUT_LIST: Final[dict[Family, str]] = {
    "azure": "your deployments are named by you",
    "bedrock": "AWS lists them in its console",
    "vertex": "Google lists them in its documentation",
}
_HERE: Final = ("localhost", "127.0.0.1", "::1")
_ANTHROPIC_VERSION: Final = "2023-06-01"
# Parts of names, between signs, of models that are asked for something else than words.
_NO_CHAT: Final = re.compile(
    r"(?i)(^|[-_./:])(embed\w*|embedding\w*|whisper|tts|dall-e|images?|imagen|moderation|transcribe|rerank\w*|realtime"
    r"|audio|sora|veo|lyria|speech|live|davinci|babbage|clip|bge|minilm)($|[-_./:0-9])"
)
# `type` of a model, where a provider has such a field.
_OTHER_TYPES: Final = frozenset(
    {"embedding", "embeddings", "image", "audio", "video", "moderation", "rerank", "transcribe"}
)
# What providers call the tokens that a model can be given: Anthropic; Google; OpenRouter, Together and others; vLLM;
# Groq; Mistral.
_WINDOW_KEYS: Final = (
    *("max_input_tokens", "inputTokenLimit", "context_length", "max_model_len", "context_window"),
    "max_context_length",
)
_FILES: Final = ("file", "pdf_input")
# A snapshot of a model that is also listed without its date.
_DATED: Final = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")

Json = dict[str, Any]


# Which organization a key is of, as some providers tell with every answer.
_ACCOUNT_HEADERS: Final = ("openai-organization", "anthropic-organization-id")
_ACCOUNT_CHARACTERS: Final = 100


class ListingFailed(Exception):
    """The list cannot be had; the text says why, and is fit for the user."""


class KeyRefused(ListingFailed):
    """The provider has answered, and does not accept the key."""


class ModelListing(NamedTuple):
    """What a provider has answered: its models, and whose account the key is of where it tells that."""

    models: list[ListedModel]
    account: str = ""


async def list_models(endpoint: Endpoint, seconds: float = SECONDS) -> list[ListedModel]:
    """Return the provider's models, the newest first where their age is known."""
    return (await ask_for_models(endpoint, seconds)).models


async def ask_for_models(endpoint: Endpoint, seconds: float = SECONDS) -> ModelListing:
    """Ask the provider for its models. `KeyRefused` where the key is not one of it, else `ListingFailed`."""
    account: list[str] = []
    if endpoint.family in _WITHOUT_LIST:
        raise ListingFailed(
            f"{endpoint.provider} has no list of models that can be asked for: {_WITHOUT_LIST[endpoint.family]}"
        )
    try:
        async with asyncio.timeout(seconds):
            # Reading the list of authorities takes tens of milliseconds.
            client = await call_in_background(_client, endpoint, seconds)
            async with client:
                entries = await _entries(client, endpoint, account)
    except TimeoutError:
        raise ListingFailed(f"{endpoint.provider} ({endpoint.place}) did not answer in time") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        # Not its text: it may have the request in it, and the request has the key.
        kind = type(error).__name__
        raise ListingFailed(f"The connection to {endpoint.provider} ({endpoint.place}) failed: {kind}") from None
    return ModelListing(chat_models(entries), account[0] if account else "")


def chat_models(entries: list[Json]) -> list[ListedModel]:
    """Return the models to show in a picker, of the entries of a provider's list."""
    usable = [entry for entry in entries if is_model_name(_name(entry)) and _is_chat(entry)]
    if all(isinstance(_age(entry), int) for entry in usable) or all(isinstance(_age(entry), str) for entry in usable):
        usable.sort(key=_age, reverse=True)
    models: dict[str, Json] = {}
    for entry in usable:
        models.setdefault(_name(entry), entry)
    plain = [name for name in models if _DATED.sub("", name) == name or _DATED.sub("", name) not in models]
    return [_listed(name, models[name]) for name in plain[:MOST_LISTED]]


def _listed(name: str, entry: Json) -> ListedModel:
    return ListedModel(name, _window(entry), _takes(entry, "image", "image_input", "vision"), _takes(entry, *_FILES))


async def _entries(client: httpx2.AsyncClient, endpoint: Endpoint, account: list[str]) -> list[Json]:
    """Return all entries of all pages, as far as the bounds go; what tells the account is added to `account`."""
    path, query, headers = _request(endpoint)
    entries: list[Json] = []
    left = _BYTES
    for _ in range(_PAGES):
        body = await _page(client, endpoint, path, query, headers, left, account)
        left -= len(body)
        page = _decode(body, endpoint)
        found = page.get("data", page.get("models"))
        if not isinstance(found, list):
            raise ListingFailed(f"{endpoint.provider} ({endpoint.place}) sent something else than a list of models")
        entries += [entry for entry in found if isinstance(entry, dict)]
        following = _following(page, endpoint)
        if following is None:
            break
        query = {**query, **following}
    return entries


def _request(endpoint: Endpoint) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return URL, query and headers of the first page."""
    key, base, own = endpoint.key.reveal() if endpoint.key else "", endpoint.base_url, endpoint.sent_headers
    if endpoint.family == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}
        return f"{base}/v1/models", {"limit": "1000"}, headers | own
    if endpoint.family == "google":
        # The version that the SDK talks to.
        return f"{base}/v1/models", {"pageSize": "1000"}, {"x-goog-api-key": key} | own
    known = KNOWN_PROVIDERS.get(endpoint.provider)
    moved = endpoint.source != DEFAULT_SOURCE
    url = known.list_url if known and known.list_url and not moved else f"{base}/models"
    return url, {}, ({"authorization": f"Bearer {key}"} if key else {}) | own


def _following(page: Json, endpoint: Endpoint) -> dict[str, str] | None:
    """Return the query that asks for the next page; None: there is none."""
    if endpoint.family == "google":
        token = page.get("nextPageToken")
        return {"pageToken": token} if isinstance(token, str) and token else None
    last = page.get("last_id")
    return {"after_id": last} if page.get("has_more") is True and isinstance(last, str) and last else None


async def _page(
    client: httpx2.AsyncClient,
    endpoint: Endpoint,
    url: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    most: int,
    account: list[str],
) -> bytes:
    async with client.stream("GET", url, params=dict(query) or None, headers=dict(headers)) as response:
        place = f"{endpoint.provider} ({endpoint.place})"
        if response.status_code in (401, 403):
            raise KeyRefused(f"{place} does not accept the key")
        if response.status_code != 200:
            raise ListingFailed(f"{place} has no list of models: status {response.status_code}")
        # A few compressed bytes can be gigabytes, and we asked for none.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ListingFailed(f"{place} sent an answer that cannot be read")
        account += [
            response.headers[name][:_ACCOUNT_CHARACTERS] for name in _ACCOUNT_HEADERS if name in response.headers
        ]
        body = bytearray()
        async for data in response.aiter_raw():
            body += data
            if len(body) > most:
                raise ListingFailed(f"The list of models of {place} is too long")
        return bytes(body)


def _decode(body: bytes, endpoint: Endpoint) -> Json:
    try:
        page = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        page = None
    if isinstance(page, list) and page:  # Together's has nothing around it
        return {"data": page}
    if not isinstance(page, dict):
        raise ListingFailed(f"{endpoint.provider} ({endpoint.place}) sent something else than a list of models")
    return page


def _name(entry: Json) -> str:
    """Return the name of a model; Google puts it into another field, with a folder in front."""
    name = entry.get("id", entry.get("name"))
    return name.removeprefix("models/") if isinstance(name, str) else ""


def _age(entry: Json) -> Any:
    """Return when it was made: a number at OpenAI, a date that sorts as text at Anthropic, None at others."""
    return entry.get("created", entry.get("created_at"))


def _window(entry: Json) -> int | None:
    """Return the model's window in tokens; many lists do not say it."""
    sizes = [entry.get(key) for key in _WINDOW_KEYS]
    return next((size for size in sizes if type(size) is int and 0 < size <= MOST_TOKENS), None)


def _takes(entry: Json, modality: str, *capabilities: str) -> bool | None:
    """Return whether it takes images, or documents; OpenRouter, Anthropic and Mistral say so, each in its own way."""
    architecture, said = entry.get("architecture"), entry.get("capabilities")
    inputs = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    if isinstance(inputs, list):
        return modality in inputs
    known: Json = said if isinstance(said, dict) else {}
    for name in capabilities:
        found = known.get(name)
        found = found.get("supported") if isinstance(found, dict) else found
        if isinstance(found, bool):
            return found
    return None


def _is_chat(entry: Json) -> bool:
    """Return whether it is a chat model, by what its provider says about it and by its name."""
    methods = entry.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return False
    architecture, capabilities = entry.get("architecture"), entry.get("capabilities")
    outputs = architecture.get("output_modalities") if isinstance(architecture, dict) else None
    if isinstance(outputs, list) and "text" not in outputs:
        return False
    if isinstance(capabilities, dict) and capabilities.get("completion_chat") is False:
        return False
    methods = entry.get("endpoints")  # Cohere's
    if isinstance(methods, list) and "chat" not in methods:
        return False
    kind = entry.get("type")
    return not (isinstance(kind, str) and kind in _OTHER_TYPES) and _NO_CHAT.search(_name(entry)) is None


def _client(endpoint: Endpoint, seconds: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        timeout=seconds,
        headers={"accept-encoding": "identity", "accept": "application/json"},
        follow_redirects=False,
        verify=verify_for(endpoint.base_url),
        # The owner's proxy leads to the world, not back to this machine.
        trust_env=urlsplit(endpoint.base_url).hostname not in _HERE,
    )
