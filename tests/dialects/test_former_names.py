"""Names of the draft before the June draft are read as today's."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman.dialects.v2_june import old_names
from tests.dialects.schemas import raw, read


@pytest.mark.parametrize("message", ['{"sessionId": "s"}', '{"id": ', '["id"]'])
def test_what_has_none_of_the_old_names_is_left_as_it_is(message: str) -> None:
    assert old_names.modern(Raw(message.encode())) == Raw(message.encode())


def test_old_names_are_made_todays() -> None:
    update = {
        "plan": {"id": "p"},
        "availableCommands": [7, {"name": "a", "input": {"hint": "what"}}, {"name": "b", "input": {"type": "x"}}],
        "configOptions": [7, {"id": "mode", "options": [7, {"group": "g"}]}],
        "content": {"type": "diff", "path": "/a", "newText": "x\n"},
    }
    said = read(old_names.modern(raw({"update": update})))["update"]
    assert said["plan"] == {"planId": "p"}
    assert said["availableCommands"] == [
        7,
        {"type": "command", "name": "a", "input": {"type": "text", "hint": "what"}},
        {"type": "command", "name": "b", "input": {"type": "x"}},
    ]
    assert said["configOptions"] == [7, {"configId": "mode", "options": [7, {"groupId": "g"}]}]
    assert said["content"]["changes"][0]["path"] == "/a"


@pytest.mark.parametrize(
    "item",
    [
        7,
        {"type": "text", "newText": "x"},
        {"type": "diff", "changes": [], "newText": "x"},
        {"type": "diff", "path": 1, "newText": "x"},
        {"type": "diff", "path": "/a", "newText": 1},
        {"type": "diff", "path": "/a", "newText": "x", "oldText": 1},
    ],
)
def test_what_is_no_old_diff_is_no_new_one(item: Any) -> None:
    message = {"update": {"content": [item], "id": ""}}
    assert read(old_names.modern(raw(message))) == message


@pytest.mark.parametrize(("title", "said"), [("Write", "Write"), (None, "Permission needed")])
def test_an_old_question_is_about_its_call(title: str | None, said: str) -> None:
    question = read(old_names.modern(raw({"toolCall": {"toolCallId": "c", "title": title}, "options": []})))
    assert (question["title"], question["options"]) == (said, [])
    assert question["subject"]["toolCall"]["toolCallId"] == "c"
