"""The bench's agent on the official Python SDK, written as its own examples are."""

import asyncio
from typing import Any, cast

from acp import (  # type: ignore[import-not-found, unused-ignore]
    run_agent,
    tool_diff_content,
    update_agent_message_text,
    update_tool_call,
)
from acp.interfaces import Agent, Client  # type: ignore[import-not-found, unused-ignore]
from acp.schema import (  # type: ignore[import-not-found, unused-ignore]
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
)


class BenchAgent:
    _conn: Client
    _sessions = 0

    def on_connect(self, conn: Client) -> None:
        self._conn = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=1,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="bench", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self._sessions += 1
        modes = [SessionMode(id="a", name="A"), SessionMode(id="b", name="B")]
        return NewSessionResponse(
            session_id=f"session-{self._sessions:05}",
            modes=SessionModeState(current_mode_id="a", available_modes=modes),
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        return SetSessionModeResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        word, count, *words = prompt[0].text.split(" ", 2)
        if word == "big":
            diff = tool_diff_content("/bench/file.py", ("x" * 79 + "\n") * (int(count) // 80))
            await self._conn.session_update(session_id, update_tool_call("big", content=[diff]))
        else:
            for _number in range(int(count)):
                await self._conn.session_update(session_id, update_agent_message_text(words[0]))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    # The SDK takes any object with the methods it needs; its Protocol asks for all of them.
    asyncio.run(run_agent(cast(Agent, BenchAgent())))
