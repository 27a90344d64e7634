"""One frame to one message value: a request, a notification, a reply or a failure.

Owns what JSON-RPC says about the outer object; `params`, `result` and `data` stay unread. Knows neither method names
nor what is in flight. The promise: `parse` gives a message or raises `BadMessage`, whatever the bytes, in time linear
in them. What it gives is valid JSON to the last byte, valid UTF-8, free of lone surrogates, at most
`limits.NESTING_DEPTH` deep, and has each envelope key once.

Two readers agree on every frame. `_read` is the rule: precise, and names the fault. Before it, `parse` decodes the
usual keys at once and takes the result when the length proves that nothing else can be in the frame.
"""

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, final

from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder
from msgspec.json import decode as decode_json

from dragoman import limits
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, PeerMistake
from dragoman.wire.soundness import has_escaped_characters, is_deeper, is_utf8, with_surrogates_filled

if TYPE_CHECKING:
    from collections.abc import Callable

# What the schema calls `RequestId`. Numbers are integers of 64 bits; a fraction is refused.
Id: TypeAlias = int | str | None
# Params that were absent or null. JSON-RPC makes no difference, and version 1 of the protocol does not either.
NOTHING: Final = Raw(b"")
_NULL: Final = Raw(b"null")


@final
class RequestEnvelope(Struct, frozen=True, gc=False):
    """A question. `params` is an object, or `NOTHING` where it was absent or null."""

    id: Id
    method: str
    params: Raw


@final
class Notification(Struct, frozen=True, gc=False):
    """A statement. `params` is an object, or `NOTHING` where it was absent or null."""

    method: str
    params: Raw


class ResultResponse(Struct, frozen=True, gc=False):
    """An answer to our call."""

    id: Id
    result: Raw


class ErrorResponse(Struct, frozen=True, gc=False):
    """An error as the answer to our call; `data` is None where it was absent or null."""

    id: Id
    code: int
    message: str
    data: Raw | None = None


Message: TypeAlias = RequestEnvelope | Notification | ResultResponse | ErrorResponse


class BadMessage(PeerMistake):
    """A frame that is no message. `id` is the one to answer to, None where none could be read.

    Not `answerable`: it was meant as an answer, or as a notification, and neither is ever answered.
    """

    def __init__(self, code: int, message: str, data: object = None, *, id: Id = None, answerable: bool = True) -> None:
        super().__init__(code, message, data)
        self.id = id
        self.answerable = answerable


_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Usual(Struct, gc=False):
    jsonrpc: Literal["2.0"]
    # `float` is there to be refused: without it msgspec would need an exception to say so.
    id: _Int64 | float | str | None | UnsetType = UNSET
    method: str | None = None
    params: Raw = NOTHING
    result: Raw = NOTHING


_decode_usual: Final = Decoder(_Usual).decode
# The shortest frame that can be too deep: that many brackets, opened and closed.
_SHALLOW: Final = 2 * (limits.NESTING_DEPTH + 1)
# From this many bytes on, brackets are looked for one by one.
_LARGE: Final = 65_536
_NOTIFICATION: Final = len('{"jsonrpc":"2.0","method":"","params":}')
_REQUEST: Final = len('{"jsonrpc":"2.0","id":,"method":"","params":}')
_REPLY: Final = len('{"jsonrpc":"2.0","id":,"result":}')
# Single bytes as numbers: looking for them is five times faster than for a `bytes` of one.
_BACKSLASH: Final = ord("\\")
_OPEN_BRACE: Final = ord("{")
_OPEN_BRACKET: Final = ord("[")
_CLOSE_BRACE: Final = ord("}")


def parse(frame: bytes) -> Message:
    """Return the message in `frame`; raise `BadMessage`, and nothing else."""
    # Three checks of the whole frame come first, because neither reader below looks into params and results. The
    # order is by cost: nearly all frames are ASCII, small, and without an escaped surrogate.
    if not frame.isascii() and not is_utf8(frame):
        raise BadMessage(PARSE_ERROR, "Parse error: not UTF-8")
    if len(frame) >= _SHALLOW and _has_many_brackets(frame) and is_deeper(frame, limits.NESTING_DEPTH):
        raise _too_deep()
    if _BACKSLASH in frame and has_escaped_characters(frame):
        frame = _without_lone_surrogates(frame)
    try:
        usual = _decode_usual(frame)
    except (DecodeError, RecursionError):  # the latter only where the caller's stack is nearly used up
        return _read(frame)

    # msgspec takes the last of two equal keys and ignores unknown ones, without a word. A frame with two methods or two
    # ids would then mean one thing here and another to a peer that takes the first, so such frames must be refused; and
    # to look at every key of every frame in Python would cost more than the decoding.
    #
    # The proof by length. Each key that was found takes at least the bytes of its compact form: the quoted name, the
    # colon, the value, and a comma before it (`_NOTIFICATION`, `_REQUEST`, `_REPLY` count these, with the braces).
    # A value takes at least the bytes that are counted for it: the text of an integer or of a string cannot be written
    # shorter than `str(id)` or `len(method)`, only longer (by escapes, or a character of several bytes), and `Raw` is
    # the very bytes of the frame. If all these minima add up to the length of the frame, then nothing else is in it:
    # no repeated key, no unknown one, no space, no escape in an id or a method. A frame with anything more is longer,
    # the sum does not match, and the precise reader decides. So the short way never accepts what the long one refuses.
    #
    # The sum needs every key to be there, because an absent one would leave room for another: so each is asked for.
    # And params must be an object. They are the only one of the three values that can end in "}": if the byte before
    # the closing brace is one, it belongs to params that are an object (a string, a number or a list ends otherwise).
    id, method, params = usual.id, usual.method, usual.params
    if id is UNSET:
        # A notification; a response needs an id, so it cannot be one.
        if method is not None and params and frame[-2] == _CLOSE_BRACE:
            # Spaces after ":" and "," are so common (Python's `json`) that they are worth a second look, not `_read`.
            spare = len(frame) - _NOTIFICATION - len(method) - len(params)
            if spare == 0 or (spare > 0 and _is_spaced(frame, b"", method, params)):
                return Notification(method, params)
        return _read(frame)
    if isinstance(id, int):
        text = str(id)
    elif isinstance(id, str) and len(id) <= limits.ID_CHARACTERS:
        text = f'"{id}"'
    else:
        return _read(frame)  # null, a fraction, or too long: the precise reader has the words for it
    if method is None:
        result = usual.result
        if result and len(frame) == _REPLY + len(text) + len(result):
            return ResultResponse(id, result)
    elif params and frame[-2] == _CLOSE_BRACE:
        spare = len(frame) - _REQUEST - len(text) - len(method) - len(params)
        if spare == 0 or (spare > 0 and _is_spaced(frame, text.encode(), method, params)):
            return RequestEnvelope(id, method, params)
    return _read(frame)


def _has_many_brackets(frame: bytes) -> bool:
    """Whether more brackets are opened than may be nested; only then can a frame be too deep."""
    if len(frame) < _LARGE:
        return frame.count(_OPEN_BRACE) + frame.count(_OPEN_BRACKET) > limits.NESTING_DEPTH
    # A large frame is mostly one long text. Looking for the next bracket passes over text ten times faster than
    # counting does, and there are at most so many to find.
    found = 0
    for bracket in (_OPEN_BRACE, _OPEN_BRACKET):
        at = frame.find(bracket)
        while at >= 0:
            found += 1
            if found > limits.NESTING_DEPTH:
                return True
            at = frame.find(bracket, at + 1)
    return False


def _is_spaced(frame: bytes, id: bytes, method: str, params: Raw) -> bool:
    """Return whether the frame is exactly what Python's `json.dumps` writes; its keys are then known by their bytes."""
    name = method.encode()
    if id:
        head = b'{"jsonrpc": "2.0", "id": %b, "method": "%b", "params": ' % (id, name)
    else:
        head = b'{"jsonrpc": "2.0", "method": "%b", "params": ' % name
    return len(frame) == len(head) + len(params) + 1 and frame.startswith(head)


def answered_id(head: bytes) -> int | None:
    """Return the id of the call that a cut-off frame answers; None if it is no answer, or the id is not in `head`.

    For frames past the size limit: the call that waits for one must fail at once instead of waiting for ever.
    """
    # Cut before the value and closed by hand, the head is a small object. A peer that writes the id last is not
    # understood here; its call ends by its own timeout.
    ends = [at for at in (head.find(b'"result"'), head.find(b'"error"')) if at >= 0]
    if not ends:
        return None
    try:
        usual = _decode_usual(head[: min(ends)].rstrip(b" \t\r\n").removesuffix(b",") + b"}")
    except ValueError:
        return None
    return usual.id if usual.method is None and isinstance(usual.id, int) else None


# The precise reader: the rule, of which the way above is a shortcut. It comes second although it decides, because a
# conforming peer never needs it. `tests/wire/test_envelope.py` holds both to the same answer for every frame.

_KEYS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
# Members of the outer object, unknown ones included. The protocol knows six.
_MEMBERS: Final = 64

_decode_anything: Final = Decoder(Raw).decode
_decode_id: "Final[Callable[[bytes], Id]]" = Decoder(_Int64 | str | None).decode
_decode_text: Final = Decoder(str).decode


class _Error(Struct, gc=False):
    code: _Int64
    message: str
    data: Raw = NOTHING


_decode_error: Final = Decoder(_Error).decode


def _read(frame: bytes) -> Message:
    members, repeated = _members(frame)
    id = None if "id" in repeated else _id(members)
    fault = f"`{min(repeated)}` is there twice" if repeated else _fault(members)
    if fault:
        # A broken answer is never answered: two peers that each refuse the other's refusal would not stop.
        raise BadMessage(INVALID_REQUEST, f"Invalid request: {fault}", id=id, answerable=not _is_answer(members))
    return _answer(members, id) if _is_answer(members) else _question(members, id)


# A dict with equal keys, so that repeated ones can be seen: msgspec makes each key by `dec_hook`, and objects of this
# class are equal only to themselves.
class _Key:
    """A key with an identity of its own, so that a dict of them keeps equal ones apart."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _TooManyMembers(Exception):
    pass


def _members(frame: bytes) -> tuple[dict[str, Raw], set[str]]:
    """Return the envelope keys with their values, and the keys that are there more than once."""
    left = _MEMBERS

    def key(_: type, name: str) -> _Key:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooManyMembers
        return _Key(name)

    try:
        pairs = decode_json(frame, type=dict[_Key, Raw], dec_hook=key)
    except ValidationError:
        _check_json(frame)
        kind = "an array; batches are not served" if frame.strip()[:1] == b"[" else "no object"
        raise BadMessage(INVALID_REQUEST, f"Invalid request: the message is {kind}") from None
    except _TooManyMembers:
        _check_json(frame)
        raise BadMessage(INVALID_REQUEST, "Invalid request: too many members", {"limit": _MEMBERS}) from None
    except (DecodeError, RecursionError) as error:
        raise _not_json(error) from None
    members: dict[str, Raw] = {}
    repeated = set()
    for found, value in pairs.items():
        if found.name in members:
            repeated.add(found.name)
        if found.name in _KEYS:
            members[found.name] = value
    return members, repeated


def unique_members(text: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object, unread; None if it is no object, or has a key twice."""
    try:
        pairs = decode_json(text, type=dict[_Key, Raw], dec_hook=lambda _, name: _Key(name))
    except (DecodeError, RecursionError):
        return None
    members = {key.name: value for key, value in pairs.items()}
    return members if len(members) == len(pairs) else None


def _id(members: dict[str, Raw]) -> Id:
    """Return the id; None where there is none that could be answered to."""
    try:
        id = _decode_id(members.get("id", _NULL))
    except DecodeError:
        return None
    return None if isinstance(id, str) and len(id) > limits.ID_CHARACTERS else id


def _is_answer(members: dict[str, Raw]) -> bool:
    return "method" not in members and ("result" in members or "error" in members)


def _fault(members: dict[str, Raw]) -> str:
    """Return what is wrong with the envelope, in words for the peer; empty if nothing is."""
    if "jsonrpc" not in members or _text(members["jsonrpc"]) != "2.0":
        return '`jsonrpc` must be "2.0"'
    # `_id` gives None for null and for what is no id; only null is written so.
    if "id" in members and _id(members) is None and members["id"] != _NULL:
        if len(members["id"]) > limits.ID_CHARACTERS:
            return f"`id` must have at most {limits.ID_CHARACTERS} characters"
        return "`id` must be a string, an integer of 64 bits or null"
    if _is_answer(members):
        return "" if "id" in members else "an answer needs an `id`"
    if "method" not in members:
        return "`method` is missing"
    if _text(members["method"]) is None:
        return "`method` must be a string"
    if "result" in members or "error" in members:
        return "a request has no `result` and no `error`"
    return ""


def _question(members: dict[str, Raw], id: Id) -> Message:
    method = _decode_text(members["method"])
    params = members.get("params", NOTHING)
    if params == _NULL:
        params = NOTHING
    elif params and bytes(params)[:1] != b"{":
        raise BadMessage(INVALID_PARAMS, "Invalid params: not an object", id=id, answerable="id" in members)
    return RequestEnvelope(id, method, params) if "id" in members else Notification(method, params)


def _answer(members: dict[str, Raw], id: Id) -> Message:
    """Return the response. A null beside the other member counts as absent: JSON-RPC 1 wrote both."""
    result, error = members.get("result"), members.get("error")
    if result is not None and (error is None or error == _NULL):
        return ResultResponse(id, result)
    if error is not None and (result is None or result == _NULL):
        try:
            return ErrorResponse(id, *_error(error))
        except DecodeError:
            fault = "`error` needs an integer `code` and a `message`"
    else:
        fault = "an answer has a `result` or an `error`, not both"
    raise BadMessage(INVALID_REQUEST, f"Invalid answer: {fault}", id=id, answerable=False)


def _error(raw: Raw) -> tuple[int, str, Raw | None]:
    error = _decode_error(raw)
    return error.code, error.message, error.data if error.data and error.data != _NULL else None


def _text(raw: Raw) -> str | None:
    try:
        return _decode_text(raw)
    except DecodeError:
        return None


def _check_json(frame: bytes) -> None:
    try:
        _decode_anything(frame)
    except (DecodeError, RecursionError) as error:
        raise _not_json(error) from None


def _not_json(error: DecodeError | RecursionError) -> BadMessage:
    return _too_deep() if isinstance(error, RecursionError) else BadMessage(PARSE_ERROR, "Parse error: not JSON")


def _too_deep() -> BadMessage:
    return BadMessage(INVALID_REQUEST, "Invalid request: nested too deeply", {"limit": limits.NESTING_DEPTH})


def _without_lone_surrogates(frame: bytes) -> bytes:
    """Return the frame with U+FFFD for lone surrogates; raise `BadMessage` if one is in the id or the method."""
    if b"\\ud" not in frame and b"\\uD" not in frame:
        return frame  # other escapes: all of them are whole characters
    clean = with_surrogates_filled(frame, b"fffd")
    if clean == frame:
        return frame
    # In text the replacement shows as a box. In an id the peer would not know its own request again, and a method would
    # be another one.
    members, _ = _members(clean)
    if not any(rb"\ufffd" in bytes(members.get(name, NOTHING)) for name in ("id", "method")):
        return clean
    # Filled, or written like that? With another filling only what was filled reads differently.
    others, _ = _members(with_surrogates_filled(frame, b"fdd0"))
    same_id = members.get("id") == others.get("id")
    if same_id and members.get("method") == others.get("method"):
        return clean
    fault = "Invalid request: a lone surrogate in `id` or `method`"
    id = _id(members) if same_id else None
    raise BadMessage(INVALID_REQUEST, fault, id=id, answerable=not _is_answer(members))
