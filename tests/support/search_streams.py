"""What the providers' own web searches answer, as event streams: the query, two pages, a sentence that cites one."""

from typing import Any

from tests.support.provider_streams import (
    anthropic_begins,
    anthropic_block,
    gemini,
    named,
    openai_response,
)
from tests.support.upstream import Reply, streams

SENTENCE = "Version 0.28 took it out."
CITED = ("https://example.org/changes", "Changes")
OTHER = ("https://example.org/other", "Other")


def anthropic_searches(found: list[dict[str, Any]] | dict[str, Any] | None = None) -> Reply:
    """`found` in place of the two pages: other results, or an error."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    pages = [
        {"type": "web_search_result", "url": url, "title": title, "encrypted_content": "EqgfCioIARgB", "page_age": None}
        for url, title in (CITED, OTHER)
    ]
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": pages if found is None else found,
    }
    citation = {
        "type": "web_search_result_location",
        "url": CITED[0],
        "title": CITED[1],
        "encrypted_index": "Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm",
        "cited_text": "proxies was taken out",
    }
    cites = [] if isinstance(found, dict) else [{"type": "citations_delta", "citation": citation}]
    usage = {
        "input_tokens": 2000,
        "output_tokens": 100,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "server_tool_use": {"web_search_requests": 1},
    }
    return streams(
        anthropic_begins(),
        anthropic_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look. "}),
        anthropic_block(1, use, {"type": "input_json_delta", "partial_json": '{"query": "httpx proxies"}'}),
        anthropic_block(2, result),
        anthropic_block(
            3,
            {"type": "text", "text": "", "citations": []},
            *cites,
            {"type": "text_delta", "text": SENTENCE},
        ),
        named("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=usage),
        named("message_stop"),
    )


def openai_searches() -> Reply:
    action = {
        "type": "search",
        "query": "httpx proxies",
        "sources": [{"type": "url", "url": url} for url, _ in (CITED, OTHER)],
    }
    search: dict[str, Any] = {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}
    searched = search | {"status": "completed", "action": action}
    page = search | {"id": "ws_2", "status": "completed", "action": {"type": "open_page", "url": CITED[0]}}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    citation = {"type": "url_citation", "start_index": 0, "end_index": 25, "url": CITED[0], "title": CITED[1]}
    text = {"type": "output_text", "text": f"I look. {SENTENCE}", "annotations": [citation], "logprobs": []}
    place = {"item_id": "msg_1", "output_index": 2, "content_index": 0}
    output = [searched, page, message | {"content": [text]}]
    return streams(
        named("response.created", response=openai_response("in_progress", [])),
        named("response.output_item.added", output_index=0, item=search),
        named("response.web_search_call.in_progress", output_index=0, item_id="ws_1"),
        named("response.web_search_call.searching", output_index=0, item_id="ws_1"),
        named("response.web_search_call.completed", output_index=0, item_id="ws_1"),
        named("response.output_item.done", output_index=0, item=searched),
        named("response.output_item.done", output_index=1, item=page),
        named("response.output_item.added", output_index=2, item=message | {"content": []}),
        named("response.output_text.delta", **place, delta=f"I look. {SENTENCE}", logprobs=[]),
        named("response.output_text.annotation.added", **place, annotation_index=0, annotation=citation),
        named("response.output_item.done", output_index=2, item=output[2]),
        named("response.completed", response=openai_response("completed", output)),
    )


def gemini_searches(model: str = "gemini-2.5-flash") -> Reply:
    grounding = {
        "webSearchQueries": ["httpx proxies", "httpx 0.28"],
        "searchEntryPoint": {"renderedContent": "<div></div>"},
        "groundingChunks": [{"web": {"uri": url, "title": title}} for url, title in (CITED, OTHER)],
        "groundingSupports": [
            {"segment": {"startIndex": 8, "endIndex": 33, "text": SENTENCE}, "groundingChunkIndices": [0]}
        ],
    }
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": [{"text": SENTENCE}]},
        "finishReason": "STOP",
        "groundingMetadata": grounding,
    }
    return streams(gemini({"text": "I look. "}), gemini(candidates=[candidate], modelVersion=model))
