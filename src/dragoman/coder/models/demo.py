"""`demo`: no model, but a guided tour and a few explicit commands, for when no model is connected.

The first line of the prompt decides. `tour` plays a recording, `help` lists the commands, a command becomes one call of
a real tool, so permissions and sessions are as with any model. Everything else is answered with one sentence: the demo
never guesses. It does not read the system prompt, and a result's text is shown, never searched for something to do.

Promise: the demo makes no call that the user did not type, or that does not stand in `TOUR`. So an attached file, a
file that is read and a page that is fetched can ask it for nothing.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextSummary,
    ContextToolResult,
    ContextUserMessage,
    Item,
    is_prompt,
)
from dragoman.coder.models.contract import ModelRequest, Piece, TextDelta, ToolCallRequested
from dragoman.coder.models.names import DEMO, is_model_name
from dragoman.vocabulary.content import Text

# What editors show as the size of the context.
WINDOW: Final = 32_000
# Of a tool's result, how much the answer repeats; the tool call itself shows the rest.
_SHOWN_CHARACTERS: Final = 4_000
_SUMMARY_LINES: Final = 100
# Loopback and nothing else: `OLLAMA_HOST` makes Ollama the default model, so the demo does not answer then.
_OLLAMA: Final = ("127.0.0.1", 11434)
_OLLAMA_SECONDS: Final = 0.3
_OLLAMA_BYTES: Final = 64 * 1024

CONNECT: Final = "run `dragoman login`, or set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"
COMMANDS: Final = """\
The demo knows these commands, one a message:

- `tour`: play a recording that finds and fixes a bug, with the real tools, in a folder `dragoman-tour`
- `read FILE`
- `list [DIR]`
- `search TEXT`
- `create FILE`, with the content on the next lines; it replaces a file that is there
- `replace A with B in FILE`; quote A and B where one of them has the word with or in: `replace "A" with "B" in FILE`
- `run COMMAND`
- `fetch URL`
- `plan STEP; STEP; …`
- `ask QUESTION`, with answers to choose from on the next lines
- `help`

"""

# -- the tour --------------------------------------------------------------------------------------------------------

_FOLDER: Final = "dragoman-tour"
_BROKEN: Final = "def add(a, b):\n    return a - b\n"
_TEST: Final = """\
import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
# -B: a compiled file of the same second and size would hide the fix.
_RUN_TESTS: Final = f"python3 -B -m unittest discover -s {_FOLDER}"
TOUR_STOPS: Final = "This step did not go through, so the recording stops here. `tour` begins again.\n"
TOUR_ENDS: Final = (
    "The test passes: end of the recording. The tools, the permissions and this session were real; the words were "
    f"recorded. For a model that writes its own, {CONNECT}.\n"
)


class TourStep(NamedTuple):
    """Words of the recording, and the tool call after them. `may_fail`: the recording goes on after a failed call."""

    text: str
    tool: str
    input: Mapping[str, object]
    may_fail: bool = False


TOUR: Final = (
    TourStep(
        "**This is a recording**, not a language model. It is played with the real tools, so you are asked for "
        f"permission as your mode wants it. First a small project in `{_FOLDER}`, with a bug in it.\n",
        "write_file",
        {"path": f"{_FOLDER}/calc.py", "content": _BROKEN},
    ),
    TourStep("And a test for it.\n", "write_file", {"path": f"{_FOLDER}/test_calc.py", "content": _TEST}),
    TourStep("Run the test: it should fail.\n", "bash", {"command": _RUN_TESTS}, may_fail=True),
    TourStep(
        "In the recording the test failed: -1 is not 5. Read the code.\n", "read_file", {"path": f"{_FOLDER}/calc.py"}
    ),
    TourStep(
        "`add` subtracts. Here is the fix as a diff.\n",
        "edit_file",
        {"path": f"{_FOLDER}/calc.py", "old_string": "return a - b", "new_string": "return a + b"},
    ),
    TourStep("Run the test again.\n", "bash", {"command": _RUN_TESTS}),
)


# -- the commands ----------------------------------------------------------------------------------------------------


class ToolCommand(NamedTuple):
    """A command that is one tool call."""

    tool: str
    input: dict[str, object]


class WordCommand(NamedTuple):
    """A command without a tool: `tour`, `help`, or a sentence that says how to write one of the others."""

    text: str


_TOUR: Final = WordCommand("tour")
_HELP: Final = WordCommand("help")
_NO_CONTENT: Final = WordCommand("Put the content on the lines after `create FILE`, in the same message.\n")
_UNCLEAR: Final = WordCommand('Write it as: `replace "A" with "B" in FILE`\n')
# What means something in a regular expression. `re.escape` escapes blanks too, which the question would show.
_SPECIAL: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
_REPLACE_QUOTED: Final = re.compile(r'"(?P<old>[^"]+)" with "(?P<new>[^"]*)" in (?P<file>.+)')
_REPLACE: Final = re.compile(r"(?P<old>.+) with (?P<new>.+) in (?P<file>.+)")


def parse_command(text: str) -> ToolCommand | WordCommand | None:
    """Return the command that a prompt is; None: it is none."""
    line, _, below = text.strip().partition("\n")
    word, _, rest = line.strip().partition(" ")
    word, rest = word.lower(), rest.strip()
    lines = [each.strip() for each in below.splitlines() if each.strip()]
    # These take the lines below the first one.
    match word:
        case "create" if rest:
            content = below.rstrip("\n") + "\n"
            return ToolCommand("write_file", {"path": _path(rest), "content": content}) if below else _NO_CONTENT
        case "run" if rest:
            return ToolCommand("bash", {"command": "\n".join([rest, below]).rstrip("\n")})
        case "plan" if rest or lines:
            steps = [step.strip() for step in [*rest.split(";"), *lines] if step.strip()]
            return ToolCommand("update_plan", {"entries": [{"content": step, "status": "pending"} for step in steps]})
        case "ask" if rest:
            return ToolCommand("ask_user", {"question": rest, **({"options": lines} if lines else {})})
    return None if lines else _parse_line(word, rest)


def _parse_line(word: str, rest: str) -> ToolCommand | WordCommand | None:
    match word:
        case "tour" if not rest:
            return _TOUR
        case "help" if not rest:
            return _HELP
        case "read" if rest:
            return ToolCommand("read_file", {"path": _path(rest)})
        case "list":
            return ToolCommand("list_files", {"path": _path(rest)} if rest else {})
        case "search" if rest:
            return ToolCommand("grep", {"pattern": _SPECIAL.sub(r"\\\g<0>", rest)})
        case "fetch" if rest:
            return ToolCommand("web_fetch", {"url": rest})
        case "replace" if rest:
            return _replace(rest)
        case _:
            return None


def _replace(words: str) -> ToolCommand | WordCommand:
    """Read `A with B in FILE`. What could be meant in two ways is not guessed."""
    found = _REPLACE_QUOTED.fullmatch(words)
    if found is None and words.count(" with ") == 1 and words.count(" in ") == 1:
        found = _REPLACE.fullmatch(words)
    if found is None:
        return _UNCLEAR
    changed = {"old_string": found["old"], "new_string": found["new"]}
    return ToolCommand("edit_file", {"path": _path(found["file"].strip()), **changed})


def _path(name: str) -> str:
    """Return a path without the @ that terminals and editors put before a file."""
    return name.removeprefix("@")


# -- the model -------------------------------------------------------------------------------------------------------


class DemoModel:
    """The demo, as a model for one session. `introduce` gives the sentence that says what answers here."""

    name = DEMO
    window: int | None = WINDOW
    sees: frozenset[str] = frozenset()

    def __init__(self, introduce: Callable[[], Awaitable[str]] | None = None) -> None:
        self._introduce = introduce or introduction
        # The prompt that is being answered, and the calls made for it. They are not counted in the items: a
        # compaction in the middle of a turn takes calls out of there, and the demo would make them again.
        self._prompt_id: str | None = None
        self._calls = 0

    async def find_price(self) -> Literal["known", "free", "unknown"]:
        """Nothing is called, and nothing is paid."""
        return "free"

    def begin_turn(self) -> None:
        """Begin with the next prompt at its first step."""
        self._prompt_id = None

    def assistant(self, name: str) -> "DemoModel":
        """Return a new demo, for a sub-agent."""
        return DemoModel(self._introduce)

    def retry_seconds(self, attempt: int) -> float:
        """Return 0: the demo does not fail."""
        return 0.0

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Yield the next step of the answer to the last message of the user."""
        if request.purpose == "summary":
            yield TextDelta(_summary(request.items[:-1]))
            return
        prompt = next((item for item in reversed(request.items) if is_prompt(item)), None)
        message_id = "" if prompt is None else prompt.message_id
        if message_id != self._prompt_id:  # a new turn, or a message that was sent into a running one
            self._prompt_id, self._calls = message_id, 0
        command = None if prompt is None else parse_command(_text(prompt))
        is_first = not any(isinstance(item, ContextAssistantMessage) for item in request.items)
        if command == _HELP:
            yield TextDelta(COMMANDS)
        # The tour says what it is by itself.
        if command in (None, _HELP) or (is_first and command != _TOUR):
            yield TextDelta(f"{await self._introduce()}\n\n")
        for piece in self._pieces(command, request):
            self._calls += isinstance(piece, ToolCallRequested)
            yield piece

    def _pieces(self, command: ToolCommand | WordCommand | None, request: ModelRequest) -> list[Piece]:
        last = request.items[-1] if request.items else None
        result = last if isinstance(last, ContextToolResult) and self._calls else None
        if command is None or command == _HELP:
            return []
        if command == _TOUR:
            return self._tour(result, request)
        if isinstance(command, WordCommand):
            return [TextDelta(command.text)]
        if self._calls:
            return [TextDelta(_shown(result))]
        return [_call(command.tool, command.input, request)]

    def _tour(self, result: ContextToolResult | None, request: ModelRequest) -> list[Piece]:
        if self._calls and not _goes_on(result, TOUR[self._calls - 1]):
            return [TextDelta(TOUR_STOPS)]
        if self._calls == len(TOUR):
            return [TextDelta(TOUR_ENDS)]
        step = TOUR[self._calls]
        return [TextDelta(step.text), _call(step.tool, step.input, request)]


def _goes_on(result: ContextToolResult | None, step: TourStep) -> bool:
    """Return whether the recording fits what happened. A no of the user never does."""
    from dragoman.coder.permissions import DENIED

    return result is not None and (not result.failed or (step.may_fail and not result.text.startswith(DENIED)))


def _call(tool: str, values: Mapping[str, object], request: ModelRequest) -> Piece:
    """Return the call, by the name that the tool has in this mode: in mode sandbox every name has a prefix."""
    offered = [spec.name for spec in request.tools if spec.name in (tool, f"sandbox_{tool}")]
    if not offered:
        return TextDelta(f"This needs the tool {tool}, which this mode does not offer: choose another, such as ask.\n")
    return ToolCallRequested(offered[0], dict(values))


def _text(prompt: ContextUserMessage) -> str:
    """Return the first block of text that begins with a letter, as every command does.

    `prompt_content` writes attachments as blocks of text that begin with a bracket, so none of them is ever chosen.
    """
    texts = (block.text.lstrip() for block in prompt.content if isinstance(block, Text))
    return next((text for text in texts if text[:1].isalpha()), "")


def _shown(result: ContextToolResult | None) -> str:
    """Return a result's text as a code block that its content cannot end."""
    if result is None or not result.text.strip():
        return "Done; the tool returned no text.\n"
    text = result.text.rstrip("\n")
    more = "\n…" if len(text) > _SHOWN_CHARACTERS else ""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    ended = "failed" if result.failed else "returned"
    return f"`{result.tool}` {ended}, as a model would read it:\n\n{ticks}\n{text[:_SHOWN_CHARACTERS]}{more}\n{ticks}\n"


def _summary(items: Sequence[Item]) -> str:
    """Return the prompts of a conversation and the tools that were called."""
    lines: list[str] = []
    for item in items:
        if is_prompt(item):
            lines.append(f"- You wrote: {' '.join(_text(item).split())[:200]}")
        elif isinstance(item, ContextAssistantMessage):
            lines += [f"  - called {call.tool}" for call in item.calls]
        elif isinstance(item, ContextSummary):
            lines += item.text.splitlines()
    return "\n".join(lines[-_SUMMARY_LINES:]) + "\n" if lines else "Nothing happened so far.\n"


# -- how to get a model ----------------------------------------------------------------------------------------------


async def introduction() -> str:
    """Return the sentence that says that the demo answers, what it can do, and how to get a model on this machine.

    Waits at most `_OLLAMA_SECONDS` for an Ollama.
    """
    model = await find_ollama_model()
    ollama = f", or use `--model ollama/{model}`: Ollama answers on this machine" if model else ""
    return (
        "This is the demo, not a language model: `tour` plays a recording with the real tools, `help` lists the "
        f"commands it knows; for a model, {CONNECT}{ollama}."
    )


async def find_ollama_model() -> str:
    """Return the first model of an Ollama on this machine's loopback address; empty: none answers in 0.3 s."""
    import asyncio  # not before a session is prompted

    try:
        async with asyncio.timeout(_OLLAMA_SECONDS):
            reader, writer = await asyncio.open_connection(*_OLLAMA)
            try:
                writer.write(b"GET /api/tags HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                answer = b""
                while len(answer) < _OLLAMA_BYTES and (piece := await reader.read(_OLLAMA_BYTES)):
                    answer += piece
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
    return _first_model(answer)


def _first_model(answer: bytes) -> str:
    """Return the name of the first model in an answer to `GET /api/tags`; empty: it is no such answer."""
    try:
        name = json.loads(answer.partition(b"\r\n\r\n")[2])["models"][0]["name"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) and is_model_name(name) else ""
