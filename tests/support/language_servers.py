"""Sessions of the whole agent beside language servers: the small one of ours (`language_server.py`), and real ones."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.client.conversation import Conversation
from dragoman.coder.language_servers.known import ServerSpec
from dragoman.coder.language_servers.server import ServerTimeouts
from dragoman.host.trust import trust
from tests.support.scripted_turns import RecordingModel, apart
from tests.support.whole_agent import events_of, whole

PROGRAM = Path(__file__).with_name("language_server.py")
# No test waits for a bound on time that a busy machine could miss.
PATIENT = ServerTimeouts(edit=30.0, tool=30.0)


def small(*switches: str, name: str = "small", files: Sequence[str] = ("*.txt",)) -> ServerSpec:
    """The small server, with switches."""
    return ServerSpec(name, (sys.executable, str(PROGRAM), *switches), tuple(files))


@asynccontextmanager
async def beside(
    folder: Path,
    steps: Sequence[Any],
    *specs: ServerSpec,
    trusted: bool = True,
    timeouts: ServerTimeouts = PATIENT,
    mode: str = "full-access",
    setup: dict[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Conversation, RecordingModel]]:
    """A session in `folder / "work"`, with a model that makes these calls, one for each response."""
    work, registry = folder / "work", folder / "trust.json"
    work.mkdir(exist_ok=True)
    if trusted:
        trust(registry, work)
    model = RecordingModel(apart(steps))
    own = {"language_servers": lambda: specs, "trust": str(registry), "server_timeouts": timeouts, **(setup or {})}
    async with whole(work, model.make, mode=mode, home=folder / "home", setup=own, **more) as (_, session):
        yield session, model


async def results_beside(folder: Path, steps: Sequence[Any], *specs: ServerSpec, **more: Any) -> list[str]:
    """The results of these calls."""
    async with beside(folder, steps, *specs, **more) as (session, model):
        await events_of(session)
    return model.results


def box_of(result: str) -> list[str]:
    """The lines of problems in a result."""
    _, _, rest = result.partition("<diagnostics>\n")
    return rest.partition("\n</diagnostics>")[0].splitlines()
