import asyncio
import sys

from dragoman import connect


async def main(address, token_file):
    async with connect(address, token_file=token_file) as client:
        session = await client.new_session(".")
        print((await session.ask("list")).text)


asyncio.run(main(*sys.argv[1:]))
