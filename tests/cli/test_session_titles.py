"""A stored session is found by its title on the command line, where one session alone has it."""

from pathlib import Path

import pytest

from tests.cli.chat_pane import PROMPT, chat, scripted
from tests.cli.test_sessions import EVIL, SHOWN, keep
from tests.support.command import Called, call
from tests.support.run_command import run as run_prompt


class Stored:
    """A home with sessions of two folders."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.one, self.two = folder / "one", folder / "two"
        for place in (self.one, self.two):
            place.mkdir()
        for number, (cwd, title) in enumerate(
            [
                (self.one, "first talk"),
                (self.one, "second talk"),
                (self.two, "second talk"),
                (self.two, "only  here\nof all"),
                (self.two, "often"),
                (self.two, "often"),
                (self.two, EVIL),
                (self.two, "sess_11111111"),
                (self.two, ""),
            ]
        ):
            keep(self.home, f"sess_{str(number) * 8}abcdef", cwd=str(cwd), title=title)

    def call(self, *arguments: str, cwd: Path) -> Called:
        return call("sessions", *arguments, cwd=cwd, DRAGOMAN_HOME=str(self.home))

    def shown(self, given: str, cwd: Path) -> str:
        """The id of the session that is shown."""
        done = self.call("show", given, cwd=cwd)
        assert (done.code, done.error) == (0, "")
        return done.out.splitlines()[1]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


def test_a_title_of_one_session_finds_it_in_this_folder_before_all_others(stored: Stored) -> None:
    assert stored.shown("second talk", stored.one) == "sess_11111111abcdef"
    assert stored.shown("second talk", stored.two) == "sess_22222222abcdef"
    assert stored.shown("first talk", stored.two) == "sess_00000000abcdef"


@pytest.mark.parametrize(
    ("title", "number"), [("only here of all", 3), ("only  here\nof all", 3), (SHOWN, 6), (EVIL, 6)]
)
def test_a_title_can_be_copied_from_the_list(title: str, number: int, stored: Stored) -> None:
    assert stored.shown(title, stored.one) == f"sess_{str(number) * 8}abcdef"


def test_an_id_counts_before_a_title(stored: Stored) -> None:
    assert stored.shown("sess_11111111", stored.two) == "sess_11111111abcdef"


def test_a_title_of_several_sessions_names_them_all(stored: Stored, tmp_path: Path) -> None:
    for cwd in (stored.one, stored.two):
        assert stored.call("show", "often", cwd=cwd) == (
            *(1, ""),
            "dragoman: 2 sessions are called 'often': sess_55555555, sess_44444444; write the id instead\n",
        )
    elsewhere = stored.call("delete", "second talk", "--yes", cwd=tmp_path)
    assert (elsewhere.code, elsewhere.error) == (
        1,
        "dragoman: 2 sessions are called 'second talk': sess_22222222, sess_11111111; write the id instead\n",
    )


def test_many_sessions_of_a_title_are_named_in_part_and_ids_are_as_long_as_they_must_be(tmp_path: Path) -> None:
    for number in range(7):
        keep(tmp_path / "home", f"sess_aaaaaaaa{number}", title="often")
    done = call("sessions", "show", "often", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))
    ids = ", ".join(f"sess_aaaaaaaa{number}" for number in (6, 5, 4, 3, 2))
    assert done.error == f"dragoman: 7 sessions are called 'often': {ids}, …; write the id instead\n"


@pytest.mark.parametrize("given", ["Second Talk", "second", "second talk!", " ", "(untitled)"])
def test_what_is_no_whole_title_finds_none(given: str, stored: Stored) -> None:
    done = stored.call("show", given, cwd=stored.one)
    assert (done.code, done.out) == (1, "")
    assert done.error == (
        f"dragoman: there is no session {given!r}; `dragoman sessions list --all` shows what there is\n"
    )


def test_a_run_goes_on_with_a_session_by_its_title(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "one"}], [{"say": "two"}])
    first = run_prompt(tmp_path, "second talk", *options, "--stream-json").events[-1]["sessionId"]
    again = run_prompt(tmp_path, "again", *options, "--stream-json", "--resume", "second talk")
    assert (again.code, again.events[-1]["sessionId"]) == (0, first)
    run_prompt(tmp_path, "second talk", *options)
    several = run_prompt(tmp_path, "again", *options, "--resume", "second talk")
    assert (several.code, several.out) == (2, "")
    assert several.error.startswith("dragoman: 2 sessions are called 'second talk': sess_")
    assert f"{first[:13]}; write the id instead\n" in several.error


def test_a_chat_goes_on_with_a_session_by_its_title(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "The first answer."}], [{"say": "The second answer."}])
    (tmp_path / "work").mkdir(exist_ok=True)
    run_prompt(tmp_path, "about apples", *options, "--cwd", str(tmp_path / "work"))
    run_prompt(tmp_path, "about apples", *options)
    run_prompt(tmp_path, "about pears", *options, "--cwd", str(tmp_path / "work"))
    with chat(tmp_path, *options, "--resume", "about apples") as pane:
        pane.wait_for("2 messages so far in “about apples”", PROMPT)
        pane.say("/sessions about pears")
        pane.wait_for("2 messages so far in “about pears”", PROMPT)
