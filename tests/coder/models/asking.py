"""Asking a hosted model whose provider is a server of the test's own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from dragoman.coder.context import ContextUserMessage, Item
from dragoman.coder.credentials import Secret
from dragoman.coder.models.contract import ModelRequest, Piece, RawResponse, TextDelta, ThoughtDelta, ToolSpec
from dragoman.coder.models.descriptions import ModelDescription
from dragoman.coder.models.endpoints import Endpoint, Family, ProviderConfig
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.models.timeouts import ModelTimeouts
from dragoman.vocabulary.content import Text
from tests.support.upstream import Upstream

CANARY = "sk-canary-0123456789abcdef"
# Long enough for a busy machine, short enough for a test that waits for its end.
QUICK = ModelTimeouts(connect=5.0, chunk=0.4, piece=0.8, answer=1.6)
PATIENT = ModelTimeouts(connect=10.0, chunk=20.0, piece=30.0, answer=60.0)

READ_FILE = ToolSpec(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
PATHS: dict[Family, str] = {
    "openai": "/v1",
    "anthropic": "",
    "google": "",
    "ollama": "/v1",
    "compatible": "/v1",
    # So that a server knows by whose rules to judge.
    "mistral": "/mistral/v1",
    "azure": "",
}


def endpoint(up: Upstream, family: Family = "compatible", model: str = "m", **described: object) -> Endpoint:
    provider = "mine" if family == "compatible" else family
    settings = ProviderConfig(every_model=ModelDescription(**described))  # type: ignore[arg-type]
    return Endpoint(family, provider, model, up.url + PATHS[family], Secret(CANARY), settings)


@asynccontextmanager
async def connected(to: Endpoint, patience: ModelTimeouts = PATIENT) -> AsyncGenerator[ProviderModel, None]:
    model = ProviderModel(to, patience)
    try:
        yield model
    finally:
        await model.close()


def said(text: str) -> ContextUserMessage:
    return ContextUserMessage("m1", [Text(text)])


async def ask(model: ProviderModel, *items: Item, level: str = "", system: str = "Be brief.") -> list[Piece]:
    """Everything that comes, what was said in pieces joined, and the raw form left out."""
    pieces: list[Piece] = []
    request = ModelRequest(items or [said("hi")], [READ_FILE], system, level)
    async with aclosing(model.respond(request)) as coming:
        async for piece in coming:
            if pieces and isinstance(piece, TextDelta | ThoughtDelta) and type(piece) is type(pieces[-1]):
                pieces[-1] = type(piece)(pieces[-1].text + piece.text)
            else:
                pieces.append(piece)
    return pieces


def without_raw(pieces: list[Piece]) -> list[Piece]:
    return [piece for piece in pieces if not isinstance(piece, RawResponse)]


def raw_of(pieces: list[Piece]) -> object:
    [kept] = [piece for piece in pieces if isinstance(piece, RawResponse)]
    return kept.raw
