"""A remote client on the official Python SDK for v1. `CWD URL...`, the token in PEER_TOKEN.

At every address it has a turn in a new session; then it comes anew, finds the session again and has another turn.
"""

import asyncio
import os
import sys
from typing import Any, cast

from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from acp.interfaces import Client
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse

from tests.interop.peers.telling import tell


class Watcher:
    """Tells everything it hears, and says yes."""

    def on_connect(self, agent: Any) -> None:
        """Nothing to prepare."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        tell("update", update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        tell("permission", [option.kind for option in options])
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def ext_notification(self, method: str, params: Any) -> None:
        tell("notification", method)


async def talk(cwd: str, url: str, load: str = "") -> str:
    """A turn; in which session."""
    headers = {"Authorization": f"Bearer {os.environ['PEER_TOKEN']}"}
    if url.startswith("ws"):
        from acp.ws import create_websocket_stream

        transport = await create_websocket_stream(url, headers=headers)
    else:
        from acp.http import create_http_stream

        transport = create_http_stream(url, headers=headers)
    connection = connect_to_agent(cast(Client, Watcher()), transport)
    hello = await connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
    tell("initialize", hello.protocol_version)
    if load:
        await connection.load_session(cwd=cwd, session_id=load, mcp_servers=[])
    session_id = load or (await connection.new_session(cwd=cwd, mcp_servers=[])).session_id
    tell("session", session_id)
    end = await connection.prompt(session_id=session_id, prompt=[text_block("go")])
    tell("end", end.stop_reason)
    await connection.close()
    return session_id


async def main() -> None:
    cwd, *urls = sys.argv[1:]
    for url in urls:
        await talk(cwd, url, await talk(cwd, url))


asyncio.run(main())
