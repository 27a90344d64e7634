"""`dragoman demo`: an agent and a client talk, without a network, in both versions of the protocol."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import print_error

if TYPE_CHECKING:
    from dragoman.client.conversation import Turn
    from dragoman.trace.writer import FrameHook

_SCRIPT: Final = {
    "turns": [
        {
            "steps": [
                {"think": "The user has started the demonstration. "},
                {"think": "I should say what they are looking at."},
                {"say": "I am an agent in a process of my own. "},
                {"say": "Every piece of this text came as one message, ", "delay_ms": 50},
                {"say": "and none of them needed a network.", "delay_ms": 50},
                {"usage": {"input": 12, "output": 34}},
            ]
        },
        {"steps": [{"say": "tick ", "repeat": 1000, "delay_ms": 20}]},
        {"steps": [{"fail": "rate_limit", "times": 1}, {"say": "A retry later, here I am again."}]},
    ]
}
_PROMPTS: Final = ("Who are you?", "Count until I stop you.", "Are you still there?")
_TICKS: Final = 5
AGENT_FAILED: Final = 6


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    return add_command(
        commands,
        "demo",
        "watch an agent and a client talk, without a network",
        "Start an agent as an editor would, and talk to it: a turn, a cancel, a failure that passes.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Show it."""
    import json
    import os
    import tempfile

    from dragoman import background
    from dragoman.cli.trace_file import trace_of
    from dragoman.errors import DragomanError
    from dragoman.host.failure_text import failure_text

    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        script = os.path.join(folder, "demo.json")
        with open(script, "w", encoding="utf-8") as file:
            json.dump(_SCRIPT, file)
        try:
            for protocol in [arguments.protocol] if arguments.protocol else [1, 2]:
                background.run(_talk(protocol, script, folder, trace_of(arguments, "client")))
        except DragomanError as error:
            return print_error(failure_text(error), AGENT_FAILED)
    return 0


async def _talk(protocol: int, script: str, folder: str, trace: "FrameHook | None") -> None:
    import os

    from dragoman.client.connect import connect

    command = [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--model", f"script:{script}"]
    # The sessions of the demonstration are stored beside its script, and deleted with it.
    apart = {"DRAGOMAN_HOME": os.path.join(folder, "home")}
    async with connect(command, protocol=protocol, trace=trace, env=apart) as client:
        info = client.agent.info
        _show(f"── ACP v{protocol}: {f'{info.name} {info.version}' if info else 'an agent without a name'}\n")
        session = await client.new_session(folder)
        for prompt in _PROMPTS:
            _show(f"\nyou    {prompt}\n")
            turn = session.prompt(prompt)
            await _show_turn(turn)
            _show(f"       ({_end(turn)})\n")
    _show("\n")


async def _show_turn(turn: "Turn") -> None:
    from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, Notice

    speaker = ""
    ticks = 0
    async for event in turn:
        match event:
            case AgentThoughtChunk():
                speaker = _speech_line("thinks", event.text, speaker)
            case AgentMessageChunk():
                speaker = _speech_line("agent", event.text, speaker)
                ticks += event.text == "tick "
                if ticks == _TICKS:
                    await turn.cancel()
            case Notice():
                speaker = _speech_line("notice", event.title, speaker)
            case _:
                pass
    _show("\n" if speaker else "")


def _end(turn: "Turn") -> str:
    if turn.usage is None:
        return turn.stop_reason
    return f"{turn.stop_reason}; {turn.usage.input_tokens} tokens in, {turn.usage.output_tokens} out"


def _speech_line(speaker: str, text: str, before: str) -> str:
    """Show a piece of text, on a new line if the speaker has changed; return the speaker."""
    if speaker != before:
        _show(("\n" if before else "") + f"{speaker:7}")
    _show(text)
    return speaker


def _show(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))  # a terminal may know ASCII alone
    sys.stdout.flush()
