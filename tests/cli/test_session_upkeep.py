"""`dragoman sessions` search, stats, rename, archive and prune, on sessions that were stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.spent import NOTE
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, ToolCallUpdate, UserMessage
from tests.cli.test_sessions import keep, run, said, with_store
from tests.support.editor import Editor, turns

EVIL = "\x1b]0;owned\x07"
MENDED = f"The PUMP {EVIL}is mended."


def turn(number: int, prompt: str, answer: str) -> list[Entry]:
    return [
        EventEntry(UserMessage(f"u{number}", [Text(prompt)])),
        TextEntry("agent_message_chunk", f"a{number}", answer),
        EventEntry(ToolCallUpdate(f"t{number}", title="x", status="completed")),
        NoteEntry(NOTE, {"cost": 0.25 * number, "input": 100 * number, "output": 10 * number}),
        EventEntry(Idle(stop_reason="end_turn")),
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    keep(
        tmp_path, "sess_old", *turn(1, "Mend the pump", f"The PUMP {EVIL}is mended."), title="Pump", when=1_000_000_000
    )
    both = [*turn(1, "Say hello", "Hello, gardener."), *turn(2, "And bye", "Goodbye.")]
    keep(tmp_path, "sess_new", *both, cwd="/garden", title="Greeting", when=1_500_000_000)
    keep(tmp_path, "sess_empty", when=1_600_000_000)
    return tmp_path


def told(home: Path, *arguments: str) -> Any:
    return json.loads(said(home, *arguments, "--json"))


def ids(home: Path, *options: str) -> list[str]:
    return [one["sessionId"] for one in told(home, "list", *options)]


# -- search and stats ------------------------------------------------------------------------------------------------


def test_a_search_finds_titles_prompts_and_answers_whatever_their_case(home: Path) -> None:
    (found,) = told(home, "search", "pump", "MENDED")
    assert found["sessionId"] == "sess_old"
    assert found["places"] == [{"role": "agent", "messageId": "a1", "text": MENDED}]
    lines = said(home, "search", "pump").splitlines()
    assert lines[0].startswith("sess_old  2001-09-09")
    assert lines[1:] == [
        "    title: Pump",
        "    you: Mend the pump",
        "    agent: The PUMP \\x1b]0;owned\\x07is mended.",
    ]


def test_a_search_can_be_narrowed_and_says_by_its_exit_code_that_nothing_was_found(home: Path) -> None:
    assert [one["sessionId"] for one in told(home, "search", "e", "--limit", "1")] == ["sess_new"]
    assert [one["sessionId"] for one in told(home, "search", "e", "--cwd", "/project")] == ["sess_old"]
    assert run(home, "search", "nothing of this")[:2] == (1, "")
    assert run(home, "search", "hello", "pump")[:2] == (1, "")  # not in one message


def test_a_long_message_is_cut_around_the_words(tmp_path: Path) -> None:
    keep(tmp_path, "sess_x", *turn(1, "x " * 500 + "needle " + "y " * 500, "."))
    ((place,),) = [one["places"] for one in told(tmp_path, "search", "needle")]
    assert place["text"].startswith("…")
    assert place["text"].endswith("…")
    assert "needle" in place["text"]
    assert len(place["text"]) < 140


def test_stats_are_the_sums_of_the_sessions(home: Path) -> None:
    sums = told(home, "stats")
    assert (sums["sessions"], sums["folders"], sums["prompts"], sums["toolCalls"]) == (3, 2, 3, 3)
    assert (sums["inputTokens"], sums["outputTokens"], sums["cost"]) == (300, 30, 0.75)
    assert told(home, "stats", "--cwd", "/garden")["prompts"] == 2
    assert told(home, "stats", "--days", "1")["sessions"] == 0
    assert "tokens      300 in, 30 out\ncost        $0.75\n" in said(home, "stats")


# -- rename, archive and prune -----------------------------------------------------------------------------------------


def test_a_session_gets_another_title_which_is_harmless(home: Path) -> None:
    assert told(home, "rename", "sess_old", f"  {EVIL}Well\n")["title"] == "\\x1b]0;owned\\x07Well"
    assert "Well" in said(home, "show", "sess_old").splitlines()[0]
    code, _, error = run(home, "rename", "sess_old", " ")
    assert code == 1
    assert "at least one character" in error


def test_archived_sessions_are_left_out_of_lists_until_they_are_taken_out_again(home: Path) -> None:
    assert told(home, "archive", "sess_old", "sess_new") == {"archived": ["sess_old", "sess_new"]}
    assert ids(home) == ["sess_empty"]
    assert told(home, "archive", "--undo", "sess_old") == {"unarchived": ["sess_old"]}
    assert ids(home) == ["sess_empty", "sess_old"]
    assert run(home, "archive", "sess_new", "sess_other")[0] == 1


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--older-than", "30d", "--cwd", "/garden"], ["sess_new"]),
        (["--empty"], ["sess_empty"]),
        (["--older-than", "1000", "--empty"], ["sess_empty", "sess_new", "sess_old"]),
        (["--older-than", "1000", "--archived"], ["sess_new"]),
        (["--older-than", "100000"], []),
    ],
)
def test_what_is_old_or_empty_is_deleted(options: list[str], gone: list[str], home: Path) -> None:
    async def put_away(store: SqliteStore) -> None:
        await store.change("sess_new", archived=True)

    with_store(home, put_away)
    code, out, _ = run(home, "prune", *options, "--yes", "--json")
    assert (code, sorted(json.loads(out)["deleted"])) == (0, gone)
    assert {"sess_empty", "sess_new", "sess_old"} - set(ids(home, "--all")) == set(gone)


def test_a_prune_says_what_it_is_about_and_deletes_nothing_without_a_yes(home: Path) -> None:
    code, _, error = run(home, "prune")
    assert code == 2
    assert "--older-than DAYS, --empty" in error
    code, _, error = run(home, "prune", "--older-than", "1")
    assert code == 2
    assert "add --yes" in error
    assert len(ids(home)) == 3


def test_a_session_that_is_open_elsewhere_keeps_its_title(tmp_path: Path) -> None:
    with Editor(tmp_path, turns([{"say": "Hello."}])) as editor:
        session = editor.open().session
        editor.prompt("hi")
        code, _, error = run(tmp_path / "home", "rename", session, "Other")
        assert code == 1
        assert "another process has the session open" in error
    assert told(tmp_path / "home", "list")[0]["title"] == "hi"
