"""What an editor would draw of a session: messages and tool calls in order of appearance. Alike in both versions."""

import base64
from typing import Any, NamedTuple

from tests.support.editor import Message

FINAL = ("completed", "failed", "cancelled")
# Moments, not parts of what is drawn.
_PASSING = {"notice", "state_update", "usage_update", "available_commands_update", "config_option_update"}


class Words(NamedTuple):
    """A message of the user or the agent."""

    id: str
    role: str
    text: str


class Deed(NamedTuple):
    """A tool call. v1 has no `cancelled`, so that is a failure here."""

    id: str
    name: str
    title: str
    kind: str
    status: str
    shown: tuple[str, ...]
    input: Any
    output: Any


Item = Words | Deed


class Picture:
    """Fed with updates as they are heard."""

    def __init__(self) -> None:
        self.title = ""
        self.mode = ""
        self.state = ""
        self._order: list[str] = []
        self._words: dict[str, tuple[str, str]] = {}
        self._deeds: dict[str, Message] = {}
        self._screens: dict[str, Message] = {}

    def hear(self, update: Message) -> None:
        """The next update."""
        name = update["sessionUpdate"]
        match name:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk":
                self.say(update["messageId"], name.removesuffix("_chunk"), update["content"]["text"])
            case "user_message" | "agent_message" | "agent_thought":
                self._words.pop(update["messageId"], None)
                self.say(update["messageId"], name, "".join(block["text"] for block in update["content"]))
            case "tool_call" if update["toolCallId"].startswith("notice-"):
                pass  # what version 2 is told as a notice: a moment, and in no replay
            case "tool_call" | "tool_call_update":
                self._deed(update["toolCallId"]).update(update)
            case "tool_call_content_chunk":
                self._deed(update["toolCallId"]).setdefault("content", []).append(update["content"])
            case "terminal_update":
                screen = self._screens.setdefault(update["terminalId"], {"output": {"data": ""}})
                screen.update(update)
            case "terminal_output_chunk":
                screen = self._screens[update["terminalId"]]
                screen["more"] = screen.get("more", b"") + base64.b64decode(update["data"])
            case "session_info_update":
                self.title = update["title"]
            case _:
                assert name in _PASSING, name
        self.state = update.get("state", self.state)

    def say(self, message_id: str, role: str, text: str) -> None:
        """A piece of a message."""
        self._place(message_id)
        self._words[message_id] = role, self._words.get(message_id, (role, ""))[1] + text

    def drawn(self) -> list[Item]:
        """Everything, as it looks now."""
        return [
            Words(name, *self._words[name]) if name in self._words else self._drawn_deed(name) for name in self._order
        ]

    def _place(self, name: str) -> None:
        if name not in self._order:
            self._order.append(name)

    def _deed(self, name: str) -> Message:
        self._place(name)
        return self._deeds.setdefault(name, {})

    def _drawn_deed(self, name: str) -> Deed:
        deed = self._deeds[name]
        shown = (self._shown(item) for item in deed.get("content", []))
        return Deed(
            name,
            deed.get("name", ""),
            deed.get("title", ""),
            deed.get("kind", ""),
            "failed" if deed.get("status") == "cancelled" else deed.get("status", ""),
            tuple(text for text in shown if text),
            deed.get("rawInput"),
            deed.get("rawOutput"),
        )

    def _shown(self, item: Message) -> str:
        match item["type"]:
            case "terminal":
                return _in_words(self._screens.get(item["terminalId"]))
            case "diff":
                return str(item.get("path") or item["changes"][0]["path"])
            case _:
                return str(item["content"]["text"])


def _in_words(screen: Message | None) -> str:
    """A terminal as it is told in v1."""
    if screen is None:
        return ""
    output = base64.b64decode(screen["output"]["data"]) + screen.get("more", b"")
    code = screen.get("exitStatus", {}).get("exitCode")
    return f"$ {screen['command']}\n{output.decode()}" + (f"\n[exit code {code}]" if code else "")


def check_kept(seen: list[Item], found: list[Item]) -> None:
    """Nothing that was seen is missing in what was found; what had not ended may have gone on."""
    assert len(found) >= len(seen), f"lost: {seen[len(found) :]}"
    for before, after in zip(seen, found, strict=False):
        if isinstance(before, Words):
            # v1 does not tell the id of a prompt while it is lived.
            assert isinstance(after, Words)
            assert (after.role, after.id) == (before.role, before.id if "_" in before.id else after.id)
            assert after.text.startswith(before.text)
        else:
            assert isinstance(after, Deed)
            if before.status in FINAL:
                assert after == before
            else:
                assert _call(after) == _call(before)
                assert "".join(after.shown).startswith("".join(before.shown))


def check_true(found: list[Item], truth: list[Item]) -> None:
    """What was found is the beginning of what happens undisturbed, and the rest of it was interrupted."""
    assert len(found) <= len(truth), f"invented: {found[len(truth) :]}"
    for number, (item, real) in enumerate(zip(found, truth, strict=False)):
        if isinstance(item, Words):
            assert isinstance(real, Words)
            assert item.role == real.role
            assert real.text.startswith(item.text)
            assert item.text == real.text or number == len(found) - 1
        elif item != real._replace(id=item.id):
            assert isinstance(real, Deed)
            assert _call(item)[1:] == _call(real)[1:]
            assert (item.status, item.shown[-1:]) == ("failed", ("interrupted",))
            assert "".join(real.shown).startswith("".join(item.shown[:-1]))
            assert not any(isinstance(later, Words) for later in found[number:])


def _call(deed: Deed) -> tuple[str, str, str, str, Any]:
    return deed.id, deed.name, deed.title, deed.kind, deed.input
