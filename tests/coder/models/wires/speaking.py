"""Wire forms without a server: what is posted, and what a stream means."""

from typing import Any

import msgspec

from dragoman.coder.context import ContextUserMessage, Item
from dragoman.coder.models.contract import ModelRequest, TextDelta, ThoughtDelta, ToolSpec
from dragoman.coder.models.endpoints import Endpoint, Family
from dragoman.coder.models.facts import model_facts
from dragoman.coder.models.provider_connection import WIRES
from dragoman.coder.models.wires.contract import FullResponse, HttpRequest, WireForm
from dragoman.sse import EventReader
from dragoman.vocabulary.content import Text

HI = ContextUserMessage("m1", [Text("hi")])
READ_FILE = ToolSpec("read_file", "Reads a file.", {"type": "object"})


def wire_of(family: Family, model: str, **described: Any) -> WireForm:
    endpoint = Endpoint(family, family, model, "http://x", None)
    return WIRES[family](endpoint, model_facts(endpoint)._replace(**described))


def posted(wire: WireForm, *items: Item, level: str = "") -> tuple[HttpRequest, dict[str, Any]]:
    """The request, and its body."""
    request = wire.encode(ModelRequest(items or [HI], [READ_FILE], "Be brief.", level))
    return request, msgspec.json.decode(request.body, type=dict[str, Any])


def heard(wire: WireForm, *events: bytes) -> tuple[str, str, FullResponse]:
    """The words and the thoughts that are shown of a stream, and the response at its end."""
    decoder = wire.decoder()
    shown = [delta for event in EventReader().feed(b"".join(events)) for delta in decoder.decode(event.data) or ()]
    words = "".join(delta.text for delta in shown if isinstance(delta, TextDelta))
    return words, "".join(delta.text for delta in shown if isinstance(delta, ThoughtDelta)), decoder.end()
