"""What one run of a client has left: the connections to our agent, how the client ended, and what it printed."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dragoman.conformance.clients.script import ScenarioAgent, ScriptedPrompt
from dragoman.conformance.connection import Message, Received
from dragoman.conformance.frames import Frame
from dragoman.conformance.verdicts import NotTested, RowFailed

_SENDS_PROMPTS = "give the client a command line that sends a prompt and ends, or use --manual"


class ClientRun(NamedTuple):
    """One run. `exit_code` is None for a client that had to be ended, or that is not ours to end."""

    version: int
    agents: tuple[ScenarioAgent, ...]
    exit_code: int | None = None
    output: str = ""
    # It ran on although its turn was over, or its agent was gone.
    is_hung: bool = False
    was_interrupted: bool = False
    # Connections to our agent that were open after the client had ended.
    left_open: int = 0
    # Whether the client ends by itself after its turn; others cannot be judged by their end.
    ends_by_itself: bool = True

    @property
    def agent(self) -> ScenarioAgent:
        """Return the connection that the scenario was played on: the last one with a prompt, or the last one."""
        if not self.agents:
            raise RowFailed("the client has not started our agent")
        return next((one for one in reversed(self.agents) if one.prompts), self.agents[-1])

    @property
    def turn(self) -> ScriptedPrompt:
        """Return the prompt of the scenario. Raise `NotTested` if none came."""
        self.expect_prompt()
        return self.agent.prompts[0]

    def expect_prompt(self) -> None:
        """Raise `NotTested` if no prompt came: then nothing was played."""
        if not self.agent.prompts:
            raise NotTested("the client sent no prompt", _SENDS_PROMPTS)

    def received(self) -> Iterator[Received]:
        """Yield the messages of all connections."""
        for agent in self.agents:
            yield from agent.connection.received

    def calls(self, *methods: str) -> list[Received]:
        """Return the requests and notifications of these methods."""
        return [one for one in self.received() if one.message.get("method") in methods]

    def params(self, *methods: str) -> list[tuple[Message, Frame]]:
        """Return the params of these methods, with the frames."""
        return [
            (one.message["params"] if isinstance(one.message.get("params"), dict) else {}, one.frame)
            for one in self.calls(*methods)
        ]

    def answer(self, name: str) -> Message:
        """Return an answer that the play waited for. Raise `RowFailed` if the client has not sent it."""
        self.expect_prompt()
        if name not in self.agent.answers:
            raise NotTested("the play did not come so far", "see what failed before")
        self.agent.judged.append(name)
        answer = self.agent.answers[name]
        if answer is None:
            raise RowFailed("the client has not answered")
        return answer

    def expect_alive(self, after: str) -> None:
        """Judge that the client went on after something odd."""
        self.expect_prompt()
        agent = self.agent
        if agent.connection.is_lost and agent.lost_in_turn:
            raise RowFailed(f"after {after} the client ended the connection")
        if not agent.is_alive and self.exit_code != 0:
            raise RowFailed(f"after {after} the client answers nothing any more")

    def expect_end(self) -> None:
        """Raise `NotTested` for a client that does not end by itself."""
        if not self.ends_by_itself:
            raise NotTested("the client does not end by itself", "check it with a command that sends one prompt")

    def can(self, *path: str) -> Any:
        """Return what the client has said of itself under `clientCapabilities`, or `capabilities`."""
        value: Any = self.agent.hello.get("clientCapabilities" if self.version == 1 else "capabilities")
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value
