"""Live terminals: the output of a command as editors draw it themselves, where the schema of version 1 has only text.

Zed and JetBrains declare this in `_meta` of their capabilities, and the adapters of Claude and Codex send it:

| where | `_meta` of the tool call | meaning |
|---|---|---|
| `tool_call` | `terminal_info: {terminal_id, cwd}` | make a terminal that only shows; content may name it |
| `tool_call_update` | `terminal_output: {terminal_id, data}` | append output |
| `tool_call_update` | `terminal_exit: {terminal_id, exit_code, signal}` | the command has ended |

The id is that of the tool call. `cwd` is the folder that an editor writes above the terminal; Codex sends it and Claude
does not, so it is left out where it is unknown. An editor makes the terminal only where the call is announced, which is
before an agent starts its command; so every call of the kind `execute` is announced with one, as the adapters do. A
terminal that appears in another call is drawn as text, as for a client that declares nothing.
"""

import codecs
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.codec.terminal_display import TerminalDisplay, without_terminals
from dragoman.dialects.v1.codec import sane_exit
from dragoman.vocabulary import events
from dragoman.vocabulary.hello import TERMINAL_KEYS, ClientCapabilities
from dragoman.vocabulary.state import output_bytes
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import ClientTerminalItem, ExitStatus, TerminalItem, ToolContent

INFO: Final = "terminal_info"
EXIT: Final = "terminal_exit"
# Characters of output in one update: of binary output each byte may take six in JSON.
PIECE: Final = 64 * 1024
# Output that replaces what was sent, which can only be appended to: erase the screen and what was scrolled away.
ERASE: Final = "\x1b[H\x1b[2J\x1b[3J"


def output_key(client: ClientCapabilities) -> str:
    """Return the key under which this client is sent output; empty: it draws no terminals of ours."""
    meta = client.meta or {}
    return next((key for key in TERMINAL_KEYS if meta.get(key) is True), "")


class LiveTerminal:
    """One display terminal that the client draws, under the id of the call that shows it."""

    __slots__ = ("call_id", "has_ended", "has_output", "pieces")

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        # A chunk may end inside a character, which is sent with the chunk that has its end.
        self.pieces = codecs.getincrementaldecoder("utf-8")("replace")
        self.has_output = False  # the client was sent output
        self.has_ended = False  # the client was sent the end; an editor takes one

    def __repr__(self) -> str:
        return f"<LiveTerminal {self.call_id!r} has_output={self.has_output} has_ended={self.has_ended}>"


class LiveTerminals:
    """The live terminals of one session. A call is announced with one, and one of its terminals takes that place."""

    def __init__(self, key: str) -> None:
        self._key: Final = key
        self._announced: dict[str, None] = {}  # calls whose terminal shows nothing yet
        self._live: dict[str, LiveTerminal] = {}  # by the id of the display terminal

    def __repr__(self) -> str:
        return f"<LiveTerminals {self._key} announced={len(self._announced)} live={len(self._live)}>"

    def announce(self, call: events.ToolCallUpdate, root: str = "") -> events.ToolCallUpdate:
        """Return the first update of a call, with a terminal if the call runs a command or shows one already.

        `root` is the folder of the session; empty: unknown.
        """
        meta = call.meta or {}
        shows = any(isinstance(item, TerminalItem) for item in call.content or ())
        # A bridge: the agent has announced a terminal of its own, whose output comes in `_meta` as well.
        if INFO in meta or not (call.kind == "execute" or shows):
            return call
        self._announced[call.tool_call_id] = None
        info = {"terminal_id": call.tool_call_id}
        if folder := _folder_of(call, root):
            info["cwd"] = folder
        return replace(call, meta={**meta, INFO: info})

    def adopt(self, call: ToolCallState, terminals: Mapping[str, TerminalDisplay]) -> Sequence[dict[str, Any]]:
        """Give the terminal of an announced call to the first display terminal in its content.

        Return the `_meta` of the updates that bring it to where the display terminal is.
        """
        if call.tool_call_id not in self._announced:
            return ()
        for item in call.content:
            if isinstance(item, TerminalItem) and item.terminal_id not in self._live:
                del self._announced[call.tool_call_id]
                live = self._live[item.terminal_id] = LiveTerminal(call.tool_call_id)
                display = terminals.get(item.terminal_id)
                return () if display is None else self._metas(live, display.state.output, display.state.exit_status)
        return ()

    def follow(
        self, event: events.TerminalUpdate | events.TerminalOutputChunk, display: TerminalDisplay
    ) -> tuple[str, Sequence[dict[str, Any]]] | None:
        """Return the call of a live terminal and the `_meta` of the updates that an event of it needs; None: not live.

        `display` has the event already.
        """
        live = self._live.get(event.terminal_id)
        if live is None:
            return None
        if isinstance(event, events.TerminalOutputChunk):
            return live.call_id, self._metas(live, output_bytes(event.data), None)
        if event.output is UNSET:
            return live.call_id, self._metas(live, b"", display.state.exit_status)
        live.pieces.reset()
        return live.call_id, self._metas(live, display.state.output, display.state.exit_status, replaces=True)

    def draw(self, items: Sequence[ToolContent], terminals: Mapping[str, TerminalDisplay]) -> list[ToolContent]:
        """Return the items with live terminals as those of the client, and every other display terminal as text."""
        return without_terminals([self._drawn(item) for item in items], terminals)

    def shrink(self, terminals: Mapping[str, TerminalDisplay]) -> None:
        """Keep, when a turn ends, the terminals that are kept in `terminals`: their commands go on."""
        self._announced.clear()
        self._live = {name: live for name, live in self._live.items() if name in terminals}

    def _drawn(self, item: ToolContent) -> ToolContent:
        if isinstance(item, TerminalItem) and (live := self._live.get(item.terminal_id)) is not None:
            return ClientTerminalItem(live.call_id)
        return item

    def _metas(
        self, live: LiveTerminal, output: bytes, status: ExitStatus | None, *, replaces: bool = False
    ) -> Sequence[dict[str, Any]]:
        ends = status is not None and not live.has_ended
        text = live.pieces.decode(output, final=ends)
        if replaces and live.has_output:
            text = ERASE + text
        metas: list[dict[str, Any]] = [
            {self._key: {"terminal_id": live.call_id, "data": text[at : at + PIECE]}}
            for at in range(0, len(text), PIECE)
        ]
        live.has_output = live.has_output or bool(text)
        if status is not None and ends:
            live.has_ended = True
            code, signal = sane_exit(status).exit_code, status.signal
            ending = {
                "terminal_id": live.call_id,
                "exit_code": None if code is UNSET else code,
                "signal": signal or None,
            }
            metas.append({EXIT: ending})
        return metas


def _folder_of(call: events.ToolCallUpdate, root: str) -> str:
    """Return the folder in which a call runs its command: what its input says, below the folder of the session."""
    given = call.raw_input.get("cwd") if isinstance(call.raw_input, dict) else None
    # A path of Windows is left as it is: what the input says may be below it in two ways of writing.
    return posixpath.normpath(posixpath.join(root, given)) if root[:1] == "/" and isinstance(given, str) else root
