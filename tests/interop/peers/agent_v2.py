"""An agent on the official Python SDK for v2 (`acp.experimental.v2`). What it does is the prompt's first word.

A new session takes the place of the one before it.
"""

import asyncio
import os
from base64 import b64encode
from typing import Any

from acp.experimental.v2 import run_agent, schema  # type: ignore[import-not-found]

OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]


def text(words: str) -> Any:
    return schema.TextContentBlock(type="text", text=words)


class Peer:
    client: Any
    cwd = ""
    mode = ""
    sessions = 0
    session = ""
    turns = 0
    turn: "asyncio.Task[None] | None" = None

    def on_connect(self, client: Any) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **_: Any) -> Any:
        return schema.InitializeResponse(
            protocol_version=2,
            info=schema.Implementation(name="peer", version="1"),
            capabilities=schema.AgentCapabilities(session=schema.SessionCapabilities()),
        )

    async def new_session(self, cwd: str, **_: Any) -> Any:
        self.sessions += 1
        self.cwd, self.mode, self.session = cwd, "ask", f"session-{self.sessions}"
        return schema.NewSessionResponse(session_id=self.session, config_options=self.options())

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> Any:
        self.mode = value
        return schema.SetSessionConfigOptionResponse(config_options=self.options())

    def options(self) -> list[Any]:
        values = [schema.SessionConfigSelectOption(value=v, name=v.title()) for v in ("ask", "code")]
        option = schema.SelectSessionConfigOption(
            type="select", config_id="mode", name="Mode", category="mode", current_value=self.mode, options=values
        )
        return [option]

    async def cancel_session(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        self.turns += 1
        self.cancelled = asyncio.Event()
        self.turn = asyncio.create_task(self.play(f"user-{self.turns}", prompt))
        return schema.PromptResponse(message_id=f"user-{self.turns}")

    async def play(self, message_id: str, prompt: list[Any]) -> None:
        await self.tell(schema.UserMessageUpdate(message_id=message_id, content=prompt))
        await self.tell(schema.RunningSessionStateUpdate())
        word, *rest = prompt[0].text.split()
        reason = await getattr(self, f"do_{word}")(*rest) or "end_turn"
        await self.tell(schema.IdleSessionStateUpdate(stop_reason=reason))

    async def say(self, words: str) -> None:
        await self.tell(schema.AgentMessageChunk(message_id=f"answer-{self.turns}", content=text(words)))

    async def tell(self, update: Any) -> None:
        await self.client.session_update(self.session, update)

    # -- one method a word -------------------------------------------------------------------------------------------

    async def do_greet(self) -> None:
        await self.tell(schema.AgentThoughtChunk(message_id="thought-1", content=text("Hm.")))
        await self.say("Hello. ")
        await self.say("How are you?")
        entry = schema.PlanEntry(content="Look", priority="high", status="in_progress")
        await self.tell(schema.SessionPlanUpdate(plan=schema.PlanUpdateItems(plan_id="main", entries=[entry])))
        await self.tell(
            schema.SessionToolCallUpdate(tool_call_id="look", title="Look around", kind="read", status="pending")
        )
        await self.tell(schema.RequiresActionSessionStateUpdate())
        asked = schema.ToolCallUpdate(tool_call_id="look", title="Look around")
        answer = await self.client.request_permission(
            session_id=self.session,
            title="May I look around?",
            options=OPTIONS,
            subject=schema.ToolCallPermissionSubjectVariant(type="tool_call", tool_call=asked),
        )
        await self.tell(schema.RunningSessionStateUpdate())
        if getattr(answer.outcome, "option_id", None) == "yes":
            seen = [schema.ContentToolCallContent(type="content", content=text("All is well."))]
            await self.tell(schema.SessionToolCallUpdate(tool_call_id="look", status="completed", content=seen))
        else:
            await self.tell(schema.SessionToolCallUpdate(tool_call_id="look", status="failed"))

    async def do_burst(self) -> None:
        for _ in range(1000):
            await self.say("x")

    async def do_terminal(self) -> None:
        await self.tell(schema.SessionTerminalUpdate(terminal_id="term", command="echo hello", cwd=self.cwd))
        shown = [schema.TerminalToolCallContent(type="terminal", terminal_id="term")]
        await self.tell(
            schema.SessionToolCallUpdate(
                tool_call_id="run", title="echo hello", kind="execute", status="in_progress", content=shown
            )
        )
        await self.tell(schema.SessionTerminalOutputChunk(terminal_id="term", data=b64encode(b"hello\n").decode()))
        await self.tell(
            schema.SessionTerminalUpdate(terminal_id="term", exit_status=schema.TerminalExitStatus(exit_code=0))
        )
        await self.tell(schema.SessionToolCallUpdate(tool_call_id="run", status="completed"))

    async def do_mode(self) -> None:
        await self.say(self.mode)

    async def do_wait(self) -> str:
        await self.say("waiting")
        await self.cancelled.wait()
        return "cancelled"

    async def do_fail(self) -> str:
        await self.say("Oh.")
        return "error"  # this draft of v2 has no room for the reason

    async def do_die(self) -> None:
        await self.say("last words")
        os._exit(3)


asyncio.run(run_agent(Peer()))
