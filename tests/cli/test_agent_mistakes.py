"""Mistakes in `acp.json` on the command line: one in a server stops no other, and no name acts on a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.errors import print_error, print_warning, warn_about_plain_http
from tests.support import rogue_agent
from tests.support.command import Called, call
from tests.support.rogue_agent import text

EVIL = "a\x1b]0;PWNED\x07\x9b31m\u202e"


class Place:
    """A home with an `acp.json`, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "home" / "acp.json"
        self.work = folder / "work"
        self.file.parent.mkdir()
        self.work.mkdir()
        command, *args = rogue_agent.written(folder, text("Hello."))
        self.fine: dict[str, Any] = {"command": command, "args": args}

    def write(self, **servers: object) -> None:
        self.file.write_text(json.dumps({"servers": {"fine": self.fine, **servers}}))

    def call(self, *arguments: str) -> Called:
        done = call(*arguments, cwd=self.work, DRAGOMAN_HOME=str(self.file.parent), DRAGOMAN_TOKEN=None)
        shown = done.out + done.error
        assert [one for one in shown if not one.isprintable() and one != "\n"] == []
        return done


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_key_twice_in_one_server_stops_that_one_alone(place: Place) -> None:
    fine = json.dumps(place.fine)
    place.file.write_text(f'{{"servers": {{"fine": {fine},\n"bad-one": {{"command": "a",\n"command": "b"}}}}}}')
    sentence = f'{place.file}, line 3: "command" stands here twice (servers.bad-one.command)'
    assert place.call("run", "hi", "--agent", "fine") == (
        *(0, "Hello.\n"),
        f"dragoman: warning: {sentence}; this agent cannot be used\n",
    )
    assert place.call("run", "hi", "--agent", "bad-one") == (2, "", f"dragoman: {sentence}\n")
    listed = place.call("agents", "list")
    assert (listed.code, listed.error) == (1, f"dragoman: {sentence}; this agent cannot be used\n")
    assert "fine " in listed.out


@pytest.mark.parametrize("name", ["", " ", EVIL, "a\nb"])
def test_a_name_that_is_none_stops_no_other_server_and_reaches_no_terminal(name: str, place: Place) -> None:
    place.write(**{name: place.fine})
    done = place.call("run", "hi", "--agent", "fine")
    assert (done.code, done.out) == (0, "Hello.\n"), done
    assert done.error.endswith(f" (servers.{json.dumps(name)}); this agent cannot be used\n")
    assert done.error.count("\n") == 1
    listed = place.call("agents", "list")
    assert (listed.code, listed.error.count("\n")) == (1, 1)
    assert place.call("run", "hi", "--agent", name).code == 2


@pytest.mark.parametrize(
    "bad",
    [
        {EVIL: 1},
        {"command": "x", "permissionPolicy": EVIL},
        {"url": EVIL},
        {"command": "x", "permissions": {"reject": [{"path": f"[{EVIL}"}]}},
        {"command": "x", "env": {EVIL: 1}},
        {"command": "x", "mcpServers": {EVIL: 7}},
        {"command": "x", "mcpServers": {EVIL: {"url": "a", "command": "b"}}},
        {"command": EVIL},
        {"command": "x", "args": [EVIL, "$NO_SUCH_VARIABLE"]},
        {"command": "x", "env": {EVIL: "$NO_SUCH_VARIABLE"}},
        {"command": "x", "cwd": f"/{EVIL}", "description": EVIL},
    ],
    ids=lambda bad: json.dumps(bad)[:40],
)
def test_nothing_in_the_file_reaches_a_terminal_as_a_command(bad: dict[str, object], place: Place) -> None:
    place.write(**{"bad-one": bad})
    assert place.call("run", "hi", "--agent", "fine").code == 0
    assert place.call("run", "hi", "--agent", "bad-one").code != 0
    place.call("agents", "list")
    place.call("agents", "list", "--check")


def test_a_missing_variable_is_named_with_the_file_the_server_and_the_field(place: Place) -> None:
    place.write(**{"bad-one": {**place.fine, "env": {"A": "$NO_SUCH_VARIABLE"}}})
    done = place.call("run", "hi", "--agent", "bad-one")
    sentence = f"{place.file}, line 1: servers.bad-one.env.A needs the variable NO_SUCH_VARIABLE, which is not set"
    assert (done.code, done.error) == (2, f"dragoman: {sentence}\n")
    assert place.call("run", "hi", "--agent", "fine") == (0, "Hello.\n", "")


def test_a_default_that_there_is_not_stops_only_what_would_use_it(place: Place) -> None:
    place.file.write_text(json.dumps({"servers": {"fine": place.fine}, "defaultServer": EVIL}))
    sentence = f"{place.file}, line 1: there is no server {EVIL!r} in this file (defaultServer)"
    assert place.call("run", "hi", "--agent", "fine") == (0, "Hello.\n", f"dragoman: warning: {sentence}\n")
    assert place.call("run", "hi") == (2, "", f"dragoman: {sentence}\n")
    listed = place.call("agents", "list")
    assert (listed.code, listed.error) == (1, f"dragoman: {sentence}\n")


def test_an_empty_list_of_servers_is_remarked_upon(place: Place) -> None:
    place.file.write_text('{"servers": []}')
    remark = f"{place.file}, line 1: the list of servers is empty (servers)"
    listed = place.call("agents", "list")
    assert (listed.code, listed.error) == (0, f"dragoman: warning: {remark}\n")
    done = place.call("run", "hi", "--agent", "fine")
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith("dragoman: there is no agent 'fine'; there are claude, ")
    assert done.error.endswith(f". {remark}\n")


def test_no_complaint_acts_on_a_terminal_and_its_lines_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_error(f"{EVIL}\nnext line", 7) == 7
    print_warning(EVIL)
    warn_about_plain_http(f"http://example.org/{EVIL}")
    shown = capsys.readouterr().err
    spelled = r"a\x1b]0;PWNED\x07\x9b31m\u202e"
    assert shown.startswith(f"dragoman: {spelled}\nnext line\ndragoman: warning: {spelled}\ndragoman: warning: http")
    assert [one for one in shown if not one.isprintable() and one != "\n"] == []
