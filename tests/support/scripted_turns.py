"""Scripts for the whole agent: a model that keeps the results of its calls, and an editor that answers questions."""

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.coder.context import ContextToolResult
from dragoman.coder.models.contract import Model, ModelRequest
from dragoman.coder.models.script import ScriptModel, parse


class RecordingModel(ScriptModel):
    """Plays these turns, and keeps what its calls came to: a text each, in order."""

    def __init__(self, *turns: Sequence[Any], **more: Any) -> None:
        super().__init__(parse({"turns": [{"steps": list(turn)} for turn in turns], **more}))
        self._seen: list[ContextToolResult] = []
        self.prompts: list[Any] = []
        self.system = ""

    def make(self, name: str) -> Model:
        return self

    @property
    def results(self) -> list[str]:
        return [item.text for item in self._seen]

    def respond(self, request: ModelRequest) -> Any:
        self._seen = [item for item in request.items if isinstance(item, ContextToolResult)]
        self.prompts = [item for item in request.items if not isinstance(item, ContextToolResult)]
        self.system = request.system
        return super().respond(request)


def call(tool: str, **given: Any) -> dict[str, Any]:
    """A step of a script. Two of the same kind are two responses only with a word between them."""
    return {"call": tool, "input": given}


def bash(command: str, **more: Any) -> dict[str, Any]:
    return call("bash", command=command, **more)


def apart(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each step a response of its own, and one more at the end, in which the model sees the last result."""
    return [piece for step in steps for piece in (step, {"say": "."})]
