"""A remote client on the official Python SDK for v2. `URL CWD [SESSION]`, the token in PEER_TOKEN."""

import asyncio
import os
import sys
from typing import Any

from acp.experimental.v2 import connect_to_agent, schema  # type: ignore[import-not-found]

from tests.interop.peers.telling import tell


class Watcher:
    """Tells everything it hears, and says yes."""

    idle: "asyncio.Future[str]"

    def on_connect(self, agent: Any) -> None:
        """Nothing to prepare."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        tell("update", update)
        if getattr(update, "stop_reason", None):
            self.idle.set_result(update.stop_reason)

    async def request_permission(self, session_id: str, title: str, options: list[Any], **_: Any) -> Any:
        tell("permission", [option.kind for option in options])
        outcome = schema.SelectedPermissionOutcomeVariant(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)


async def main() -> None:
    url, cwd, *load = sys.argv[1:]
    headers = {"Authorization": f"Bearer {os.environ['PEER_TOKEN']}"}
    transport: Any
    if url.startswith("ws"):
        from acp.ws import create_websocket_stream

        transport = await create_websocket_stream(url, headers=headers)
    else:
        from acp.http import create_http_stream

        transport = create_http_stream(url, headers=headers)
    watcher = Watcher()
    watcher.idle = asyncio.get_running_loop().create_future()
    connection = connect_to_agent(watcher, transport)
    hello = await connection.initialize(
        protocol_version=2,
        info=schema.Implementation(name="peer", version="1"),
        capabilities=schema.ClientCapabilities(),
    )
    tell("initialize", hello.protocol_version)
    if load:
        start = schema.ReplayFromStartVariant(type="start")
        await connection.resume_session(cwd=cwd, session_id=load[0], replay_from=start)
        session_id = load[0]
        tell("loaded", None)
    else:
        session_id = (await connection.new_session(cwd=cwd)).session_id
    tell("session", session_id)
    await connection.prompt(session_id=session_id, prompt=[schema.TextContentBlock(type="text", text="go")])
    tell("end", await watcher.idle)
    await connection.close()


asyncio.run(main())
