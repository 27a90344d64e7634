"""A client on the official Python SDK for v2 (`acp.experimental.v2`)."""

import asyncio
import sys
from typing import Any

from acp import RequestError  # type: ignore[attr-defined, unused-ignore]
from acp.experimental.v2 import connect_to_agent, schema  # type: ignore[import-not-found]

from tests.interop.peers.telling import Task, tasks, tell


class Watcher:
    """Tells everything it hears."""

    agent: Any
    step: dict[str, str]
    idle: "asyncio.Future[None]"

    def on_connect(self, agent: Any) -> None:
        self.agent = agent

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        tell("update", update)
        if getattr(update, "stop_reason", None):  # a session that was loaded is idle too, and no turn of ours has ended
            self.idle.set_result(None)
        if update.session_update == "agent_message_chunk" and update.content.text == self.step.get("cancel_at"):
            await self.agent.cancel_session(session_id=session_id)

    async def request_permission(
        self, session_id: str, title: str, options: list[Any], subject: Any = None, **_: Any
    ) -> Any:
        subject = subject and subject.model_dump(mode="json", by_alias=True, exclude_none=True)
        tell("permission", {"title": title, "subject": subject, "options": [option.kind for option in options]})
        wanted = self.step["permission"]
        if wanted == "cancel":
            await self.agent.cancel_session(session_id=session_id)
            return schema.RequestPermissionResponse(outcome=schema.CancelledPermissionOutcome(outcome="cancelled"))
        (chosen,) = [option.option_id for option in options if option.kind == wanted]
        outcome = schema.SelectedPermissionOutcomeVariant(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)


async def play(task: Task) -> None:
    plan, cwd, command, environment = task
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=sys.stderr, env=environment
    )
    watcher = Watcher()
    connection = connect_to_agent(watcher, process.stdin, process.stdout)
    hello = await connection.initialize(
        protocol_version=2,
        info=schema.Implementation(name="peer", version="1"),
        capabilities=schema.ClientCapabilities(),
    )
    tell("initialize", {"protocolVersion": hello.protocol_version, "name": hello.info.name})
    if loaded := plan[0].get("load"):
        watcher.step, *plan = plan
        start = schema.ReplayFromStartVariant(type="start")
        tell("session", await connection.resume_session(cwd=cwd, session_id=loaded, replay_from=start))
        session_id = loaded
    else:
        session = await connection.new_session(cwd=cwd)
        tell("session", session)
        session_id = session.session_id
    for step in plan:
        watcher.step, watcher.idle = step, asyncio.get_running_loop().create_future()
        try:
            if "call" in step:
                await connection.send_extension_request(step["call"], {})
            else:
                blocks = [schema.TextContentBlock(type="text", text=step["prompt"])]
                accepted = await connection.prompt(session_id=session_id, prompt=blocks)
                await watcher.idle
                tell("end", accepted)
        except RequestError as error:
            tell("error", {"code": error.code, "message": str(error), "data": error.data})
    assert process.stdin is not None
    process.stdin.close()
    tell("exit", await process.wait())
    await connection.close()


for each in tasks():
    asyncio.run(play(each))
