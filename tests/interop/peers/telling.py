"""How a client peer in Python is told what to do and tells what it saw (JSON lines on stdout).

A task is a plan, a folder to work in, and the command of an agent. To import an SDK takes longer than to play a plan,
so the clients on SDKs are given one task after another, as lines on stdin, and say when one is done; others have one
task, in their arguments: `PLAN CWD AGENT...`. The plan is a JSON list of steps; each line that comes back is a pair,
what happened and the value as the SDK understood it. A step is one of

    {"prompt": TEXT}                        read the turn to its end; a permission request is answered with
    {"prompt": TEXT, "permission": KIND}    the option of that kind, or by cancelling the turn when KIND is "cancel"
    {"prompt": TEXT, "cancel_at": TEXT}     cancel the turn when the agent says this
    {"call": METHOD}                        a request that the agent does not know

A plan that begins with {"load": ID} goes on with that session, its story first; others open a new one.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple


class Task(NamedTuple):
    """What a client peer is asked to do."""

    plan: list[dict[str, str]]
    cwd: str
    agent: list[str]
    environment: dict[str, str]


def tasks() -> Iterator[Task]:
    """The tasks on stdin, each when the one before it is done. The environment is that of the agent."""
    for line in sys.stdin:
        given = json.loads(line)
        yield Task(given["plan"], given["cwd"], given["agent"], {**os.environ, **given["env"]})
        tell("done", None)


def task() -> Task:
    """The task in this program's arguments."""
    plan, cwd, *agent = sys.argv[1:]
    return Task(json.loads(plan), cwd, agent, dict(os.environ))


def tell(kind: str, value: Any) -> None:
    """One thing that happened, in one write, since threads may tell. Pydantic models as their JSON, nothing absent."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    print(json.dumps([kind, value]) + "\n", end="", flush=True)
