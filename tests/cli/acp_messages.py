"""Reading what `dragoman acp` sends: ends of turns, texts, stored sessions."""

from collections.abc import Callable

from tests.support.editor import Editor, Message

# What ends by itself here takes many minutes. The promise is two seconds, and is held to where a machine has time.
SECONDS = 30.0
PROMISED = 2.0
NO_PARAMS = -32602


def ends(messages: list[Message]) -> list[str]:
    """How turns ended, in whatever was heard."""
    found = [message.get("result", message.get("params", {}).get("update", {})) for message in messages]
    return [one["stopReason"] for one in found if "stopReason" in one]


def until(editor: Editor, fact: Callable[[Message], bool]) -> list[Message]:
    """Read up to the message that is meant."""
    heard = [editor.read()]
    while not fact(heard[-1]):
        assert "error" not in heard[-1], heard[-1]
        heard.append(editor.read())
    return heard


def open_another(editor: Editor) -> str:
    """A session beside the first."""
    answer = editor.ask("session/new", {"cwd": str(editor.folder), "mcpServers": []})[-1]
    return str(answer["result"]["sessionId"])
