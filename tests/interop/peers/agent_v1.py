"""An agent on the official Python SDK for v1, as its own examples are. What it does is the prompt's first word.

A new session takes the place of the one before it.
"""

import asyncio
import os
from typing import Any, cast

from acp import (
    RequestError,
    plan_entry,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    tool_terminal_ref,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    CurrentModeUpdate,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    ToolCallUpdate,
)

OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Peer:
    client: Client
    cwd = ""
    mode = ""
    sessions = 0
    session = ""

    def on_connect(self, client: Client) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=1,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="peer", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self.sessions += 1
        self.cwd, self.mode, self.session = cwd, "ask", f"session-{self.sessions}"
        modes = [SessionMode(id="ask", name="Ask"), SessionMode(id="code", name="Code")]
        return NewSessionResponse(
            session_id=self.session, modes=SessionModeState(current_mode_id=self.mode, available_modes=modes)
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        self.mode = mode_id
        await self.client.session_update(
            session_id, CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode_id)
        )
        return SetSessionModeResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self.cancelled = asyncio.Event()
        word, *rest = prompt[0].text.split()
        return PromptResponse(stop_reason=await getattr(self, f"do_{word}")(*rest) or "end_turn")

    async def say(self, text: str) -> None:
        await self.tell(update_agent_message_text(text))

    async def tell(self, update: Any) -> None:
        await self.client.session_update(self.session, update)

    # -- one method a word -------------------------------------------------------------------------------------------

    async def do_greet(self) -> None:
        await self.tell(update_agent_thought_text("Hm."))
        await self.say("Hello. ")
        await self.say("How are you?")
        await self.tell(update_plan([plan_entry("Look", priority="high", status="in_progress")]))
        await self.tell(start_tool_call("look", "Look around", kind="read", status="pending"))
        asked = ToolCallUpdate(tool_call_id="look", title="Look around")
        answer = await self.client.request_permission(session_id=self.session, tool_call=asked, options=OPTIONS)
        if isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "yes":
            seen = [tool_content(text_block("All is well."))]
            await self.tell(update_tool_call("look", status="completed", content=seen))
        else:
            await self.tell(update_tool_call("look", status="failed"))

    async def do_burst(self) -> None:
        for _ in range(1000):
            await self.say("x")

    async def do_files(self, path: str) -> None:
        read = await self.client.read_text_file(session_id=self.session, path=path, line=1, limit=10)
        await self.client.write_text_file(session_id=self.session, path=path + ".new", content=read.content.upper())
        await self.say(read.content)

    async def do_terminal(self) -> None:
        made = await self.client.create_terminal(
            session_id=self.session, command="echo", args=["hello"], cwd=self.cwd, output_byte_limit=1000
        )
        named = {"session_id": self.session, "terminal_id": made.terminal_id}
        shown = [tool_terminal_ref(made.terminal_id)]
        await self.tell(start_tool_call("run", "echo hello", kind="execute", status="in_progress", content=shown))
        ended = await self.client.wait_for_terminal_exit(**named)
        printed = await self.client.terminal_output(**named)
        await self.client.kill_terminal(**named)
        await self.client.release_terminal(**named)
        await self.tell(update_tool_call("run", status="completed"))
        await self.say(f"{printed.output} {ended.exit_code}")

    async def do_mode(self) -> None:
        await self.say(self.mode)

    async def do_wait(self) -> str:
        await self.say("waiting")
        await self.cancelled.wait()
        return "cancelled"

    async def do_fail(self) -> None:
        await self.say("Oh.")
        raise RequestError(-32603, "It broke", {"reason": "server"})

    async def do_die(self) -> None:
        await self.say("last words")
        os._exit(3)


asyncio.run(run_agent(cast(Agent, Peer())))
