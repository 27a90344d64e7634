"""The agent's side of every vendor dialect: version 1, cut to what the vendor's document names.

A dialect is data beside this: its methods, its updates and their fields, its permission options. Updates that are not
in the document are not sent (a session log still records them), and neither are other fields: clients were written
against the document, and some fail at what it does not name. A permission is offered with the document's options, and
never with one of a kind that the request does not have.

The way of an event: `AgentV1` makes updates of version 1, `reshape` turns each into the document's, `only_known_fields`
cuts it, `update_params` puts it into the notification.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.dialects.codec.dialect_base import TEXT_FRAME_TAIL, message_id_field, text_frame_head
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import DecodedReply, ErrorMessage, Id, NotificationMessage, Out, RequestMessage
from dragoman.dialects.handshake.initialize import (
    DecodedAgentHello,
    DecodedClientHello,
    client_hello_1,
    decode_agent_1,
    encode_implementation,
    requested_version,
)
from dragoman.dialects.handshake.initialize import encode_client as encode_any_client
from dragoman.dialects.handshake.json_fields import JsonDict, as_object, decode_json
from dragoman.dialects.tolerance.requests import ALIASES
from dragoman.dialects.v1.agent import AgentV1
from dragoman.dialects.v1.air_profile import AirProfile
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, PeerMistake, WireError
from dragoman.vocabulary import events, requests, services
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.hello import AgentHello, ClientCapabilities, ClientHello
from dragoman.vocabulary.tools import FINAL_STATUSES
from dragoman.wire import types as wire


class VendorPermissionOption(NamedTuple):
    """A permission option as a document has it."""

    kind: str
    option_id: str
    name: str


def decode_client(params: Raw, name: str) -> DecodedClientHello:
    """Decode `initialize` of a dialect that has one version: whatever number is asked for, 1 is answered."""
    _, body = requested_version(params)
    return DecodedClientHello(1, client_hello_1(body), name)


def encode_agent(agent: AgentHello, capabilities: JsonDict, **more: Any) -> bytes:
    """Encode the answer to `initialize`. Whatever the document calls its agent, `agentInfo` is ours."""
    body: JsonDict = {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": []}
    if agent.info is not None:
        # Never the document's own name: a client that knows the program by it would expect that program's defects.
        body["agentInfo"] = encode_implementation(agent.info)
    return msgspec.json.encode({**body, **more})


def encode_client(hello: ClientHello) -> bytes:
    """Encode a client's `initialize`: version 1's shape alone, which is all that these documents know."""
    return encode_any_client(hello, (1,))


def decode_agent(result: Raw, name: str) -> DecodedAgentHello:
    """Decode an agent's answer to `initialize` as version 1, whatever number it has."""
    return DecodedAgentHello(1, decode_agent_1(as_object(decode_json(result))), name)


def shown_text(update: JsonDict) -> str:
    """Return the text of what a call shows, of all its text blocks."""
    blocks = [item.get("content") for item in update.get("content") or () if item.get("type") == "content"]
    return "".join(block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text")


class VendorAgent(AgentV1):
    """The agent's side of a vendor dialect."""

    # Requests and notifications that it serves; any other is not found, also where version 1 has it.
    methods: ClassVar[frozenset[str]]
    # The updates it sends, and the fields of each.
    update_fields: ClassVar[Mapping[str, frozenset[str]]]
    # The fields of an opened session's answer.
    opened_fields: ClassVar[frozenset[str]]
    permission_options: ClassVar[Sequence[VendorPermissionOption]]

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(client, agent)
        self._takes_notices = False  # no document has the update, whatever its client names
        self._output_key = ""  # nor a terminal that a client draws
        self._air = AirProfile(ClientCapabilities(), agent)

    # -- requests of the client --------------------------------------------------------------------------------------

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode a request that the document names, or an extension; errors have the document's codes."""
        # One place for both ways a request can fail early: `vendor_error` must see each, and `PeerMistake` is what the
        # link turns into an answer.
        try:
            if ALIASES.get(method, method) not in self.methods and not method.startswith("_"):
                raise PeerMistake(METHOD_NOT_FOUND, "Method not found")
            return self.decode_named_request(id, method, params)
        except PeerMistake as mistake:
            raise PeerMistake(*self.vendor_error(WireError(mistake.code, mistake.message, mistake.data))) from None

    def decode_named_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode a request that the document names, as version 1 has it. Dialects override this."""
        return super().decode_request(id, method, params)

    def vendor_error(self, error: WireError) -> WireError:
        """Return an error with the document's codes; here a session that does not exist is an invalid parameter."""
        return error._replace(code=INVALID_PARAMS) if error.code == NOT_FOUND else error

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Fail as `super()` does, with the document's error codes."""
        return super().encode_failure(id, request, self.vendor_error(error))

    # -- permission --------------------------------------------------------------------------------------------------

    def offered_options(self, request: services.RequestPermission) -> list[services.PermissionOption]:
        """Return the document's options, as far as the question has one of their kind."""
        # An option of a kind that the agent did not offer could be chosen, and would mean nothing to it.
        kinds = {option.kind for option in request.options}
        return [
            services.PermissionOption(one.option_id, one.name, one.kind)
            for one in self.permission_options
            if one.kind in kinds
        ]

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a permission has the document's options."""
        if isinstance(request, services.RequestPermission):
            request = replace(request, options=self.offered_options(request))
        return super().encode_request(request)

    def decode_reply(self, request: Request, result: Raw) -> DecodedReply:
        """Decode as `super()` does; a choice among the document's options becomes one of the request's own options."""
        replied = super().decode_reply(request, result)
        if not isinstance(request, services.RequestPermission) or not isinstance(replied.reply, _ANSWER):
            return replied
        return DecodedReply(self._own_option(request, replied.reply), replied.events)

    def _own_option(
        self, request: services.RequestPermission, answer: services.PermissionAnswer
    ) -> services.PermissionAnswer:
        """Return the answer with the request's own option of the chosen kind; without such an option, a no."""
        if not isinstance(answer.outcome, services.Selected):
            return answer
        chosen = answer.outcome.option_id
        kind = next((one.kind for one in self.permission_options if one.option_id == chosen), "")
        meant = next((option.option_id for option in request.options if option.kind == kind), None)
        return replace(answer, outcome=services.Dismissed() if meant is None else services.Selected(meant))

    # -- events ------------------------------------------------------------------------------------------------------

    def _notify(self, session_id: str, updates: Sequence[wire.WireValue], **outer: Any) -> Sequence[Out]:
        # As plain values from here on: no schema has the documents' fields.
        reshaped = [one for update in updates for one in self.reshape(session_id, plain(Raw(wire.encode(update))))]
        known = [update for update in reshaped if update["sessionUpdate"] in self.update_fields]
        return [out for update in known for out in self.update_message(session_id, update)]

    def with_whole_content(self, session_id: str, event: events.ToolCallUpdate) -> events.ToolCallUpdate:
        """Return a call that ends with everything it has shown: for clients that are sent its content once."""
        if event.status not in FINAL_STATUSES or event.content is not UNSET:
            return event
        # The memory of version 1 has it: every item that was sent or held back since the call was announced.
        known = self._session(session_id).calls.get(event.tool_call_id)
        return event if known is None or not known.content else replace(event, content=list(known.content))

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return an update of version 1 as this document has it: itself, others, or nothing. Dialects override this."""
        return [update]

    def only_known_fields(self, update: JsonDict) -> JsonDict:
        """Return an update with the document's fields only."""
        fields = self.update_fields[update["sessionUpdate"]]
        return {name: value for name, value in update.items() if name == "sessionUpdate" or name in fields}

    def update_params(self, session_id: str, update: JsonDict) -> JsonDict:
        """Return the params of the notification that carries an update."""
        return {"sessionId": session_id, "update": update}

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame around the text; an empty tuple for a kind of text that the document does not have."""
        # Also where nothing is sent: the message counts as sent, so that no whole message repeats it.
        self._session(session_id).message_ids[message_id] = None
        if kind not in self.update_fields:
            return ()
        more = message_id_field(message_id) if "messageId" in self.update_fields[kind] else b""
        return text_frame_head(session_id, kind, more), TEXT_FRAME_TAIL

    def text_message(self, session_id: str, kind: str, text: str) -> Sequence[Out]:
        """Encode a text of ours as a piece of a message or thought."""
        return self.update_message(session_id, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def update_message(self, session_id: str, update: JsonDict) -> Sequence[Out]:
        """Encode one update as its notification."""
        return [
            NotificationMessage(
                "session/update", msgspec.json.encode(self.update_params(session_id, self.only_known_fields(update)))
            )
        ]

    # -- answers -----------------------------------------------------------------------------------------------------

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """Encode as `super()` does, with the document's fields only."""
        body = plain(Raw(super().encode_opened(reply, kind, encoded_options)))
        return msgspec.json.encode({name: value for name, value in body.items() if name in self.opened_fields})

    def encode_end(self, event: events.Idle) -> bytes:
        """Encode the stop reason, and nothing beside it."""
        reason = event.stop_reason if event.stop_reason in events.STOP_REASONS else "end_turn"
        return msgspec.json.encode({"stopReason": reason})

    def encode_failed_turn(self, session_id: str, id: Id, error: WireError) -> Sequence[Out]:
        """Answer a failed turn as `super()` does, with the document's error codes."""
        return [ErrorMessage(id, self.vendor_error(error))]


_ANSWER: Final = services.PermissionAnswer


def type_field(kind: str) -> bytes:
    """Return `type`, the second name of an update in two of the documents, as a field of a text frame."""
    return b'"type":%b,' % msgspec.json.encode(kind)


def limited_agent(agent: AgentHello, **capabilities: bool) -> AgentHello:
    """Return the agent as a document offers it: no login, and no method of its own but those in `capabilities`."""
    limited = replace(agent.capabilities, **{**_NO_METHODS, **capabilities})
    return replace(agent, capabilities=limited, auth_methods=[])


# Capabilities that are methods of their own; a document names those that it has.
_NO_METHODS: Final = dict.fromkeys(
    (
        *("resume", "list", "close", "delete", "fork", "archive", "status", "title", "additional_directories"),
        *("logout", "auth_status", "providers", "steering", "rewind"),
    ),
    False,
)

__all__ = [
    "ClientHello",
    "VendorAgent",
    "VendorPermissionOption",
    "decode_agent",
    "decode_client",
    "encode_agent",
    "encode_client",
    "limited_agent",
    "shown_text",
    "type_field",
]
