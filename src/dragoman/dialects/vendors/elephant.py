"""The dialect of elephant.ai's ACP surface: version 1 with four modes of its own and six updates.

`full` is the mode in which every tool is offered and asks as it does by default; it never is the one that asks nothing.
What the user says is repeated to the client. Where an error has data, that is a text.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import Id, Out
from dragoman.dialects.handshake.initialize import DecodedAgentHello, DecodedClientHello, decode_agent_1
from dragoman.dialects.handshake.initialize import encode_client as encode_any_client
from dragoman.dialects.handshake.json_fields import JsonDict, as_object, decode_json
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
# Its modes, and what each is here.
MODES: Final = {"full": "ask", "read-only": "read-only", "safe": "safe", "sandbox": "sandbox"}
_SHOWN: Final = (
    ("full", "Full Access", "All tools available"),
    ("read-only", "Read-Only", "No local writes or execution"),
    ("safe", "Safe Mode", "Excludes potentially dangerous tools"),
    ("sandbox", "Sandbox Mode", "Disable local file/shell tools; use sandbox_* tools instead"),
)
# What the client is told of a mode of ours that it could not have chosen: the nearest that is no stricter than true.
_NEAREST: Final = {ours: theirs for theirs, ours in MODES.items()} | {"plan": "read-only"}
_MESSAGE: Final = frozenset({"content"})


class IgnoredLogin(Note, frozen=True, gc=False):
    """An `authenticate` that is answered and has no effect.

    A note of this module alone: no layer above has a route or a handler for it, so nothing is passed on.
    """


def decode_client(params: Raw) -> DecodedClientHello:
    """Whatever version is asked for, it is answered with 1."""
    return vendor_agent.decode_client(params, NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Pictures and sounds are taken; where the model cannot see or hear them it is told what was there."""
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
            return replace(request, value=MODES[request.value])
        if isinstance(request, (requests.NewSession, requests.ResumeSession)):
            refuse_servers(request, requests.McpHttp, requests.McpSse, requests.McpAcp)
        return request

    def vendor_error(self, error: WireError) -> WireError:
        """What an error has beside its message is a text here."""
        error = super().vendor_error(error)
        return error if error.data is None else error._replace(data=_in_words(error.data))

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """The document's modes, as far as the session has them."""
        said = plain(Raw(super().encode_opened(reply, kind, encoded_options)))
        if isinstance(said.get("modes"), dict):
            there = [mode["id"] for mode in said["modes"]["availableModes"]]
            known = [{"id": id, "name": name, "description": about} for id, name, about in _SHOWN if MODES[id] in there]
            said["modes"] = {"currentModeId": _mode(said["modes"]["currentModeId"]), "availableModes": known}
        return msgspec.json.encode(said)

    def _reply_options_set(self, id: Id, request: requests.SetOption, reply: requests.OptionsSet) -> Sequence[Out]:
        """A mode that was set is told as well."""
        outs = super()._reply_options_set(id, request, reply)
        mode = self._session(request.session_id).mode[1]
        return [*outs, *self._notify(request.session_id, [w.CurrentModeUpdate(current_mode_id=mode)])]

    def _is_echo(self, session_id: str, message_id: str) -> bool:
        """The live prompt is repeated here; whether it is one must be known all the same."""
        super()._is_echo(session_id, message_id)
        return False

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """A call is in progress from its first word; modes have their own names."""
        name = update["sessionUpdate"]
        if name == "current_mode_update":
            return [{**update, "currentModeId": _mode(update["currentModeId"])}]
        if name == "tool_call":
            first = {**update, "status": "in_progress"}
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
    if isinstance(data, dict) and len(data) == 1 and isinstance(next(iter(data.values())), str):
        return str(next(iter(data.values())))
    return msgspec.json.encode(data).decode()


# -- the client ------------------------------------------------------------------------------------------------------


class ClientElephant(ClientV1):
    """The client's side: what such an agent says is version 1. A server to be started says that it is one."""

    def encode_request(self, request: Request) -> Any:
        """Encode as `super()` does, and give every MCP server a type."""
        call = super().encode_request(request)
        if not isinstance(request, (requests.NewSession, requests.ResumeSession)):
            return call
        params = plain(Raw(call.params))
        params["mcpServers"] = [{"type": "stdio", **server} for server in params.get("mcpServers", [])]
        return replace(call, params=msgspec.json.encode(params))


def encode_client(hello: ClientHello) -> bytes:
    """Version 1."""
    return encode_any_client(hello, (1,))


def decode_agent(result: Raw) -> DecodedAgentHello:
    """An agent of version 1."""
    return DecodedAgentHello(1, decode_agent_1(as_object(decode_json(result))), NAME)


DIALECT: Final = NamedDialect(
    decode_client, encode_agent, AgentElephant, encode_client, decode_agent, ClientElephant, DialectRules(modes=MODES)
)
