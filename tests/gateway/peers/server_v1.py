"""An agent behind the official Python SDK's own HTTP and WebSocket server, on uvicorn. `PORT`."""

import sys
from typing import Any

import uvicorn
from acp import PROTOCOL_VERSION, InitializeResponse, NewSessionResponse, PromptResponse, update_agent_message_text
from acp.http.asgi import create_asgi_app
from acp.schema import AllowedOutcome, PermissionOption, ToolCallUpdate


class Peer:
    """Says two words, asks, and says what it was told."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def initialize(self, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="session-1")

    async def prompt(self, session_id: str, **_: Any) -> PromptResponse:
        for word in ("one ", "two "):
            await self.client.session_update(session_id, update_agent_message_text(word))
        answer = await self.client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="call"),
            options=[PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        said = f"allowed {isinstance(answer.outcome, AllowedOutcome)}"
        await self.client.session_update(session_id, update_agent_message_text(said))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    app: Any = create_asgi_app(Peer)  # type: ignore[arg-type]
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
