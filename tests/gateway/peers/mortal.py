"""An agent in a process of its own, which keeps its sessions and says which process it is.

python mortal.py FOLDER [none | forgetful | stubborn]

`none` keeps nothing, and so cannot open a session again; `forgetful` keeps no options, and opens one with those it
began with; `stubborn` likewise, and an option can be set once in its life.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from dragoman import Agent
from dragoman.agent.history import StoredSettings
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.options import Choice, Select

agent = Agent(
    "mortal",
    store=None if "none" in sys.argv else SqliteStore(Path(sys.argv[1])),
    options=[Select("depth", "Depth", "shallow", [Choice("shallow", "Shallow"), Choice("deep", "Deep")])],
)

if "forgetful" in sys.argv or "stubborn" in sys.argv:
    StoredSettings.restore_options = lambda self, options: list(options)  # type: ignore[method-assign]

if "stubborn" in sys.argv:

    @agent.option_changed
    async def changed(session: Any, config_id: str, value: Any) -> None:
        (Path(sys.argv[1]) / "changed").mkdir(parents=True)


@agent.prompt
async def reply(session: Any, prompt: Any) -> None:
    match prompt.text:
        case "farewell":
            await session.say(f"farewell {os.getpid()}")
            await asyncio.sleep(600)
        case "pid":
            await session.say(f"{os.getpid()} {session.option('depth')}")
        case "wait":
            await asyncio.sleep(600)
        case text:
            await session.say(text)


agent.run()
