import asyncio

from dragoman import connect, events


async def main():
    async with connect("python examples/agent.py") as client:
        session = await client.new_session(".")
        async for event in session.prompt("Hello!"):
            if isinstance(event, events.AgentMessageChunk):
                print(event.text, end="", flush=True)


asyncio.run(main())
