"""`dragoman acp` in version 1: a client that sets the mode in one of its two ways is told it in the other, once."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Editor


def told(editor: Editor, method: str, params: dict[str, Any]) -> list[Any]:
    """Ask, and ask for the list of sessions behind it; return the modes in what comes between, up to its answer."""
    answer = editor.ask(method, {"sessionId": editor.session, **params})
    assert "result" in answer[-1]
    updates = [message["params"]["update"] for message in [*answer[:-1], *editor.ask("session/list", {})[:-1]]]
    return [
        update["currentModeId"]
        if update["sessionUpdate"] == "current_mode_update"
        else {option["id"]: option["currentValue"] for option in update["configOptions"]}["mode"]
        for update in updates
    ]


@pytest.mark.parametrize(
    ("method", "name", "more"),
    [("session/set_mode", "modeId", {}), ("session/set_config_option", "value", {"configId": "mode"})],
)
def test_the_mode_is_told_once_in_the_way_that_it_was_not_set_in(
    tmp_path: Path, method: str, name: str, more: dict[str, str]
) -> None:
    with Editor(tmp_path) as editor:
        editor.open()
        assert [told(editor, method, {name: mode, **more}) for mode in ("plan", "plan", "ask")] == [
            ["plan"],
            [],
            ["ask"],
        ]
