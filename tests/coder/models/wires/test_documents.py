"""PDF files reach the models that take them, in each provider's form, from the user and from `read_file`."""

import base64
import json
from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult, ContextUserMessage
from dragoman.coder.models.endpoints import Family
from dragoman.vocabulary.content import BlobResource, Content, Resource, Text
from tests.coder.models.asking import ask, connected, endpoint, said
from tests.coder.models.test_providers import SPEAKERS
from tests.support.upstream import Reply, chat_says, upstream

pytestmark = pytest.mark.anyio

PDF = base64.b64encode(b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%%EOF\n").decode()
URL = f"data:application/pdf;base64,{PDF}"
RESPONSES, ANTHROPIC, GEMINI = (SPEAKERS[place][2] for place in range(3))
# What a document is at each provider.
FORMS: list[tuple[Family, str, Reply, dict[str, Any]]] = [
    ("openai", "gpt-5", RESPONSES, {"type": "input_file", "filename": "the-plan.pdf", "file_data": URL}),
    (
        "anthropic",
        "claude-opus-4-8",
        ANTHROPIC,
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "title": "the-plan.pdf",
        },
    ),
    ("google", "gemini-2.5-flash", GEMINI, {"inlineData": {"mimeType": "application/pdf", "data": PDF}}),
    ("compatible", "m", chat_says("Hello"), {"type": "file", "file": {"filename": "the-plan.pdf", "file_data": URL}}),
    (
        "mistral",
        "mistral-medium-latest",
        chat_says("Hello"),
        {"type": "document_url", "document_url": URL, "document_name": "the-plan.pdf"},
    ),
]


def plan(data: str = PDF) -> Content:
    return Resource(BlobResource(data, "file:///w/the plan.pdf", mime_type="application/pdf"))


def parts(value: object) -> list[Any]:
    """Every object in a request, at any depth."""
    if isinstance(value, dict):
        return [value, *(part for one in value.values() for part in parts(one))]
    return [part for one in value for part in parts(one)] if isinstance(value, list) else []


@pytest.mark.parametrize(("family", "model", "reply", "form"), FORMS, ids=[form[0] for form in FORMS])
async def test_a_document_of_the_user_and_one_that_a_tool_has_read_are_sent_whole(
    family: Family, model: str, reply: Reply, form: dict[str, Any]
) -> None:
    call = ContextAssistantMessage("", "", [ContextToolCall("c1", "read_file", {})])
    read = ContextToolResult("c1", "read_file", "a document", content=[plan()])
    async with upstream(reply, reply) as up, connected(endpoint(up, family, model, documents=True)) as it:
        assert "document" in it.sees
        await ask(it, ContextUserMessage("m1", [Text("look"), plan()]))
        await ask(it, said("hi"), call, read)
    assert [parts(request.body).count(form) for request in up.requests] == [1, 1]


@pytest.mark.parametrize("data", [PDF, base64.b64encode(b"no such file").decode()], ids=["unseen", "no document"])
async def test_what_cannot_be_shown_is_a_marker(data: str) -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up, documents=data != PDF)) as it:
        await ask(it, ContextUserMessage("m1", [Text("look"), plan(data)]))
    body = json.dumps(up.requests[0].body)
    assert data not in body
    assert "[file: application/pdf] file:///w/the plan.pdf" in body
