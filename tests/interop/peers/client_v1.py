"""A client on the official Python SDK for v1, written as its own examples are."""

import asyncio
import sys
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block
from acp.interfaces import Agent, Client
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    Implementation,
    RequestPermissionResponse,
)

from tests.interop.peers.telling import Task, tasks, tell


class Watcher:
    """Tells everything it hears."""

    agent: Agent
    step: dict[str, str]

    def on_connect(self, agent: Agent) -> None:
        self.agent = agent

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        tell("update", update)
        if update.session_update == "agent_message_chunk" and update.content.text == self.step.get("cancel_at"):
            await self.agent.cancel(session_id=session_id)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        tell("permission", {"toolCall": _plain(tool_call), "options": [option.kind for option in options]})
        wanted = self.step["permission"]
        if wanted == "cancel":
            await self.agent.cancel(session_id=session_id)
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        (chosen,) = [option.option_id for option in options if option.kind == wanted]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def play(task: Task) -> None:
    plan, cwd, command, environment = task
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=sys.stderr, env=environment
    )
    watcher = Watcher()
    # The SDK takes any object with the methods it needs; its Protocol asks for all of them.
    connection = connect_to_agent(cast(Client, watcher), process.stdin, process.stdout)
    hello = await connection.initialize(
        protocol_version=PROTOCOL_VERSION,
        client_capabilities=ClientCapabilities(),
        client_info=Implementation(name="peer", version="1"),
    )
    tell("initialize", {"protocolVersion": hello.protocol_version, "name": hello.agent_info and hello.agent_info.name})
    if loaded := plan[0].get("load"):
        watcher.step, *plan = plan
        tell("session", await connection.load_session(cwd=cwd, session_id=loaded, mcp_servers=[]))
        session_id = loaded
    else:
        session = await connection.new_session(cwd=cwd, mcp_servers=[])
        tell("session", session)
        session_id = session.session_id
    for step in plan:
        watcher.step = step
        try:
            if "call" in step:
                await connection.ext_method(step["call"].lstrip("_"), {})
            else:
                tell("end", await connection.prompt(session_id=session_id, prompt=[text_block(step["prompt"])]))
        except RequestError as error:
            tell("error", {"code": error.code, "message": str(error), "data": error.data})
    assert process.stdin is not None
    process.stdin.close()
    tell("exit", await process.wait())
    await connection.close()


for each in tasks():
    asyncio.run(play(each))
