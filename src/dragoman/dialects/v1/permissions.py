"""Permission on version 1, which knows only a tool call and four kinds of options.

What the user is asked must be what they see: the question's own title, its description and the command line stand in
the tool call, since this wire has no other place for them.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from dragoman.dialects.codec.dialect_base import Route
from dragoman.dialects.codec.transcriber import decode_extras, encode_extras
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1.lean_calls import LeanCalls
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    Dismissed,
    PermissionAnswer,
    PermissionOption,
    RequestPermission,
    ToolCallSubject,
    UnknownOutcome,
    UnknownSubject,
)
from dragoman.vocabulary.tools import ContentItem, ToolContent
from dragoman.wire import v1 as w

# Where a request has no title of its own. Version 2 requires one, version 1 has none.
UNTITLED: Final = "Permission needed"
_KINDS: Final = ("allow_once", "allow_always", "reject_once", "reject_always")


def known_options(request: RequestPermission) -> list[PermissionOption]:
    """Return the options that version 1 can offer: one of an unknown kind would have to be called a yes or a no."""
    return [option for option in request.options if option.kind in _KINDS]


def subject_call(
    request: RequestPermission, shown: Sequence[ToolContent], lean: LeanCalls | None = None
) -> ToolCallUpdate:
    """Return the tool call that stands for the question; `shown` is what the client has of that call already."""
    call, notes = _subject(request)
    if lean is not None:
        call = lean.lean_update(call, shown)
        # The one note of a subject is the command line, which is in the raw input as well.
        notes = [] if lean.renders_input else notes
    # The user must see what is asked: the description and the command line become content, behind what is shown.
    if isinstance(request.description, str):
        notes = [request.description, *notes]
    # Content replaces what the client shows of the call, so it begins with what that is already.
    if notes:
        before = call.content if isinstance(call.content, list) else shown
        call = replace(call, content=[*before, *(ContentItem(Text(note)) for note in notes)])
    # The question's title is what the user reads. The default one says less than the title that the call has on the
    # client's screen, so it is sent only where the call sends a title anyway.
    if isinstance(call.title, str) or request.title != UNTITLED:
        call = replace(call, title=request.title)
    return call


def call_id(request: RequestPermission) -> str:
    """Return the id of the tool call that a question is about; a question about none gets an id of its own."""
    match request.subject:
        case ToolCallSubject(tool_call=call):
            return call.tool_call_id
        case CommandSubject(tool_call_id=str() as found):
            return found
        case _:
            return f"permission: {request.title}"


def _subject(request: RequestPermission) -> tuple[ToolCallUpdate, list[str]]:
    match request.subject:
        case ToolCallSubject(tool_call=call):
            return call, []
        case CommandSubject(command=command, cwd=cwd):
            call = ToolCallUpdate(call_id(request), kind="execute", raw_input={"command": command, "cwd": cwd})
            return call, [f"{command}\n(in {cwd})"]
        # The raw input is where a client shows what it does not know.
        case UnknownSubject(fields=fields):
            return ToolCallUpdate(call_id(request), raw_input=fields), []
        case _:
            return ToolCallUpdate(call_id(request)), []


def encode_permission(request: RequestPermission, call: ToolCallUpdate) -> w.RequestPermissionRequest:
    """Encode the question."""
    return w.RequestPermissionRequest(
        session_id=request.session_id,
        tool_call=v1.encode_call(call, w.ToolCallUpdate),
        options=v1.CODEC.encode(known_options(request)),
        meta=request.meta,
        extras=encode_extras(request, w.RequestPermissionRequest),
    )


def _decode_permission(value: w.RequestPermissionRequest) -> RequestPermission:
    # The question has no words of its own on this wire: its title is the call's, or a generic one.
    call = v1.decode_call(value.tool_call)
    return RequestPermission(
        value.session_id,
        call.title if isinstance(call.title, str) else UNTITLED,
        v1.CODEC.decode(value.options),
        subject=ToolCallSubject(call),
        meta=value.meta,
        extras=decode_extras(value),
    )


def _encode_answer(answer: PermissionAnswer) -> w.RequestPermissionResponse:
    """Encode an answer; an outcome that version 1 does not know becomes `Dismissed`."""
    # Version 2 forbids to take an unknown outcome for approval, and version 1 has no other place for it.
    outcome = Dismissed() if isinstance(answer.outcome, UnknownOutcome) else answer.outcome
    return w.RequestPermissionResponse(
        outcome=v1.CODEC.encode(outcome), meta=answer.meta, extras=encode_extras(answer, w.RequestPermissionResponse)
    )


# The params are encoded by the dialect (`encode_permission`), which knows what the client was shown of the call.
PERMISSION: Final = Route(
    "session/request_permission",
    RequestPermission,
    w.RequestPermissionRequest,
    w.RequestPermissionResponse,
    PermissionAnswer,
    decode_params=_decode_permission,
    encode_result=_encode_answer,
)
