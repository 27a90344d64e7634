"""A question of a server to the user, as a question of ours: bounded, and declined where no form can be made of it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from msgspec import UNSET

from dragoman.coder.mcp.definition import deeper_than
from dragoman.coder.tools.result_text import cut
from dragoman.host.text import harmless
from dragoman.limits import KIB
from dragoman.vocabulary.services import ElicitationAnswer, Form, Url

_MESSAGE_CHARACTERS: Final = 4_000
_SCHEMA_BYTES: Final = 16 * KIB
_SCHEMA_DEPTH: Final = 8
_URL_CHARACTERS: Final = 4_000
_ID_CHARACTERS: Final = 200
_DECLINED: Final = "decline"


async def answer_for(
    params: ElicitRequestParams, ask: Callable[[str, Form | Url], Awaitable[ElicitationAnswer]]
) -> ElicitResult:
    """Have the user asked, and return the answer for the server. Anything but a known yes is none.

    Never an error: a server may take one for a yes.
    """
    mode = _mode_of(params)
    if mode is None:
        return ElicitResult(action=_DECLINED)
    answer = await ask(harmless(cut(params.message, _MESSAGE_CHARACTERS)), mode)
    if answer.action == "cancel":
        return ElicitResult(action="cancel")
    if answer.action != "accept":
        return ElicitResult(action=_DECLINED)
    if isinstance(mode, Url):
        return ElicitResult(action="accept")
    content = {} if answer.content in (None, UNSET) else answer.content
    try:
        return ElicitResult(action="accept", content=content)  # type: ignore[arg-type]
    except ValueError:  # values that no form has
        return ElicitResult(action=_DECLINED)


def _mode_of(params: ElicitRequestParams) -> Form | Url | None:
    """Return how to ask; None where this can be no form and no page."""
    if not isinstance(params, ElicitRequestFormParams):
        url, id = params.url, params.elicitation_id
        is_web = url.startswith(("https://", "http://")) and url.isprintable() and " " not in url
        if not is_web or len(url) > _URL_CHARACTERS or not id or len(id) > _ID_CHARACTERS:
            return None
        return Url(id, url)
    schema: dict[str, Any] = {"type": "object", "properties": {}} | params.requested_schema
    try:
        is_large = len(msgspec.json.encode(schema)) > _SCHEMA_BYTES
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if is_large or deeper_than(schema, _SCHEMA_DEPTH) or not isinstance(schema["properties"], dict):
        return None
    return Form(schema)
