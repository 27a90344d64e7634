import asyncio
import sys

from dragoman import Bridge, ChildTransport, StdioTransport

if len(sys.argv) < 2:
    sys.exit("usage: python bridge.py COMMAND...\nsuch as: python bridge.py dragoman acp --protocol 2")


async def main(command):
    editor = StdioTransport.of_this_process()
    agent = ChildTransport.spawn(command)
    bridge = Bridge(editor, agent)
    await bridge.run()
    if bridge.fault is not None:
        sys.exit(f"bridge: {bridge.fault}")


asyncio.run(main(sys.argv[1:]))
