"""`bash_output(id, wait_for?, timeout?)` and `bash_stop(id)`: read and end what `bash` has left running."""

from typing import Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, only_known, schema, text_input
from dragoman.coder.tools.background import BackgroundCommand, BackgroundCommands
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import title_text
from dragoman.permissions.facts import Action, ActionKind

# How long `bash_output` waits for a text where it is not told; what takes longer is asked for again.
WAIT_SECONDS: Final = 30
MOST_WAIT_SECONDS: Final = 600
# A longer text to wait for is a mistake, and looking for it takes time.
_WANTED_CHARACTERS: Final = 1000


class BashOutput:
    """`bash_output(id, wait_for?, timeout?)`, the timeout in seconds."""

    name = "bash_output"
    kind = "other"
    # Offered where commands are. Its calls are free: the command itself was judged.
    does: ActionKind = "execute"
    description = (
        "Return what a background command has printed since the last look, and whether it still runs. Use it to see "
        "that a server is up or a long build has ended. With wait_for it waits until that text (plain, no pattern) is "
        "in the new output; with timeout alone until the command ends; never longer than timeout seconds "
        f"({WAIT_SECONDS} where only wait_for is given). You are told by yourself when a command ends, so do not poll. "
        'Example: {"id": "bg1", "wait_for": "Listening on", "timeout": 20}'
    )
    schema = schema(
        ["id"],
        id={"type": "string", "description": "what bash returned, such as bg1"},
        wait_for={"type": "string", "description": "a text to wait for"},
        timeout={"type": "integer", "minimum": 1, "maximum": MOST_WAIT_SECONDS, "description": "seconds to wait"},
    )

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    def check(self, call: JudgedCall) -> None:
        only_known(call, "id", "wait_for", "timeout")
        self._commands.find(text_input(call, "id"))
        if "wait_for" in call.input and not 0 < len(text_input(call, "wait_for")) <= _WANTED_CHARACTERS:
            raise BadInput(f"bash_output takes 'wait_for' with up to {_WANTED_CHARACTERS} characters, and not empty.")
        if (count_input(call, "timeout", 1) or 0) > MOST_WAIT_SECONDS:
            raise BadInput(f"bash_output takes a 'timeout' of up to {MOST_WAIT_SECONDS} seconds.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        command = self._commands.find(text_input(call, "id"))
        return Preview(f"Output of {command.id}: {title_text(command.command)}", [Action("free")])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        command = self._commands.find(text_input(call, "id"))
        wanted = str(call.input.get("wait_for") or "")
        seconds = count_input(call, "timeout", 1) or (WAIT_SECONDS if wanted else 0)
        has_come = False

        def look() -> bool:
            nonlocal has_come
            has_come = bool(wanted) and command.has_printed(wanted)
            return has_come

        await command.wait(seconds, look)
        missed = f"{wanted!r} was not printed" if wanted and not look() else ""
        return outcome_of(command, missed)


class BashStop:
    """`bash_stop(id)`."""

    name = "bash_stop"
    kind = "other"
    does: ActionKind = "execute"
    description = (
        "End a background command with all that it started, and return the rest of its output. Use it when you need "
        "the command no longer, or to start it anew. It is asked to end (SIGTERM) and killed a second later; a "
        "confined one is killed at once. "
        'Example: {"id": "bg1"}'
    )
    schema = schema(["id"], id={"type": "string", "description": "what bash returned, such as bg1"})

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    def check(self, call: JudgedCall) -> None:
        only_known(call, "id")
        self._commands.find(text_input(call, "id"))

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        command = self._commands.find(text_input(call, "id"))
        return Preview(f"Stop {command.id}: {title_text(command.command)}", [Action("free")])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        command = self._commands.find(text_input(approved.call, "id"))
        command.is_told = True
        await command.stop("stopped")
        return outcome_of(command)


def outcome_of(command: BackgroundCommand, remark: str = "") -> ToolOutcome:
    """Return what is new of a command: its output, and its state in the last line."""
    command.is_told = command.is_told or command.has_ended
    text = command.take_output()
    lines = [text.removesuffix("\n") or "(no new output)"]
    lines += [f"[{note}]" for note in (command.notes if command.has_ended else [])]
    state = f"{command.id}: {command.status()}"
    lines.append(f"[{state}; {remark}]" if remark else f"[{state}]")
    return ToolOutcome("\n".join(lines), raw={"id": command.id, "running": not command.has_ended})
