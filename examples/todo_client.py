"""Drive an agent: its words as they come, its questions answered, its session found again."""

import asyncio
import sys

from dragoman import PermissionOption, RequestPermission, connect, events


async def answer(request: RequestPermission) -> PermissionOption | None:
    """Say yes once, if that is offered. None is a no."""
    return next((option for option in request.options if option.kind == "allow_once"), None)


async def main(folder: str, *command: str) -> None:
    async with connect(list(command), permission=answer) as client:
        session = await client.new_session(folder)
        await session.ask("write the tests\nfix the bug")
        await session.set_option("order", "name")
        async for event in session.prompt("/save"):
            match event:
                case events.AgentMessageChunk():
                    print(event.text, end="")
                case events.ToolCallUpdate(status="completed"):
                    print("(a tool call has ended)")
    async with connect(list(command)) as client:
        again = await client.load_session(session.id, folder)
        print((await again.ask("rest")).text, end="")


asyncio.run(main(*sys.argv[1:]))
