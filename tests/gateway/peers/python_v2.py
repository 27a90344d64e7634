"""A remote client on the official Python SDK for v2. `CWD URL...`, the token in PEER_TOKEN.

At every address it has a turn in a new session; then it comes anew, finds the session again and has another turn.
"""

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


async def talk(cwd: str, url: str, load: str = "") -> str:
    """A turn; in which session."""
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
        await connection.resume_session(cwd=cwd, session_id=load, replay_from=start)
    session_id: str = load or (await connection.new_session(cwd=cwd)).session_id
    tell("session", session_id)
    await connection.prompt(session_id=session_id, prompt=[schema.TextContentBlock(type="text", text="go")])
    tell("end", await watcher.idle)
    await connection.close()
    return session_id


async def main() -> None:
    cwd, *urls = sys.argv[1:]
    for url in urls:
        await talk(cwd, url, await talk(cwd, url))


asyncio.run(main())
