"""Count the files of ours that one request meets, from its bytes to the bytes of its answer.

A profile hook (`sys.setprofile`) is on from the moment the request is written to an in-memory transport until its
response has been read at the other end. Only calls on the main thread count. A request of the same kind is sent before,
unmeasured, so that imports on first use are not counted. `./dev look` prints the result; a new reader has to open about
these files to follow the request.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import dragoman
from dragoman import Agent
from dragoman.agent.prompt import Prompt
from dragoman.agent.session import Session
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.memory import memory_pair

PACKAGE = os.path.dirname(dragoman.__file__) + os.sep
CAPACITY = 1 << 20


class RawClient:
    """The far end of the transport: writes JSON lines, keeps what comes back, and knows nothing else of us."""

    def __init__(self, transport: "object") -> None:
        self.received = b""
        self._transport = transport
        transport.start(self)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.received += data

    def writable(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...

    def send(self, id: int, method: str, params: dict[str, object]) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"
        self._transport.write(line.encode())  # type: ignore[attr-defined]

    async def answer(self, id: int) -> dict[str, object]:
        """Wait for the response to request `id`; return its result."""
        async with asyncio.timeout(30):
            while True:
                for line in self.received.split(b"\n")[:-1]:
                    message = json.loads(line)
                    if message.get("id") == id and "method" not in message:
                        result: dict[str, object] = message["result"]
                        return result
                await asyncio.sleep(0)


def counted(calls: Counter[str]) -> Callable[[FrameType, str, object], None]:
    """A profile hook that counts each call of a function of ours under its file."""

    def hook(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            calls[name.removeprefix(PACKAGE)] += 1

    return hook


async def measure(client: RawClient, id: int, method: str, params: dict[str, object]) -> Counter[str]:
    """Send one request with the hook on; return how many calls each file of ours had until the answer was there."""
    calls: Counter[str] = Counter()
    sys.setprofile(counted(calls))
    try:
        client.send(id, method, params)
        await client.answer(id)
    finally:
        sys.setprofile(None)
    return calls


def one_word_agent(store: SqliteStore | None = None) -> Agent:
    """An SDK agent that says one word."""
    agent = Agent("one-word") if store is None else Agent("one-word", store=store)

    @agent.prompt
    async def reply(session: Session, prompt: Prompt) -> None:
        await session.say("word")

    return agent


async def served(agent: Agent, requests: "list[tuple[str, dict[str, object]]]") -> Counter[str]:
    """Send these requests in turn to the agent, the last one measured. `{session}` is the id of the first session."""
    ours, theirs = memory_pair(CAPACITY)
    serving = asyncio.ensure_future(agent.serve(ours))
    client = RawClient(theirs)
    session = ""
    calls: Counter[str] = Counter()
    hello: dict[str, object] = {"protocolVersion": 1, "clientCapabilities": {}}
    for id, (method, params) in enumerate([("initialize", hello), *requests]):
        filled = {name: session if value == "{session}" else value for name, value in params.items()}
        if id == len(requests):
            await asyncio.sleep(0.05)  # what is planned to be done behind the answer before is done
            calls = await measure(client, id, method, filled)
        else:
            client.send(id, method, filled)
            session = str((await client.answer(id)).get("sessionId", session))
    await theirs.close()
    await serving
    return calls


def prompt_path() -> Counter[str]:
    """The path of a version 1 `session/prompt` to an agent without a store."""
    new: dict[str, object] = {"cwd": os.getcwd(), "mcpServers": []}
    prompt: dict[str, object] = {"sessionId": "{session}", "prompt": [{"type": "text", "text": "hi"}]}
    steps = [("session/new", new), ("session/prompt", prompt), ("session/prompt", prompt)]
    return asyncio.run(served(one_word_agent(), steps))


def load_path() -> Counter[str]:
    """The path of a version 1 `session/load` of a stored session with one turn."""
    new: dict[str, object] = {"cwd": os.getcwd(), "mcpServers": []}
    prompt: dict[str, object] = {"sessionId": "{session}", "prompt": [{"type": "text", "text": "hi"}]}
    load: dict[str, object] = {"sessionId": "{session}", **new}
    close: dict[str, object] = {"sessionId": "{session}"}

    with tempfile.TemporaryDirectory() as folder:

        async def run() -> Counter[str]:
            store = SqliteStore(Path(folder))
            steps = [("session/new", new), ("session/prompt", prompt)]
            steps += [
                ("session/close", close),
                ("session/load", load),
                ("session/close", close),
                ("session/load", load),
            ]
            return await served(one_word_agent(store), steps)

        return asyncio.run(run())


def report() -> Iterator[str]:
    """Both paths: how many files and calls, and which files."""
    for title, path in {"session/prompt, version 1": prompt_path(), "session/load, version 1": load_path()}.items():
        yield f"  {title}: {len(path)} files, {sum(path.values())} calls"
        yield from (f"    {count:5} {name}" for name, count in sorted(path.items()))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
