"""What every dialect does alike: requests and replies by a table of routes, notifications, extensions, capabilities.

A dialect of one version and role adds what its wire does differently: how events are encoded or decoded, and what a
prompt is. `Route`s are data; where a request is more than names, a route carries small functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from dragoman import limits
from dragoman.dialects.codec.elicitations import unoffered
from dragoman.dialects.codec.permissions import only_offered, refuse_duplicates, unfolded
from dragoman.dialects.codec.transcriber import Renames, Transcriber, plain
from dragoman.dialects.contract import (
    FORWARDED_PREFIXES,
    DecodedNotification,
    DecodedReply,
    ErrorMessage,
    Id,
    NotificationMessage,
    Out,
    RequestMessage,
    ResultMessage,
    SessionEvent,
)
from dragoman.dialects.tolerance.requests import ALIASES, SIBLINGS, corrected_params
from dragoman.errors import (
    CANCELLED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PeerMistake,
    RequestFailed,
    UsageError,
    WireError,
)
from dragoman.vocabulary.asking import Done, Extension, ExtensionNote, ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Chunk
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientCapabilities
from dragoman.vocabulary.requests import (
    FORK_AT,
    PROMPT_REQUIRED,
    ForkSession,
    ListSessions,
    Login,
    Logout,
    NewSession,
    PromptRequest,
    ResumeSession,
    SteerTurn,
)
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    Dismissed,
    Elicit,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    WriteTextFile,
)
from dragoman.wire import types as wire

if TYPE_CHECKING:
    from dragoman.dialects.codec.relayed_updates import RelayedUpdate, Speech

# Methods outside the vocabulary, passed on as they are: extensions begin with an underscore; the others have types in
# the schema, but no part of Dragoman serves them.
EXTENSION_PREFIXES: Final = ("_", *FORWARDED_PREFIXES)
# How every known peer begins an update. A frame that starts so, and whose rest is one object, has no second `method`.
UPDATE_HEADS: Final = (
    b'{"jsonrpc":"2.0","method":"session/update","params":',
    b'{"jsonrpc": "2.0", "method": "session/update", "params": ',
)
# The frame of a text chunk in parts, for every dialect: by `%`, because an f-string cannot make bytes.
_UPDATE: Final = UPDATE_HEADS[0] + b'{"sessionId":%b,"update":{'
_TEXT_CHUNK: Final = b'"sessionUpdate":%b,%b"content":{"type":"text","text":'
# Closes the content, the update, the params and the frame.
TEXT_FRAME_TAIL: Final = b"}}}}"
# Of a path that is refused, enough to know it by.
_SHOWN_CHARACTERS: Final = 200
# Served even with the limit of requests in flight used up: these end work, or help a user to find what goes on.
UNLIMITED: Final = frozenset({"session/cancel", "session/close", "session/list", "sessions/list"})


class Route(msgspec.Struct, frozen=True, eq=False):
    """One method: its request in the vocabulary, and the types of its params and result on the wire."""

    method: str
    request: type[Request]
    params: Any
    result: Any
    reply: type[Reply] = Done
    # The capability that the receiver must have offered, as an attribute of its capabilities; empty: always there.
    needs: str = ""
    # Wire attribute to vocabulary attribute, where the two have different names.
    renames: Renames = {}  # never changed
    # Fields of the request that the method itself stands for, as `session/load` stands for a replay from the start.
    implies: Mapping[str, Any] = {}  # never changed
    # In place of the tables, where more than names differ. They take and return wire values, not bytes.
    decode_params: Callable[[Any], Request] | None = None
    encode_params: Callable[[Any], Any] | None = None
    decode_result: Callable[[Any], Reply] | None = None
    encode_result: Callable[[Any], Any] | None = None


class NoteRoute(NamedTuple):
    """One method of a notification, its note in the vocabulary, and the type of its params on the wire."""

    method: str
    note: type[Note]
    params: Any


# The tables of all links that have the same routes are the same: a server has thousands of links.
_TABLES: Final = 64


@lru_cache(_TABLES)
def _by_method(routes: tuple[Route, ...]) -> Mapping[str, Route]:
    return {route.method: route for route in routes}


@lru_cache(_TABLES)
def _by_request(routes: tuple[Route, ...]) -> Mapping[type[Request], Route]:
    return {route.request: route for route in routes}


class DialectBase:
    """The common part of every dialect; the methods of `contract.Dialect` are documented there.

    `incoming` and `outgoing` are the routes of the peer's requests and of ours, `offered` what we have said that we can
    do, `granted` what the peer has said. A method whose capability was not offered does not exist, in both directions.
    """

    unlimited = UNLIMITED
    null_ids = True
    replies_to_prompt_at_turn_end = False
    takes_repeats = False
    queues_prompts = False
    salt = ""
    # By the request: what a result is passed through before it is decoded.
    corrections: Mapping[type[Request], Callable[[Raw], Raw]] = {}  # never changed

    def __init__(
        self,
        codec: Transcriber,
        *,
        incoming: Iterable[Route],
        outgoing: Iterable[Route],
        incoming_notes: Iterable[NoteRoute] = (),
        outgoing_notes: Iterable[NoteRoute] = (),
        offered: AgentCapabilities | ClientCapabilities,
        granted: AgentCapabilities | ClientCapabilities,
    ) -> None:
        self.codec: Final = codec
        self._incoming: Final = _by_method(tuple(incoming))
        # Two routes may have one request, as `session/load` and `session/resume` do; a dialect with such a pair encodes
        # the reply by itself.
        self._incoming_by_type: Final = _by_request(tuple(self._incoming.values()))
        self._outgoing: Final = _by_request(tuple(outgoing))
        self._incoming_notes: Final = {route.method: route for route in incoming_notes}
        self._outgoing_notes: Final = {route.note: route for route in outgoing_notes}
        self._offered: Final = offered
        self._granted: Final = granted

    # -- from the peer -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Do nothing: requests come one by one, and each makes its own decoder at its first use."""

    @property
    def speech(self) -> "Speech | None":
        """Return None: unless a dialect says so, every update is encoded for its reader."""
        return None

    def relayed_update(self, params: Raw) -> "RelayedUpdate | None":
        """Return None: unless a dialect says so, every update is decoded."""
        return None

    def note_relayed(self, session_id: str, update: "RelayedUpdate") -> None:
        """Do nothing: unless a dialect says so, no update depends on those before it."""

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode the peer's request; `PeerMistake` for a method that we did not offer, or params that make no sense.

        A `Note`: it was sent as a request, and is answered with an empty result.
        """
        # The method's own name first; then names that peers are known to use for it; then what the other version of the
        # protocol calls it, which is a method of its own where this version has both.
        route = self._incoming.get(method) or self._incoming.get(ALIASES.get(method) or SIBLINGS.get(method, ""))
        if route is None:
            return self.decode_unrouted(id, method, params)
        if route.needs and not getattr(self._offered, route.needs):
            raise PeerMistake(METHOD_NOT_FOUND, "Method not found")
        value = self.read_params(route, params)
        request = (
            route.decode_params(value)
            if route.decode_params
            else self.codec.decode_as(value, route.request, route.renames)
        )
        if route.implies:
            request = msgspec.structs.replace(request, **route.implies)
        # Here, so that no layer above ever has a relative path or an empty prompt; and for every dialect.
        check = _CHECKS.get(request.__class__)
        if check is not None:
            check(request)
        if type(request) is Elicit and (problem := unoffered(request, self._offered)):
            raise PeerMistake(*problem)
        return request

    def read_params(self, route: Route, params: Raw) -> Any:
        """Decode params as the schema types them; if that fails, as a peer known for the mistake can only have meant.

        The schema's way comes first, so a correction never changes what a conforming peer has said.
        """
        try:
            return wire.decode(params or b"{}", route.params)
        except PeerMistake:
            meant = corrected_params(route.method, params)
            if meant is None:
                raise
            return wire.decode(meant, route.params)

    def decode_unrouted(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode a request whose method has no route: a notification sent as one, or an extension."""
        note = self._incoming_notes.get(method)
        if note is not None:
            # A notification sent as a request: clients exist that do this with `session/cancel`.
            return self.codec.decode_as(wire.decode(params or b"{}", note.params), note.note)
        if method.startswith(EXTENSION_PREFIXES):
            return Extension(method, plain(params) if params else UNSET)
        raise PeerMistake(METHOD_NOT_FOUND, "Method not found")

    def events_at_request(self, request: Request) -> Sequence[SessionEvent]:
        """Return nothing: this wire sends its states as events."""
        return ()

    def events_at_reply(self, request: Request) -> Sequence[SessionEvent]:
        """Return nothing: this wire sends its states as events."""
        return ()

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode the peer's notification; `PeerMistake` for an unknown one, which the link reports and ignores."""
        route = self._incoming_notes.get(method)
        if route is not None:
            return [self.codec.decode_as(wire.decode(params or b"{}", route.params), route.note)]
        if method.startswith(EXTENSION_PREFIXES):
            return [ExtensionNote(method, plain(params) if params else UNSET)]
        raise PeerMistake(METHOD_NOT_FOUND, "unknown notification")

    def decode_text_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """Return None: only a client is sent updates."""
        return None

    def continues(self, session_id: str, kind: type[Chunk], message_id: str) -> bool:
        """Return False: only a client is sent updates."""
        return False

    def decode_cancel(self, id: Id) -> Note | None:
        """Return None: cancelling a request means no more than that."""
        return None

    def decode_reply(self, request: Request, result: Raw) -> DecodedReply:
        """Decode the answer to a request of ours. A permission counts only if it names one option that was offered."""
        kind = request.__class__  # in place of `isinstance`, which takes as long as decoding a short reply
        if kind is Extension:
            return DecodedReply(ExtensionResult(plain(result)))
        if kind is RequestPermission:
            return DecodedReply(self._decode_permission(request, result))
        correct = self.corrections.get(kind)
        return DecodedReply(self._read_result(kind, result if correct is None else correct(result)))

    def _read_result(self, kind: type[Request], result: Raw) -> Reply:
        # `encode_request` has found the same route before: a request without one was never sent.
        route = self._outgoing[kind]
        value = wire.decode(null_as_object(result), route.result)
        return route.decode_result(value) if route.decode_result else self.codec.decode_as(value, route.reply)

    def _decode_permission(self, request: Any, result: Raw) -> Reply:
        # A permission is the one answer that must never be read as more than it says. Before the schema's reader: no
        # key twice (readers differ in which one counts), and the flat form of some clients made the schema's. After it:
        # an id that was not offered, or that two options have, is no choice.
        offered = self.offered_options(request)
        refuse_duplicates(result)
        reply = self._read_result(RequestPermission, unfolded(result, offered))
        return only_offered(reply, offered) if isinstance(reply, PermissionAnswer) else reply

    def offered_options(self, request: RequestPermission) -> list[PermissionOption]:
        """Return the options of a permission that were sent; an answer must name one of these."""
        return request.options

    def decode_failure(self, request: Request, error: WireError) -> DecodedReply | None:
        """Return None (the request has failed), but `Dismissed` for a permission request that was cancelled."""
        if isinstance(request, RequestPermission) and error.code == CANCELLED:
            return DecodedReply(PermissionAnswer(Dismissed()))
        return None

    # -- to the peer -------------------------------------------------------------------------------------------------

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode a request of ours; `RequestFailed` for one that the peer has not offered to serve."""
        if type(request) is Extension:
            return RequestMessage(
                request.method, b"" if request.params is UNSET else msgspec.json.encode(request.params)
            )
        route = self.route_of(request)
        if route.encode_params:
            value = route.encode_params(request)
        else:
            renames = {mine: theirs for theirs, mine in route.renames.items()}
            value = self.codec.encode_as(request, route.params, renames)
        return RequestMessage(route.method, wire.encode(value))

    def route_of(self, request: Request) -> Route:
        """Return the route of a request of ours; `RequestFailed` if the peer does not have it.

        It fails here as if the peer had answered so: the protocol forbids to ask for what was not offered.
        """
        route = self._outgoing.get(type(request))
        if route is None or (route.needs and not getattr(self._granted, route.needs)):
            raise not_offered()
        if type(request) is Elicit and (problem := unoffered(request, self._granted)):
            raise RequestFailed(*problem)
        return route

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Encode the answer to a request of theirs."""
        # An extension without a result is answered with null: every request needs an answer, and JSON-RPC a `result`.
        if type(reply) is ExtensionResult:
            return [ResultMessage(id, b"null" if reply.result is UNSET else msgspec.json.encode(reply.result))]
        route = self._incoming_by_type[type(request)]
        value = route.encode_result(reply) if route.encode_result else self.codec.encode_as(reply, route.result)
        return [ResultMessage(id, wire.encode(value))]

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Encode an error as the answer to a request of theirs."""
        return [ErrorMessage(id, error)]

    def encode_notification(self, note: Note) -> Sequence[Out]:
        """Encode a notification of ours; nothing where this wire has none for it."""
        if isinstance(note, ExtensionNote):
            return [NotificationMessage(note.method, b"" if note.params is UNSET else msgspec.json.encode(note.params))]
        route = self._outgoing_notes.get(type(note))
        if route is None:
            return []
        return [NotificationMessage(route.method, wire.encode(self.codec.encode_as(note, route.params)))]

    def encode_event(self, session_id: str, event: AnyEvent) -> Sequence[Out]:
        """Raise `UsageError`: only an agent sends events."""
        raise UsageError("a client tells no events")

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Raise `UsageError`: only an agent sends events."""
        raise UsageError("a client tells no events")


def text_frame_head(session_id: str, kind: str, more: bytes = b"") -> bytes:
    """Return a `session/update` frame up to the JSON string of its text; `more` are encoded fields before the content.

    Every dialect sends text by this template: a chunk of text then costs one string encoding, whatever the dialect.
    """
    return _UPDATE % msgspec.json.encode(session_id) + text_chunk_head(kind, more)


def text_chunk_head(kind: str, more: bytes = b"") -> bytes:
    """Return the fields of a text chunk up to the JSON string of its text, without the brace before them."""
    return _TEXT_CHUNK % (msgspec.json.encode(kind), more)


def message_id_field(message_id: str) -> bytes:
    """Return `messageId` as one of the `more` fields of a text frame."""
    return b'"messageId":%b,' % msgspec.json.encode(message_id)


def with_login(routes: Iterable[Route], agent: AgentHello, *only: type[Request]) -> list[Route]:
    """Return the routes, without those in `only` (default: login and logout) if the agent has no way to log in."""
    return [route for route in routes if agent.auth_methods or route.request not in (only or (Login, Logout))]


def null_as_object(result: Raw) -> "Raw | bytes":
    """Return an empty object for null: peers exist that answer so where the result has no fields."""
    return b"{}" if len(result) == 4 and bytes(result) == b"null" else result


def check_prompt(request: PromptRequest | SteerTurn) -> None:
    """Raise `PeerMistake` for an empty prompt."""
    if not request.prompt:
        raise PeerMistake(INVALID_PARAMS, "The prompt is empty")


def check_paths(*paths: str) -> None:
    """Raise `PeerMistake` for a relative path, which the protocol forbids: it would name another file on each side."""
    for path in paths:
        if not is_path(path):
            shown = path if len(path) <= _SHOWN_CHARACTERS else f"{path[:_SHOWN_CHARACTERS]}…"
            raise PeerMistake(INVALID_PARAMS, f"Paths must be absolute; this one is not: {shown!r}")


def _check_optional_cwd(request: ListSessions | CreateTerminal) -> None:
    if isinstance(request.cwd, str):
        check_paths(request.cwd)


def _check_command_cwd(request: RequestPermission) -> None:
    if isinstance(request.subject, CommandSubject):
        check_paths(request.subject.cwd)


def _check_fork(request: ForkSession) -> None:
    check_paths(request.cwd, *(request.additional_directories or ()))
    if not isinstance(request.message_id, str | None) or request.message_id == "":
        raise PeerMistake(INVALID_PARAMS, f"{FORK_AT} is the id of a message")


def _check_steering(request: SteerTurn) -> None:
    check_prompt(request)
    # Another wish than the known one would begin a turn that the client did not want.
    steering = (request.meta or {}).get("steering")
    if isinstance(steering, dict) and steering.get("idleBehavior", PROMPT_REQUIRED) != PROMPT_REQUIRED:
        raise PeerMistake(INVALID_PARAMS, f"The one idleBehavior of steering is {PROMPT_REQUIRED}")


# What the types of the wire cannot say. A table and not a `match`: most requests have nothing to be checked.
_CHECKS: Final[dict[type[Request | Note], Callable[[Any], None]]] = {
    **dict.fromkeys(
        (NewSession, ResumeSession),
        lambda request: check_paths(request.cwd, *(request.additional_directories or ())),
    ),
    **dict.fromkeys((ReadTextFile, WriteTextFile), lambda request: check_paths(request.path)),
    ListSessions: _check_optional_cwd,
    CreateTerminal: _check_optional_cwd,
    RequestPermission: _check_command_cwd,
    PromptRequest: check_prompt,
    SteerTurn: _check_steering,
    ForkSession: _check_fork,
}


def is_path(path: str) -> bool:
    """Return whether a path is absolute, of a sane length and without NUL."""
    # Paths of Windows are accepted everywhere: which system the peer runs on is not known here.
    drive = path[:1].isascii() and path[:1].isalpha() and path[1:3] in (":\\", ":/")
    absolute = drive or path.startswith(("/", "\\\\"))
    return absolute and "\0" not in path and len(path.encode("utf-8", "replace")) <= limits.PATH_BYTES


def not_offered() -> RequestFailed:
    """Return the error of a request that the peer has not offered to serve."""
    return RequestFailed(METHOD_NOT_FOUND, "The other side does not offer this")


def busy_error() -> PeerMistake:
    """Return the error of a second prompt, where the wire can only end one turn at a time."""
    return PeerMistake(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
