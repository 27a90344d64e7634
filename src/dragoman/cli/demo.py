"""`dragoman demo`: an agent and a client talk, offline, in both versions of the protocol."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from dragoman.cli.trace import Trace

_SCRIPT = {
    "turns": [
        {
            "steps": [
                {"think": "Somebody has started the demonstration. "},
                {"think": "I should say what they are looking at."},
                {"say": "I am an agent in a process of my own. "},
                {
                    "say": "Every word you read came as one `session/update`, and none of them needed a network.",
                    "delay_ms": 50,
                },
                {"usage": {"input": 12, "output": 34}},
            ]
        },
        {"steps": [{"say": "tick ", "repeat": 1000, "delay_ms": 20}]},
        {"steps": [{"fail": "rate_limit", "times": 1}, {"say": "A retry later, here I am again."}]},
    ]
}


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    return commands.add_parser(
        "demo",
        help="watch an agent and a client talk, offline",
        description="Start an agent as an editor would, and talk to it: a turn, a cancel, a failure that passes.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Show it."""
    from dragoman.errors import DragomanError

    trace = None
    if arguments.trace:
        from dragoman.cli.trace import open_trace

        try:
            trace = open_trace(arguments.trace)
        except OSError as error:
            return complain(f"cannot write the trace: {error.strerror}: {arguments.trace}")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "demo.json")
        with open(script, "w", encoding="utf-8") as file:
            json.dump(_SCRIPT, file)
        try:
            for protocol in [arguments.protocol] if arguments.protocol else [1, 2]:
                asyncio.run(_talk(protocol, script, folder, trace))
        except DragomanError as error:
            return complain(str(error), 6)
    return 0


async def _talk(protocol: int, script: str, folder: str, trace: "Trace | None") -> None:
    from dragoman.client.connect import connect
    from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, Notice

    command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--model", f"script:{script}"]
    async with connect(command, protocol=protocol, trace=trace) as client:
        info = client.agent.info
        _show(f"── ACP v{protocol}: {info.name if info else '?'} {info.version if info else ''}\n")
        session = await client.new_session(folder)
        for prompt in ("Who are you?", "Count until I stop you.", "Are you still there?"):
            _show(f"\nyou    {prompt}\n")
            turn = session.prompt(prompt)
            ticks = 0
            kind = ""
            async for event in turn:
                match event:
                    case AgentThoughtChunk():
                        _show(event.text if kind == "thinks" else f"thinks {event.text}")
                        kind = "thinks"
                    case AgentMessageChunk():
                        _show(event.text if kind == "agent" else ("\n" if kind else "") + f"agent  {event.text}")
                        kind = "agent"
                        ticks += event.text == "tick "
                        if ticks == 5:
                            await turn.cancel()
                    case Notice():
                        _show(f"notice {event.title}\n")
                    case _:
                        pass
            _show(f"\n       ({turn.stop_reason})\n")
    _show("\n")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
