"""The bare asyncio + msgspec agent: what an awaitable API over typed structs can reach at best in Python."""

import asyncio

from bench.peers.floor_link import (
    AgentMessageChunk,
    Answer,
    Diff,
    Link,
    Message,
    Notification,
    SessionUpdate,
    Text,
    ToolCallUpdate,
    Update,
    decode_message,
    decode_prompt,
)

SESSION = "bench-session"
MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
RESULTS: dict[str, object] = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "floor", "version": "1"}},
    "session/new": {"sessionId": SESSION, "modes": MODES},
    "session/set_mode": {},
    "_bench/echo": {},
    "session/prompt": {"stopReason": "end_turn"},
}


class Agent:
    """One task a request, as an SDK must; the answer is written at the end of the loop's turn."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self.link = Link(0, 1, self._on_line)

    def _on_line(self, line: bytes) -> None:
        task = asyncio.ensure_future(self._answer(decode_message(line)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Message) -> None:
        if message.id is None or message.method is None:
            return
        if message.method == "session/prompt":
            prompt = decode_prompt(message.params)
            await self._turn(prompt.session_id, prompt.prompt[0].text)
        await self.link.send(Answer(message.id, RESULTS[message.method]))

    async def _turn(self, session_id: str, text: str) -> None:
        word, count, *words = text.split(" ", 2)
        if word == "big":
            diff = Diff("/bench/file.py", ("x" * 79 + "\n") * (int(count) // 80))
            await self._update(session_id, ToolCallUpdate("big", [diff]))
        else:
            for _ in range(int(count)):
                await self._update(session_id, AgentMessageChunk(Text(words[0])))

    async def _update(self, session_id: str, update: Update) -> None:
        await self.link.send(Notification("session/update", SessionUpdate(session_id, update)))


async def main() -> None:
    await Agent().link.ended


if __name__ == "__main__":
    asyncio.run(main())
