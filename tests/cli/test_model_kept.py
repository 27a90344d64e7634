"""A model that was named by hand is the session's model after a restart too, if it can still be had."""

import json
from pathlib import Path

import pytest

from tests.support.editor import HELLO, Editor, Message

NAMED = "openai/a-model-nobody-lists"


def model(opened: Message) -> str:
    (value,) = [option["currentValue"] for option in opened["configOptions"] if option["id"] == "model"]
    return str(value)


@pytest.mark.parametrize(("key", "then"), [("sk-test", NAMED), ("", "script")], ids=["key", "no key"])
def test_a_model_named_by_hand_is_kept(key: str, then: str, tmp_path: Path) -> None:
    with Editor(tmp_path, env={"OPENAI_API_KEY": "sk-test"}) as editor:
        editor.result("initialize", HELLO[1])
        session_id = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]
        editor.session = session_id
        assert NAMED in json.dumps(editor.prompt(f"/model {NAMED}"))
    with Editor(tmp_path, env={"OPENAI_API_KEY": key}) as editor:
        editor.result("initialize", HELLO[1])
        loading = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
        assert model(editor.ask("session/load", loading)[-1]["result"]) == then
