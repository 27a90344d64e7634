"""The dialect of elephant.ai's ACP surface: version 1 with four modes of its own and six updates.

`full` is the mode in which every tool is offered and asks as it does by default; it never is the one that asks nothing.
The user's prompt is repeated to the client. Where an error has data, that is a text.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import Id, Out
from dragoman.dialects.handshake.initialize import DecodedClientHello
from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.dialects.v1.client import ClientV1
from dragoman.dialects.vendors import vendor_agent
from dragoman.dialects.vendors.agentao import refuse_servers
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.errors import INVALID_PARAMS, PeerMistake, WireError
from dragoman.vocabulary import requests
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.dialect_rules import DialectRules
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import v1 as w

NAME: Final = "elephant"
# Its modes, and what each is here (row 8.3.11).
MODES: Final = {"full": "ask", "read-only": "read-only", "safe": "safe", "sandbox": "sandbox"}
_SHOWN: Final = (
    ("full", "Full Access", "All tools available"),
    ("read-only", "Read-Only", "No local writes or execution"),
    ("safe", "Safe Mode", "Excludes potentially dangerous tools"),
    ("sandbox", "Sandbox Mode", "Disable local file/shell tools; use sandbox_* tools instead"),
)
# What the client is sent for a mode of ours that it could not have chosen: the nearest that promises no more than is
# true. Another client of the session, or the command line, may have set it.
_NEAREST: Final = {ours: theirs for theirs, ours in MODES.items()} | {"plan": "read-only"}
# Messages have no ids in this document: chunks of one kind are one message.
_MESSAGE: Final = frozenset({"content"})


class IgnoredLogin(Note, frozen=True, gc=False):
    """An `authenticate` that is answered and has no effect.

    A note of this module alone: no layer above has a route or a handler for it, so nothing is passed on.
    """


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize`; whatever version is asked for, it is answered with 1 (row 8.3.4)."""
    return vendor_agent.decode_client(params, NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Encode the answer to `initialize` with the document's capabilities."""
    # The document claims pictures and sounds in any case; a model that cannot take them is told what was there.
    capabilities = {
        "loadSession": agent.capabilities.load,
        "promptCapabilities": {"audio": True, "image": True, "embeddedContext": True},
        "mcpCapabilities": {"http": False, "sse": False},
        "sessionCapabilities": {},
    }
    return vendor_agent.encode_agent(agent, capabilities)


class AgentElephant(VendorAgent):
    """The agent's side."""

    methods = frozenset(
        {
            *("authenticate", "session/new", "session/load", "session/prompt"),
            *("session/cancel", "session/set_mode"),
        }
    )
    update_fields = {  # noqa: RUF012  # never changed
        **dict.fromkeys(("user_message_chunk", "agent_message_chunk"), _MESSAGE),
        "tool_call": frozenset({"toolCallId", "title", "status", "kind", "locations", "rawInput"}),
        "tool_call_update": frozenset({"toolCallId", "status", "content", "rawOutput", "kind", "locations"}),
        "plan": frozenset({"entries"}),
        "current_mode_update": frozenset({"currentModeId"}),
    }
    opened_fields = frozenset({"sessionId", "modes"})
    permission_options = (
        VendorPermissionOption("allow_once", "allow_once", "Allow"),
        VendorPermissionOption("reject_once", "reject_once", "Reject"),
    )

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        # One plan, whole: a plan by its id is no update of this document.
        plain_client = replace(client, capabilities=replace(client.capabilities, plans=False))
        super().__init__(plain_client, vendor_agent.limited_agent(agent))

    def decode_named_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, but accept `authenticate` and ignore it (the document has no login).

        Raise `PeerMistake` for a mode that is not in `MODES` and for an MCP server that is not started by a command.
        """
        # The document accepts it although no login method is ever advertised (row 8.3.5).
        if method == "authenticate":
            body: Any = plain(params) if params else None
            if not isinstance(body, dict) or not isinstance(body.get("methodId"), str):
                raise PeerMistake(INVALID_PARAMS, "methodId must be a text")
            return IgnoredLogin()
        request = super().decode_named_request(id, method, params)
        if method == "session/set_mode" and isinstance(request, requests.SetOption):
            if request.value not in MODES:
                self._mode_requests.discard(id)
                raise PeerMistake(INVALID_PARAMS, f"modeId must be one of {', '.join(MODES)}")
            # Renamed here, so that the agent sees only its own modes; `encode_opened` and `reshape` rename them back.
            return replace(request, value=MODES[request.value])
        if isinstance(request, (requests.NewSession, requests.ResumeSession)):
            refuse_servers(request, requests.McpHttp, requests.McpSse, requests.McpAcp)
        return request

    def vendor_error(self, error: WireError) -> WireError:
        """Return an error with the document's codes; its data is a text (row 8.3.17)."""
        error = super().vendor_error(error)
        return error if error.data is None else error._replace(data=_in_words(error.data))

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """Encode as `super()` does, with the document's modes, as far as the session has them."""
        body = plain(Raw(super().encode_opened(reply, kind, encoded_options)))
        if isinstance(body.get("modes"), dict):
            # A mode that the session lacks could not be set; one that the document lacks could not be shown.
            there = [mode["id"] for mode in body["modes"]["availableModes"]]
            known = [{"id": id, "name": name, "description": about} for id, name, about in _SHOWN if MODES[id] in there]
            body["modes"] = {"currentModeId": _mode(body["modes"]["currentModeId"]), "availableModes": known}
        return msgspec.json.encode(body)

    def _reply_options_set(self, id: Id, request: requests.SetOption, reply: requests.OptionsSet) -> Sequence[Out]:
        """Reply as `super()` does, and send the mode as an update too, as the document has it."""
        outs = super()._reply_options_set(id, request, reply)
        mode = self._session(request.session_id).mode[1]
        return [*outs, *self._notify(request.session_id, [w.CurrentModeUpdate(current_mode_id=mode)])]

    def _is_echo(self, session_id: str, message_id: str) -> bool:
        """Return False: in this document the running prompt is repeated to the client."""
        # Asked all the same: `PendingPrompt` learns from it which message is the prompt.
        super()._is_echo(session_id, message_id)
        return False

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return a call `in_progress` from its announcement on (row 8.3.15), and modes by the document's names."""
        name = update["sessionUpdate"]
        if name == "current_mode_update":
            return [{**update, "currentModeId": _mode(update["currentModeId"])}]
        if name == "tool_call":
            first = {**update, "status": "in_progress"}
            # An announced call has no content and no end in this document: both follow as an update.
            ended = update.get("status") in ("completed", "failed") or update.get("content")
            return [
                first,
                *(self.reshape(session_id, {**update, "sessionUpdate": "tool_call_update"}) if ended else ()),
            ]
        if name == "tool_call_update" and update.get("status") == "pending":
            return [{**update, "status": "in_progress"}]
        return [update]


def _mode(ours: str) -> str:
    return _NEAREST.get(ours, "full")


def _in_words(data: object) -> str:
    if isinstance(data, str):
        return data
    # Our own errors have one field, `reason`, whose value is the text to show.
    if isinstance(data, dict) and len(data) == 1 and isinstance(next(iter(data.values())), str):
        return str(next(iter(data.values())))
    return msgspec.json.encode(data).decode()


# -- the client ------------------------------------------------------------------------------------------------------


class ClientElephant(ClientV1):
    """The client's side: version 1, but every MCP server has a `type`, which such an agent requires (row 8.3.6)."""

    def encode_request(self, request: Request) -> Any:
        """Encode as `super()` does, and give every MCP server a type."""
        call = super().encode_request(request)
        if not isinstance(request, (requests.NewSession, requests.ResumeSession)):
            return call
        params = plain(Raw(call.params))
        params["mcpServers"] = [{"type": "stdio", **server} for server in params.get("mcpServers", [])]
        return replace(call, params=msgspec.json.encode(params))


DIALECT: Final = NamedDialect(
    decode_client,
    encode_agent,
    AgentElephant,
    vendor_agent.encode_client,
    partial(vendor_agent.decode_agent, name=NAME),
    ClientElephant,
    DialectRules(modes=MODES),
)
