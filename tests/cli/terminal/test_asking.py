"""Asking at a terminal, a real one: forms, free questions, and people who go away."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.cli.terminal.forms import ask_form, ask_question
from dragoman.cli.terminal.questions import Keyboard, TerminalQuestions
from dragoman.client.ask_user import UserQuestion
from dragoman.vocabulary.services import (
    FEEDBACK,
    CommandSubject,
    Dismissed,
    Elicit,
    ElicitationAnswer,
    Form,
    PermissionAnswer,
    PermissionOption,
    RequestPermission,
    Selected,
    SessionScope,
    Url,
)


class Person:
    """Sits at a terminal and answers each question with the next line; None hangs up."""

    def __init__(self) -> None:
        self.hand, terminal = os.openpty()
        os.set_blocking(terminal, False)
        self.seen = ""
        self.size = (80, 24)
        self.later_size: tuple[int, int] | None = None  # from the first answer on
        self.held: list[bool] = []
        self.lines: list[str | None] = []
        self.hasty: str | None = None
        self.asked = asyncio.Event()
        self.keyboard = Keyboard(terminal)
        self.asker = TerminalQuestions(self.keyboard, self._see, lambda: self.size, "amber-wren", self.held.append)

    def _see(self, text: str) -> None:
        self.seen += text
        if text.endswith(": "):
            self.asked.set()
            self.size = self.later_size or self.size
            self.type(self.lines.pop(0))  # in the very moment in which the line stands there
        elif self.hasty is not None:
            self.type(self.hasty)  # while the question is still being shown
            os.read(self.hand, 100)  # the terminal has echoed it, so it has it

    def type(self, line: str | None) -> None:
        os.write(self.hand, b"\x04" if line is None else line.encode() + b"\n")


@pytest.fixture
def person() -> Iterator[Person]:
    found = Person()
    yield found
    os.close(found.hand)
    found.keyboard.close()


def form(**properties: Any) -> Elicit:
    schema: dict[str, object] = {"type": "object", "properties": properties, "required": ["name"]}
    return Elicit("Tell me \x1b[2J more", Form(schema), SessionScope("s"))


async def test_a_form_is_asked_field_by_field(person: Person) -> None:
    asked = form(
        name={"type": "string", "title": "Your \x1b]0;x\x07 name"},
        sure={"type": "boolean"},
        count={"type": "integer"},
        share={"type": "number"},
        colour={"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        tags={"type": "array", "items": {"enum": ["x", "y", "z"]}},
        note={"type": "string"},
    )
    person.lines = ["", "Ada", "perhaps", "yes", "1.5", "2", "0.5", "3", "2", "1, 3", ""]
    given = {"name": "Ada", "sure": True, "count": 2, "share": 0.5, "colour": "b", "tags": ["x", "z"]}
    assert await ask_form(person.asker, asked) == given  # what is not needed may be left out, what is may not
    assert "\x1b" not in person.seen
    assert person.held == [True, False] * 7


async def test_going_away_declines(person: Person) -> None:
    person.lines = [None]
    assert await ask_form(person.asker, form(name={"type": "string"})) is None


async def test_an_address_is_shown_and_never_opened(person: Person) -> None:
    asked = Elicit("Log in", Url("e1", "https://example.test/\u202eevil"), SessionScope("s"))
    person.lines = ["y"]
    assert await ask_form(person.asker, asked) == ElicitationAnswer("accept")
    assert r"https://example.test/\u202eevil" in person.seen
    person.lines = ["n"]
    assert await ask_form(person.asker, asked) is None


async def test_a_free_question_takes_a_number_or_words(person: Person) -> None:
    question = UserQuestion("s", "Which?", ("red", "blue"))
    person.lines = ["2", "green", None]
    answers = [await ask_question(person.asker, question) for _ in range(3)]
    assert answers == ["blue", "green", None]


async def test_a_form_that_is_no_question_to_ask_is_declined(person: Person) -> None:
    assert await ask_form(person.asker, form(**{f"f{n}": {"type": "string"} for n in range(100)})) is None
    assert person.seen == ""


async def test_what_is_typed_before_the_question_is_all_there_is_no_answer(person: Person) -> None:
    person.hasty = "hasty"
    person.lines = ["considered"]
    assert await person.asker.ask(["Well?"], "say", lambda words: words or None) == "considered"


YES = PermissionOption("yes", "Yes", "allow_once")
NO = PermissionOption("no", "No", "reject_once")
ALWAYS = PermissionOption("always", "Always", "allow_always")
# Its first row and its last are what it is about; there are 41 screens between them.
TALL = RequestPermission("s", "ls", [YES, ALWAYS, NO], subject=CommandSubject("\n".join(["x" * 3000] * 25), "/"))


async def test_a_question_taller_than_the_screen_is_answered_only_when_all_of_it_was_shown(person: Person) -> None:
    person.lines = ["y", "1", "v", "", "y", "A", "2"]
    assert await person.asker.permission(TALL) == ALWAYS
    first, *pages = person.seen.split("╔═ dragoman asks")[1:]
    assert first.count("That cannot be chosen: not all of it is shown yet, and v shows it.") == 2
    assert "1  yes, this once  “Yes” (after v)" in first
    assert pages[0].count("Enter: go on") == 3  # one of them says to read to the end
    assert pages[0].count("x") == 25 * 3000
    assert "2  yes, always  “Always” " in pages[1]
    assert pages[1].endswith("║ 1-3, v, y or n: ")


async def test_a_question_that_is_viewed_does_not_hide_what_is_left_of_it(person: Person) -> None:
    """What is shown again after that fits on the screen, with the answers."""
    person.lines = ["v", "a", "n"]
    assert await person.asker.permission(TALL) == NO
    first, _, last = person.seen.split("╔═ dragoman asks")[1:]
    assert max(first.count("\n"), last.count("\n")) <= 22


async def test_no_page_of_a_tall_question_is_longer_than_the_screen(person: Person) -> None:
    person.lines = ["v", *[""] * 100]
    person.lines[-1] = None
    assert await person.asker.permission(TALL) is None
    pages = person.seen.split("n: no: ")
    assert len(pages) > 40
    assert all(page.count("\n") <= 22 for page in pages[1:-1])


def rows_of_pages(seen: str, columns: int) -> list[int]:
    """How many rows of a screen each page takes, the line below it included."""
    pages = seen.split("n: no: ")[:-1]
    return [sum(max(1, -(-len(row) // columns)) for row in f"{page}n: no: ".split("\n")) for page in pages]


@pytest.mark.parametrize("size", [(60, 16), (80, 24)])
async def test_no_page_is_longer_than_a_small_screen(size: tuple[int, int], person: Person) -> None:
    short = RequestPermission("s", "ls", [YES, NO], subject=CommandSubject("\n".join(["x" * 99] * 9), "/"))
    person.size = size
    person.lines = ["v", *[""] * 200, None]
    assert await person.asker.permission(short) is None
    shown = person.seen.split("╔═ dragoman asks", 2)[2]
    assert 0 < max(rows_of_pages(shown, size[0])) < size[1]


@pytest.mark.parametrize("size", [(20, 6), (25, 9), (34, 10)])
async def test_a_question_of_which_nothing_fits_is_shown_page_by_page(size: tuple[int, int], person: Person) -> None:
    short = RequestPermission("s", "ls", [YES, NO], subject=CommandSubject("\n".join(["x" * 99] * 9), "/"))
    person.size = size
    person.lines = [*[""] * 200, None]
    assert await person.asker.permission(short) is None
    assert 0 < max(rows_of_pages(person.seen.partition("or n: ")[0], size[0])) < size[1]


async def test_no_page_is_longer_than_a_screen_that_is_made_smaller_meanwhile(person: Person) -> None:
    person.lines = ["v", *[""] * 10, None]
    person.later_size = (40, 10)
    assert await person.asker.permission(TALL) is None
    assert max(rows_of_pages(person.seen.split("n: no: ", 1)[1], 40)) < 10


@pytest.mark.parametrize("size", [(19, 24), (80, 5)])
async def test_on_a_screen_that_can_show_nothing_it_can_only_be_refused(size: tuple[int, int], person: Person) -> None:
    person.size = size
    person.lines = ["y", "n"]
    assert await person.asker.permission(RequestPermission("s", "ls", [YES, ALWAYS, NO])) == NO


@pytest.mark.parametrize("lines", [["n"], ["v", "n"], ["v", "", "no"]])
async def test_a_tall_question_can_be_refused_at_any_time(lines: list[str | None], person: Person) -> None:
    person.lines = lines
    assert await person.asker.permission(TALL) == NO


@pytest.mark.parametrize("lines", [["y"], ["v", "y"]])
async def test_who_types_other_things_has_not_answered(lines: list[str], person: Person) -> None:
    person.lines = [*lines, *["y"] * 100]
    assert await person.asker.permission(TALL) is None


async def test_what_is_no_answer_is_told_what_can_be_typed(person: Person) -> None:
    short = RequestPermission("s", "ls", [YES, ALWAYS, NO], subject=CommandSubject("ls", "/"))
    person.lines = ["x", "", "4", "y"]
    assert await person.asker.permission(short) == YES
    assert person.seen.count("║ That is no answer; type 1-3, y or n.\n║ 1-3, y or n: ") == 3
    person.lines = ["perhaps", "yes"]
    asked = Elicit("Sure?", Form({"type": "object", "properties": {"sure": {"type": "boolean"}}}), SessionScope("s"))
    assert await ask_form(person.asker, asked) == {"sure": True}
    assert "║ That is no answer; type y or n, or nothing.\n" in person.seen


async def test_a_question_on_a_small_screen_can_be_viewed_before_its_last_page(person: Person) -> None:
    person.size = (40, 12)
    person.lines = ["v", "a", "a", "y"]
    assert await person.asker.permission(TALL) == YES
    assert "v: view all, n: no: " in person.seen
    assert person.seen.count("x") >= 25 * 3000


@pytest.mark.parametrize("options", [[YES], [ALWAYS, PermissionOption("never", "Never", "reject_always")]])
async def test_no_is_an_answer_where_the_agent_offers_no_option_for_it(
    options: list[PermissionOption], person: Person
) -> None:
    person.lines = ["n"]
    assert await person.asker.permission(RequestPermission("s", "ls", options)) is None
    assert "That is no answer" not in person.seen


async def test_questions_wait_for_each_other(person: Person) -> None:
    options = [PermissionOption("yes", "Yes", "allow_once"), PermissionOption("no", "No", "reject_once")]
    first, second = (RequestPermission("s", title, options) for title in ("First", "Second"))
    person.lines = ["y", "n"]
    answers = await asyncio.gather(person.asker.permission(first), person.asker.permission(second))
    assert list(answers) == options
    assert person.seen.index("y or n") < person.seen.index("Second")


async def test_a_question_that_is_not_asked_any_more_says_so(person: Person) -> None:
    asking = asyncio.ensure_future(person.asker.ask(["Well?"], "say", lambda words: words or None))
    person.lines = [""]
    await person.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert person.seen.endswith("The question was withdrawn.\n")
    assert person.held == [True, False]


async def test_endless_nonsense_is_no_answer(person: Person) -> None:
    person.lines = ["what?"] * 100
    assert await person.asker.ask(["Well?"], "say", {"right": 1}.get) is None
    assert person.lines  # it stopped asking


@pytest.mark.parametrize("typed", ["n use pnpm", "no, use pnpm", "3: use pnpm", "N  use pnpm"])
async def test_words_behind_a_no_go_with_it(person: Person, typed: str) -> None:
    person.lines = [typed]
    answer = await person.asker.permission(RequestPermission("s", "npm i", [YES, ALWAYS, NO]))
    assert answer == PermissionAnswer(Selected("no"), meta={FEEDBACK: "use pnpm"})


async def test_words_behind_a_yes_are_no_answer(person: Person) -> None:
    person.lines = ["y but with pnpm", "2 please", "n"]
    assert await person.asker.permission(RequestPermission("s", "npm i", [YES, ALWAYS, NO])) == NO
    assert person.seen.count("That is no answer") == 2


async def test_words_behind_a_no_go_with_it_where_no_option_says_no(person: Person) -> None:
    person.lines = ["n use pnpm"]
    answer = await person.asker.permission(RequestPermission("s", "npm i", [YES]))
    assert answer == PermissionAnswer(Dismissed(), meta={FEEDBACK: "use pnpm"})
