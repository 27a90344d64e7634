"""`mcp/message`: MCP over ACP, in the request-scoped form of the schema. One way to write it, for both ends.

An agent calls a server that its client lends: `{serverId, requestId, method, params?}`, answered with `{result}` or
`{error}` of MCP. While the call is open, the client may send notifications that belong to it, in the same envelope.
Errors of ACP are left for what is no answer of the server: it is not there, too many calls, or it has failed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

MCP_MESSAGE: Final = "mcp/message"
# Errors of this binding, beside those of JSON-RPC.
TOO_MANY_CALLS: Final = -33000
SERVER_UNAVAILABLE: Final = -33001
SERVER_FAILED: Final = -33002
# An id is as long as its maker likes; a longer one is a mistake.
ID_CHARACTERS: Final = 1_000


class McpEnvelope(NamedTuple):
    """A message for a server, or a notification of it: what it is about, and what is inside."""

    server_id: str
    request_id: str
    method: str
    params: Mapping[str, object]

    def encode(self) -> dict[str, object]:
        """Return the params of `mcp/message`."""
        found: dict[str, object] = {"serverId": self.server_id, "requestId": self.request_id, "method": self.method}
        return found | ({"params": dict(self.params)} if self.params else {})


class McpFault(NamedTuple):
    """An error of MCP, as a server answers it."""

    code: int
    message: str
    data: object = None


class McpOutcome(NamedTuple):
    """What a server answered: a result, which is any JSON, or an error."""

    result: object = None
    fault: McpFault | None = None


def read_envelope(params: object) -> McpEnvelope | None:
    """Return what the params of `mcp/message` say; None where they are none."""
    if not isinstance(params, Mapping):
        return None
    server_id, request_id, method = params.get("serverId"), params.get("requestId"), params.get("method")
    if not isinstance(server_id, str) or not isinstance(request_id, str) or not isinstance(method, str):
        return None
    inner = params.get("params")
    if max(len(server_id), len(request_id), len(method)) > ID_CHARACTERS or not isinstance(inner, Mapping | None):
        return None
    return McpEnvelope(server_id, request_id, method, inner or {})


def read_outcome(answer: object) -> McpOutcome | None:
    """Return what the result of `mcp/message` says; None where it is neither. A result counts before an error."""
    if not isinstance(answer, Mapping):
        return None
    if "result" in answer:
        return McpOutcome(answer["result"])
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return None
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool) or not isinstance(message, str):
        return None
    return McpOutcome(fault=McpFault(code, message, error.get("data")))


def encode_outcome(outcome: McpOutcome) -> dict[str, object]:
    """Return the result of `mcp/message`."""
    if outcome.fault is None:
        return {"result": outcome.result}
    code, message, data = outcome.fault
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}
