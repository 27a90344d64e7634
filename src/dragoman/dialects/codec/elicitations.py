"""`elicitation/create` and its answer, which both versions have alike: a mode and a scope in one object.

The two differ in what a form may hold; `Form mending` below makes a form valid where that changes nothing a user sees.
"""

from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.transcriber import decode_extras, encode_extras, plain
from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND, PeerMistake
from dragoman.vocabulary import services
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.word import Extras
from dragoman.wire import types as wire

# The formats of text that version 1's schema lists; a reader of it refuses a form with any other.
FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})


class Elicitation:
    """The codec of one version's questions to the user.

    `closed`: it knows four formats of text, and answers are text, numbers, switches and lists of text. `null_ids`: a
    request may have the id null.
    """

    def __init__(self, w: Any, *, closed: bool, null_ids: bool) -> None:
        self._w = w
        self._closed = closed
        self._null_ids = null_ids

    def decode(self, value: Any) -> services.Elicit:
        """Decode the question; an unknown mode is kept whole, for a client that knows it."""
        mode: services.Form | services.Url | services.UnknownMode
        if isinstance(value, wire.UnknownVariant):
            fields = plain(value.raw)
            mode = services.UnknownMode(value.tag, fields)
            # The schema promises nothing of it but the mode, so message and scope are read as far as they are there.
            return services.Elicit(str(fields.get("message", "")), mode, _loose_scope(fields))
        if isinstance(value, self._w.CreateElicitationRequestForm):
            mode = services.Form(plain(Raw(wire.encode(value.requested_schema))))
        else:
            mode = services.Url(value.elicitation_id, value.url)
        return services.Elicit(value.message, mode, _scope(value), meta=value.meta, extras=decode_extras(value))

    def encode(self, question: services.Elicit) -> Any:
        """Encode the question as one object; `PeerMistake` for a scope that this version does not have."""
        mode = question.mode
        if isinstance(mode, services.UnknownMode):
            return wire.UnknownVariant(mode.kind, Raw(msgspec.json.encode(mode.fields)))
        if question.scope == services.RequestScope(None) and not self._null_ids:
            raise PeerMistake(INVALID_PARAMS, "There is no request with the id null")
        kind = self._w.CreateElicitationRequestUrl
        fields: JsonDict = {"message": question.message, "meta": question.meta, **_encode_scope(question.scope)}
        if isinstance(mode, services.Form):
            kind = self._w.CreateElicitationRequestForm
            form = msgspec.json.encode(mended_form(mode.requested_schema, FORMATS if self._closed else None))
            fields["requested_schema"] = wire.decode(form, self._w.ElicitationSchema)
        else:
            fields |= {"elicitation_id": mode.elicitation_id, "url": mode.url}
        return kind(**fields, extras=encode_extras(question, kind))

    def decode_answer(self, value: Any) -> services.ElicitationAnswer:
        """Decode what the user did; an action that is not known is kept, and is none that accepts."""
        if isinstance(value, wire.UnknownVariant):
            fields = plain(value.raw)
            meta = fields.pop("_meta", UNSET)
            fields.pop("action")
            return services.ElicitationAnswer(value.tag, meta=meta, extras=Extras(fields) if fields else UNSET)
        # Only `accept` has content. The wire's lists are tuples; plain values above are lists.
        found = getattr(value, "content", UNSET)
        if isinstance(found, dict):
            found = {name: list(item) if isinstance(item, tuple) else item for name, item in found.items()}
        action = str(value.__struct_config__.tag)
        return services.ElicitationAnswer(action, found, meta=value.meta, extras=decode_extras(value))

    def encode_answer(self, answer: services.ElicitationAnswer) -> Any:
        """Encode what the user did; an action that this version does not know is sent as it is."""
        kinds = {
            "accept": self._w.CreateElicitationResponseAccept,
            "decline": self._w.CreateElicitationResponseDecline,
            "cancel": self._w.CreateElicitationResponseCancel,
        }
        kind = kinds.get(answer.action)
        if kind is None:
            body = answer.extras.fields if isinstance(answer.extras, Extras) else {}
            meta = {} if answer.meta is UNSET else {"_meta": answer.meta}
            return wire.UnknownVariant(
                answer.action, Raw(msgspec.json.encode({**body, **meta, "action": answer.action}))
            )
        # Only an accepted form has content: what was typed before a cancel is not the agent's to know.
        content = {"content": self._values(answer.content)} if answer.action == "accept" else {}
        return kind(**content, meta=answer.meta, extras=encode_extras(answer, kind))

    def _values(self, content: Any) -> Any:
        if not self._closed or not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if _is_plain(value)}


def unoffered(question: services.Elicit, offered: object) -> tuple[int, str] | None:
    """Return the error of a question in a way that the client has not offered; None if it has."""
    # Unlike in MCP, `elicitation: {}` offers neither way.
    if not isinstance(offered, ClientCapabilities) or not (offered.elicitation_form or offered.elicitation_url):
        return METHOD_NOT_FOUND, "Method not found"
    # The schema has the client answer a way that it did not offer with invalid params. An unknown mode passes.
    form, url = isinstance(question.mode, services.Form), isinstance(question.mode, services.Url)
    if (form and not offered.elicitation_form) or (url and not offered.elicitation_url):
        return INVALID_PARAMS, "The client cannot ask the user in this way"
    return None


def _scope(value: Any) -> services.SessionScope | services.RequestScope:
    if value.session_id is UNSET:
        return services.RequestScope(value.request_id)
    return services.SessionScope(value.session_id, value.tool_call_id)


# For a mode that is not known: which scope it has is not checked by any type.
def _loose_scope(fields: JsonDict) -> services.SessionScope | services.RequestScope:
    if isinstance(fields.get("sessionId"), str):
        return services.SessionScope(fields["sessionId"])
    return services.RequestScope(fields.get("requestId"))


def _encode_scope(scope: services.SessionScope | services.RequestScope) -> JsonDict:
    if isinstance(scope, services.RequestScope):
        return {"request_id": scope.request_id}
    return {"session_id": scope.session_id, "tool_call_id": scope.tool_call_id}


# What version 1's schema allows as an answer: a reader of it would refuse the whole answer for one nested value.
def _is_plain(value: object) -> bool:
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return texts or isinstance(value, (str, int, float))


# -- Form mending ----------------------------------------------------------------------------------------------------


def mended_form(schema: dict[str, object], formats: frozenset[str] | None) -> JsonDict:
    """Return the form as every version accepts it: an object with properties, without fields that offer no choice.

    Text formats that are not among `formats` are removed too, unless `formats` is None.
    """
    # Agents write forms by hand, and MCP servers send theirs through an agent: both leave out what seems clear.
    form: JsonDict = {"type": "object", "properties": {}, **schema}
    properties = form["properties"]
    if not isinstance(properties, dict):
        return form
    kept = {name: _mended(field, formats) for name, field in properties.items() if not _offers_nothing(field)}
    gone = properties.keys() - kept.keys()
    if gone and isinstance(form.get("required"), list):
        form["required"] = [name for name in form["required"] if name not in gone]
    return {**form, "properties": kept}


def _mended(field: object, formats: frozenset[str] | None) -> object:
    if not isinstance(field, dict) or field.get("type") != "string":
        return field
    known = cast(JsonDict, field)
    # A choice among nothing, and a format that is not known, leave a text field; the user can still answer it.
    dropped = {key for key in ("enum", "oneOf") if known.get(key) == []}
    if formats is not None and known.get("format") is not None and known["format"] not in formats:
        dropped.add("format")
    return {key: value for key, value in known.items() if key not in dropped} if dropped else field


def _offers_nothing(field: object) -> bool:
    """Return whether a field is a list to choose from with nothing in it: no client can show it."""
    items = field.get("items") if isinstance(field, dict) and field.get("type") == "array" else None
    return isinstance(items, dict) and [] in (items.get("enum"), items.get("anyOf"))
