"""The official Python SDK's own HTTP server, on uvicorn as it recommends: `PORT CHUNKS PAUSE`."""

import asyncio
import os
import sys
import time
from typing import Any

import uvicorn
from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    update_agent_message_text,
)
from acp.http.asgi import create_asgi_app

CHUNKS, PAUSE = int(sys.argv[2]), float(sys.argv[3])


class Bench:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def initialize(self, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=os.urandom(16).hex())

    async def prompt(self, session_id: str, **_: Any) -> PromptResponse:
        for _number in range(CHUNKS):
            await self.connection.session_update(session_id, update_agent_message_text(str(time.monotonic_ns())))
            await asyncio.sleep(PAUSE)
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    app = create_asgi_app(Bench)  # type: ignore[arg-type]
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
