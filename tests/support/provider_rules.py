"""The checks that real model APIs make before they answer, for servers of tests: what they refuse, and in which words.

A request is looked at as OpenAI's chat completions and responses, Anthropic's messages and Gemini's `generateContent`
do: every tool call answered right after it, no result without a call, no empty message, no thought without what it was
thought for, images that a decoder reads, and no more tokens than the window, tools among them. `refusal` returns the
status and the body of the error, or None.
"""

import base64
import binascii
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# What the APIs count for a picture, about; and for text.
_PICTURE_TOKENS = 1_500
_CHARACTERS_A_TOKEN = 4
_PICTURE_BYTES = 5 * 1024 * 1024
_ANTHROPIC_PICTURES = 100

Body = dict[str, Any]


class Refusal(NamedTuple):
    """What is answered instead of a stream."""

    status: int
    body: Body


class _Wrong(Exception):
    """What is wrong with a request, in the words of the API; `code` is OpenAI's."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


_MEDIA_FIELDS = ("image_url", "source", "inlineData", "file", "file_data", "document_url")


def refusal(path: str, body: Body, window: int | None = None) -> Refusal | None:
    """The error that the API at this path answers to such a request; None: it accepts it."""
    for at, check, say in _APIS:
        if at in path:
            try:
                check(body, window)
            except _Wrong as wrong:
                return Refusal(400, say(wrong))
    return None


def _need(holds: object, message: str, code: str | None = None) -> None:
    if not holds:
        raise _Wrong(message, code)


def _tokens(value: object) -> int:
    """About the tokens of a request; a picture counts as a picture, whatever its bytes."""
    if isinstance(value, dict):
        return sum(_PICTURE_TOKENS if name in _MEDIA_FIELDS else _tokens(one) for name, one in value.items())
    if isinstance(value, list):
        return sum(map(_tokens, value))
    return len(value) // _CHARACTERS_A_TOKEN if isinstance(value, str) else 0


def _check_window(body: Body, window: int | None, message: str, code: str | None = None) -> None:
    """Refuse what has more tokens than the window, whatever part of the request they are in."""
    names = ("messages", "input", "contents", "system", "instructions", "systemInstruction")
    # Of a schema the names count as well.
    tools = len(json.dumps(body["tools"])) // _CHARACTERS_A_TOKEN if body.get("tools") else 0
    tokens = sum(_tokens(body.get(name)) for name in names) + tools
    _need(window is None or tokens <= window, message.format(tokens=tokens, window=window), code)


def _is_png(data: bytes) -> bool:
    is_whole = data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and data[-8:-4] == b"IEND"
    return is_whole and b"IDAT" in data and 0 not in struct.unpack(">II", data[16:24])


def _is_jpeg(data: bytes) -> bool:
    return data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9")


def _is_gif(data: bytes) -> bool:
    return data.startswith((b"GIF87a", b"GIF89a")) and 0 not in struct.unpack("<HH", data[6:10]) and data[-1:] == b";"


def _is_webp(data: bytes) -> bool:
    return data.startswith(b"RIFF") and data[8:15] == b"WEBPVP8"


# By the type: whether a decoder could begin with such bytes, and finds their end.
_DECODERS: dict[str, Callable[[bytes], bool]] = {
    "image/png": _is_png,
    "image/jpeg": _is_jpeg,
    "image/gif": _is_gif,
    "image/webp": _is_webp,
}


def _picture(data: object, kind: object, message: str) -> None:
    _need(isinstance(data, str) and data and kind in _DECODERS, message)
    try:
        picture = base64.b64decode(str(data), validate=True)
    except (binascii.Error, ValueError):
        raise _Wrong(message) from None
    try:
        _need(_DECODERS[str(kind)](picture), message)
    except struct.error:  # it ends before its size is told
        raise _Wrong(message) from None
    _need(len(picture) <= _PICTURE_BYTES, f"image exceeds 5 MB maximum: {len(picture)} bytes > {_PICTURE_BYTES} bytes")


def _data_url(url: object, message: str) -> None:
    _need(isinstance(url, str), message)
    if str(url).startswith("data:"):
        head, _, data = str(url)[5:].partition(",")
        _picture(data, head.removesuffix(";base64"), message)


def _pdf(data: object, message: str) -> None:
    """A PDF file in base64, alone or as a data URL."""
    _need(isinstance(data, str), message)
    try:
        file = base64.b64decode(str(data).removeprefix("data:application/pdf;base64,"), validate=True)
    except (binascii.Error, ValueError):
        raise _Wrong(message) from None
    _need(file.startswith(b"%PDF-"), message)


# -- OpenAI's chat completions ---------------------------------------------------------------------------------------

_NO_ANSWER = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
_NO_CALL = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
_BAD_URL = "You uploaded an unsupported image. Please make sure your image is valid."
_NOT_OF_A_USER = (
    "Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with "
    "role '{role}' contains an image URL."
)


def _chat(body: Body, window: int | None) -> None:
    messages = body.get("messages")
    _need(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    waiting: list[str] = []
    for index, message in enumerate(body["messages"]):
        role, content = message.get("role"), message.get("content")
        _need(role in ("system", "developer", "user", "assistant", "tool"), f"Invalid value: '{role}'.")
        if role == "tool":
            _need(message.get("tool_call_id") in waiting, _NO_CALL)
            waiting.remove(message["tool_call_id"])
        else:
            _need(not waiting, _NO_ANSWER + ", ".join(waiting))
        calls = message.get("tool_calls") or []
        if not calls:
            _need(content, "Invalid value for 'content': expected a string, got null.")
        for call in calls:
            _arguments(call["function"].get("arguments"), f"messages[{index}].tool_calls")
        waiting += [call["id"] for call in calls]
        _need(len(set(waiting)) == len(waiting), "Duplicate value for 'tool_call_id'")
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "image_url":
                _need(role == "user", _NOT_OF_A_USER.format(index=index, role=role))
                _data_url(part["image_url"].get("url"), _BAD_URL)
            if part.get("type") == "file":
                _need(role == "user", _NOT_OF_A_USER.format(index=index, role=role))
                _need(part["file"].get("filename"), "Missing required parameter: 'file.filename'.")
                _pdf(part["file"].get("file_data"), "Invalid file data.")
            if part.get("type") == "document_url":
                _pdf(part["document_url"], "Could not process the document.")
    _need(not waiting, _NO_ANSWER + ", ".join(waiting))
    too_long = (
        "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    _check_window(body, window, too_long, "context_length_exceeded")


def _arguments(arguments: object, place: str) -> None:
    try:
        is_object = isinstance(json.loads(str(arguments)), dict)
    except ValueError:
        is_object = False
    _need(is_object, f"Invalid '{place}.arguments': expected a string with a JSON object.")


def _openai_error(wrong: _Wrong) -> Body:
    return {
        "error": {"message": str(wrong), "type": "invalid_request_error", "param": "messages", "code": wrong.code},
    }


# -- Mistral's chat completions --------------------------------------------------------------------------------------

_MISTRAL_FIELDS = {
    *("model", "messages", "stream", "tools", "tool_choice", "temperature", "top_p", "max_tokens", "stop"),
    *("random_seed", "response_format", "parallel_tool_calls", "reasoning_effort", "prompt_mode", "safe_prompt"),
}
_MISTRAL_MESSAGES = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "name", "tool_call_id"},
}


def _mistral(body: Body, window: int | None) -> None:
    _chat(body, window)
    _forbid(body, _MISTRAL_FIELDS, "body")
    before = ""
    for index, message in enumerate(body["messages"]):
        role = message["role"]
        _forbid(message, _MISTRAL_MESSAGES[role], f"body.messages.{index}.{role}")
        parts = [part for part in message["content"] or () if isinstance(part, dict)]
        _need(all(part["type"] != "file" for part in parts), "Input should be a valid file id")
        _need(not (role == "user" and before == "tool"), "Unexpected role 'user' after role 'tool'")
        before = role
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        for one in [*ids, *([message["tool_call_id"]] if role == "tool" else ())]:
            message_id = f"Tool call id was {one} but must be a-z, A-Z, 0-9, with a length of 9."
            _need(len(one) == 9 and one.isalnum() and one.isascii(), message_id)


def _forbid(body: Body, known: set[str], place: str) -> None:
    extra = sorted(set(body) - known)
    _need(not extra, f"Extra inputs are not permitted: {place}.{', '.join(extra)}")


def _mistral_error(wrong: _Wrong) -> Body:
    return {"object": "error", "message": str(wrong), "type": "invalid_request_error", "param": None, "code": None}


# -- OpenAI's responses ----------------------------------------------------------------------------------------------


def _responses(body: Body, window: int | None) -> None:
    given = body.get("input")
    items: list[Body] = given if isinstance(given, list) else [{"role": "user", "content": given}]
    calls: set[str] = set()
    outputs: set[str] = set()
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            _arguments(item.get("arguments"), f"input[{index}]")
            calls.add(item["call_id"])
        elif kind == "function_call_output":
            called = item["call_id"]
            _need(called in calls, f"No tool call found for function call output with call_id {called}.")
            _need(called not in outputs, f"Duplicate function call output for call_id {called}.")
            outputs.add(called)
        elif kind == "reasoning":
            _need(
                _is_output(items[index + 1 : index + 2]),
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            )
        elif kind == "message":
            _need(item.get("content"), f"Invalid 'input[{index}].content': empty array.")
        for part in _parts(item.get("content")) + _parts(item.get("output")):
            if part.get("type") == "input_image":
                _data_url(part.get("image_url"), "The image data you provided does not represent a valid image.")
            if part.get("type") == "input_file":
                _need(part.get("filename"), "Missing required parameter: 'filename'.")
                _pdf(part.get("file_data"), "Invalid file data.")
    missing = sorted(calls - outputs)
    _need(not missing, f"No tool output found for function call {', '.join(missing)}.")
    too_long = "Your input exceeds the context window of this model. Please adjust your input and try again."
    _check_window(body, window, too_long, "context_length_exceeded")


def _is_output(following: list[Body]) -> bool:
    """Whether what follows a thought is what it was thought for; another thought is not."""
    return any(
        item.get("type") == "function_call"
        or (item.get("type", "message") == "message" and item.get("role") == "assistant")
        for item in following
    )


def _parts(content: object) -> list[Body]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


# -- Anthropic's messages --------------------------------------------------------------------------------------------


_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def _anthropic(body: Body, window: int | None) -> None:
    # Instructions may stand between the messages, as Claude Code sends them; the rules are about the others.
    turns = list(_merged([one for one in body["messages"] if one.get("role") != "system"], "role", "content"))
    _need(turns, "messages: at least one message is required")
    _need(turns[0][0] == "user", 'messages: first message must use the "user" role')
    _need(turns[-1][0] == "user", _PREFILL)
    called: list[str] = []
    seen: set[str] = set()
    for index, (role, blocks) in enumerate(turns):
        _need(blocks, f"messages.{index}: all messages must have non-empty content")
        called = _anthropic_results(index, blocks, called) if role == "user" else _anthropic_calls(index, blocks, seen)
        for block in blocks:
            _anthropic_text(block)
            for part in _parts(block.get("content")):
                _anthropic_text(part)
    _need(not called, _unanswered(len(turns) - 1, called))
    _need(not seen or body.get("tools"), "Requests which include `tool_use` or `tool_result` blocks must define tools.")
    pictures = sum(_pictures(blocks) for _, blocks in turns)
    _need(pictures <= _ANTHROPIC_PICTURES, f"too many images and documents: {pictures} + 0 > {_ANTHROPIC_PICTURES}")
    _check_window(body, window, "prompt is too long: {tokens} tokens > {window} maximum")


def _anthropic_text(block: Body) -> None:
    if block.get("type") == "text":
        _need(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")


def _pictures(blocks: list[Body]) -> int:
    return sum((block.get("type") == "image") + _pictures(_parts(block.get("content"))) for block in blocks)


def _anthropic_calls(index: int, blocks: list[Body], seen: set[str]) -> list[str]:
    calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    _need(len(set(calls)) == len(calls) and not seen & set(calls), f"messages.{index}: `tool_use` ids must be unique")
    seen |= set(calls)
    last = blocks[-1].get("type")
    is_thought = last in ("thinking", "redacted_thinking")
    _need(not is_thought, f"messages.{index}: The final block in an assistant message cannot be `thinking`.")
    return calls


def _anthropic_results(index: int, blocks: list[Body], called: list[str]) -> list[str]:
    """Check the results of a user's turn; returns the calls that wait now: none."""
    waiting = list(called)
    is_first = True
    for place, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            is_first = False
            _anthropic_picture(block)
            continue
        one = block["tool_use_id"]
        _need(is_first, _unanswered(index - 1, waiting))
        _need(
            one in called,
            f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {one}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
        )
        _need(one in waiting, f"messages.{index}.content.{place}: each tool_use must have a single result.")
        waiting.remove(one)
        for part in _parts(block.get("content")):
            _anthropic_picture(part)
    _need(not waiting, _unanswered(index - 1, waiting))
    return []


def _unanswered(index: int, ids: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _anthropic_picture(block: Body) -> None:
    if block.get("type") == "image" and block["source"].get("type") == "base64":
        _picture(block["source"].get("data"), block["source"].get("media_type"), "Could not process image")
    if block.get("type") == "document":
        _need(
            block["source"].get("media_type") == "application/pdf",
            "source.media_type: Input should be 'application/pdf'",
        )
        _pdf(block["source"].get("data"), "Could not process PDF")


def _anthropic_error(wrong: _Wrong) -> Body:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": str(wrong)}, "request_id": "req_1"}


def _merged(messages: list[Body], role: str, content: str) -> Iterator[tuple[str, list[Body]]]:
    """Neighbouring messages of one role as one, which is how the API reads them."""
    before: tuple[str, list[Body]] | None = None
    for message in messages:
        given = message.get(content)
        blocks: list[Body] = [{"type": "text", "text": given}] if isinstance(given, str) else list(given or [])
        if before is not None and before[0] == message.get(role):
            before = (before[0], before[1] + blocks)
            continue
        if before is not None:
            yield before
        before = (str(message.get(role)), blocks)
    if before is not None:
        yield before


# -- Gemini's generateContent ----------------------------------------------------------------------------------------

_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_ORDER = "Please ensure that function response turn comes immediately after a function call turn."
_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_NO_DATA = "Unable to submit request because it must have one initialized field: `data` of a part."
_GEMINI_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")


def _gemini(body: Body, window: int | None) -> None:
    turns = list(_merged(body["contents"], "role", "parts"))
    _need(turns, "* GenerateContentRequest.contents: contents is not specified")
    called: list[str] = []
    for index, (role, parts) in enumerate(turns):
        _need(role in ("user", "model"), "Please use a valid role: user, model.")
        empty = f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty."
        _need(parts and all(set(part) - {"thought", "thoughtSignature"} for part in parts), empty)
        answers = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        _need(not answers or called, _ORDER)
        _need(sorted(answers) == sorted(called), _COUNT)
        called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        _need(not called or index > 0, _AFTER_USER)
        for part in parts:
            # An empty text may carry a signature, and nothing else.
            _need(part.get("text") != "" or "thoughtSignature" in part, _NO_DATA)
            if "inlineData" in part:
                data = part["inlineData"]
                kind = data.get("mimeType") or data.get("mime_type")  # both names of a field count there
                if kind == "application/pdf":
                    _pdf(_standard(data.get("data")), "The document has no pages.")
                    continue
                _need(kind in _GEMINI_PICTURES, f"Unsupported MIME type: {kind}")
                _picture(_standard(data.get("data")), kind, "Unable to process input image.")
    _need(not called, _COUNT)
    too_long = "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
    _check_window(body, window, too_long)


def _standard(data: object) -> object:
    """Gemini takes both alphabets of base64."""
    return data.replace("-", "+").replace("_", "/") if isinstance(data, str) else data


def _gemini_error(wrong: _Wrong) -> Body:
    return {"error": {"code": 400, "message": str(wrong), "status": "INVALID_ARGUMENT"}}


_Check = Callable[[Body, int | None], None]
_Say = Callable[[_Wrong], Body]
_APIS: list[tuple[str, _Check, _Say]] = [
    ("/mistral/", _mistral, _mistral_error),
    ("/chat/completions", _chat, _openai_error),
    ("/responses", _responses, _openai_error),
    ("/messages", _anthropic, _anthropic_error),
    ("enerateContent", _gemini, _gemini_error),
]
