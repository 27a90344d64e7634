"""The user is called back after a while, in the ways they chose, with a sentence of ours."""

import asyncio
import io
import os
from pathlib import Path

import pytest

from dragoman.cli.settings import SettingsError, read_settings
from dragoman.cli.terminal.notifier import Notifier
from tests.cli.chat_pane import PROMPT, chat, ready, scripted

XTERM = {"TERM": "xterm-256color"}
SAID = "\x1b]9;Dragoman: The turn has ended in shop\x1b\\"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def notified(
    written: str = "", *, environment: dict[str, str] = XTERM, seconds: float = 11, folder: str = "/srv/shop"
) -> str:
    """What a terminal is sent at the end of a turn that took so long, by settings as in the environment."""
    terminal, now = Terminal(), [0.0]
    settings = read_settings({"DRAGOMAN_NOTIFY": written} if written else {}, "/nowhere/config.toml")
    notifier = Notifier(terminal, folder, settings, environment, lambda: now[0])
    notifier.user_acted()
    now[0] = seconds
    notifier.turn_ended()
    return terminal.getvalue()


def test_a_long_turn_rings_and_notifies() -> None:
    assert notified() == f"{SAID}\a"


def test_a_turn_of_less_than_ten_seconds_is_quiet() -> None:
    assert notified(seconds=9.9) == ""


@pytest.mark.parametrize(
    ("ways", "signs"),
    [("bell", "\a"), ("terminal", SAID), ("terminal,bell", f"{SAID}\a"), ("off", ""), ("desktop", "")],
)
def test_the_setting_chooses_the_ways(ways: str, signs: str) -> None:
    assert notified(ways) == signs


@pytest.mark.parametrize(
    ("environment", "signs"),
    [
        ({"TERM": "dumb"}, ""),
        ({}, ""),
        ({"TERM": "linux"}, "\a"),
        (XTERM | {"TMUX": "1"}, "\x1bPtmux;\x1b\x1b]9;Dragoman: The turn has ended in shop\x1b\x1b\\\x1b\\\a"),
    ],
)
def test_a_terminal_is_sent_what_it_understands(environment: dict[str, str], signs: str) -> None:
    assert notified(environment=environment) == signs


def test_a_folder_of_any_name_writes_no_control_character() -> None:
    shown = notified("terminal", folder="/srv/a\x1b]52;c;eA==\x07\u202e\nb")
    assert shown.count("\x1b") == 2
    assert not {"\x07", "\u202e", "\n"} & set(shown)


def test_no_terminal_is_sent_nothing() -> None:
    pipe, settings = io.StringIO(), read_settings({"DRAGOMAN_NOTIFY_AFTER": "0"}, "/nowhere/config.toml")
    Notifier(pipe, "/srv/shop", settings, XTERM).turn_ended()
    assert pipe.getvalue() == ""


def test_an_unknown_way_is_refused_with_its_place() -> None:
    settings = read_settings({"DRAGOMAN_NOTIFY": "bell, bel"}, "/nowhere/config.toml")
    with pytest.raises(SettingsError, match="DRAGOMAN_NOTIFY: notify has the unknown word 'bel'; there are bell"):
        Notifier(Terminal(), "/srv/shop", settings, XTERM)


def desktop(folder: Path, **environment: str) -> list[str]:
    """What `notify-send` of a PATH is called with at the end of a turn, a word a line."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" "key=$OPENAI_API_KEY" > {folder}/called\n')
    program.chmod(0o755)
    settings = read_settings({"DRAGOMAN_NOTIFY_AFTER": "0"}, "/nowhere/config.toml")
    path = f"{programs}:{os.environ['PATH']}"
    given = {**XTERM, "PATH": path, "DISPLAY": ":0", "OPENAI_API_KEY": "sk-secret", **environment}

    async def run() -> None:
        notifier = Notifier(Terminal(), environment.get("ROOT", "/srv/shop"), settings, given)
        notifier.turn_ended()
        await notifier.close()

    asyncio.run(run())
    called = folder / "called"
    return called.read_text().splitlines() if called.exists() else []


def test_the_desktop_is_told_by_notify_send_without_keys(tmp_path: Path) -> None:
    assert desktop(tmp_path) == ["--app-name=Dragoman", "--", "Dragoman", "The turn has ended in shop", "key="]


@pytest.mark.parametrize(
    "environment", [{"DISPLAY": ""}, {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, {"TERM_PROGRAM": "WezTerm"}]
)
def test_where_there_is_no_desktop_or_the_terminal_notifies_it_is_not_told(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert desktop(tmp_path, **environment) == []


def test_a_notify_send_of_the_workspace_is_not_run(tmp_path: Path) -> None:
    assert desktop(tmp_path, ROOT=str(tmp_path)) == []


def test_a_chat_rings_at_a_question_and_at_the_end_of_the_turn(tmp_path: Path) -> None:
    script = scripted(tmp_path, [{"call": "bash", "input": {"command": "echo x > made"}}, {"say": "Done."}])
    with chat(tmp_path, *script, env={"DRAGOMAN_NOTIFY": "bell", "DRAGOMAN_NOTIFY_AFTER": "0"}) as pane:
        ready(pane)
        assert "\a" not in pane.raw()
        pane.say("please")
        pane.wait_for(r"or n: ?$")
        assert pane.raw().count("\a") == 1
        pane.say("y")
        pane.wait_for(r"Done\.", PROMPT)
        assert pane.raw().count("\a") == 2
