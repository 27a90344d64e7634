"""`python -m chaos.node [--broken NAME] serve …`: `dragoman` with a model that does what a prompt says, and acts.

A prompt is `OPERATION WORDS ACTS`: say so many words, act so many times by a command, say as many words again. Each
word is `OPERATION.NUMBER`, so it is found again in logs and at clients. Everything else is the product as it is, unless
it is to be broken (`chaos.broken`).
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Final

from dragoman.cli.main import main
from dragoman.coder.context import ContextToolResult, ContextUserMessage
from dragoman.coder.models import script
from dragoman.coder.models.contract import ModelRequest, Piece, TextDelta, ToolCallRequested
from dragoman.vocabulary.content import Text

# Between two words.
_WORD_SECONDS: Final = 0.02


async def respond(model: script.ScriptModel, request: ModelRequest) -> AsyncGenerator[Piece, None]:
    """Yield what the last prompt asks for; `model` knows where the program is that acts."""
    begun = next(
        number
        for number, item in reversed(list(enumerate(request.items)))
        if isinstance(item, ContextUserMessage) and not item.source
    )
    prompt = request.items[begun]
    assert isinstance(prompt, ContextUserMessage) and isinstance(prompt.content[0], Text)
    operation, words, acts = prompt.content[0].text.split()
    has_acted = any(isinstance(item, ContextToolResult) for item in request.items[begun:])
    first = int(words) if has_acted else 0
    for number in range(first, first + int(words)):
        await asyncio.sleep(_WORD_SECONDS)
        yield TextDelta(f"{operation}.{number} ")
    if not has_acted and int(acts):
        step = model._script.turns[0][0]
        assert isinstance(step, script.Say)
        yield ToolCallRequested("bash", {"command": f"bash {step.text} {operation} {acts}"})


def program(arguments: list[str]) -> int:
    """Run the command, with what is to be broken broken."""
    if arguments[0] == "--broken":
        from chaos.broken import VARIANTS

        VARIANTS[arguments[1]]()
        arguments = arguments[2:]
    script.ScriptModel.respond = respond  # type: ignore[method-assign, assignment]
    return main(arguments)


if __name__ == "__main__":
    sys.exit(program(sys.argv[1:]))
