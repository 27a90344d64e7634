"""A yes is about what was shown: files, links, modes and rules that change meanwhile; hidden and endless text."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.contract import ToolCallRequested
from dragoman.host.paths import PathRefused, Roots, read_bytes, write_bytes
from dragoman.vocabulary.services import PermissionOption, RequestPermission, ToolCallSubject
from dragoman.vocabulary.tools import Diff, FileChange
from tests.support.editor import Editor, answer_questions, closing_by_force, turns
from tests.support.files import swapper
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.whole_agent import User, ends, events_of, whole

WRITE = call("write_file", path="a.txt", content="new\n")
ALLOW = {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}}
# Over the wire in both versions; where the version makes no difference, the second is in the slow lane: the agent in
# memory speaks it in most of these tests.
once = pytest.mark.parametrize("version", [1, pytest.param(2, marks=pytest.mark.slow)])


class Meddler(User):
    """Says yes, after doing something."""

    def __init__(self, *deeds: Any) -> None:
        super().__init__("allow_once")
        self._deeds = list(deeds)

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        if self._deeds:
            deed = self._deeds.pop(0)
            done = deed()
            if asyncio.iscoroutine(done):
                await done
        return await super().permission(request)


def diffs(question: RequestPermission) -> list[tuple[str, object, object]]:
    """What a question shows: path, old text and new text of every file."""
    subject = question.subject
    assert isinstance(subject, ToolCallSubject)
    assert isinstance(subject.tool_call.content, list)
    return [
        (change.path, change.old_text, change.new_text)
        for item in subject.tool_call.content
        if isinstance(item, Diff)
        for change in item.changes
        if isinstance(change, FileChange)
    ]


@pytest.mark.requirement("F7")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_file_that_changed_while_the_user_thought_is_shown_anew(tmp_path: Path, protocol: int) -> None:
    """The second question shows the second change, and only its yes counts."""
    file = tmp_path / "a.txt"
    file.write_text("old\n")
    user = Meddler(lambda: file.write_text("other\n"))
    model = RecordingModel([WRITE])
    async with whole(tmp_path, model.make, user=user, protocol=protocol) as (_, session):
        await events_of(session)
    if protocol == 1:
        assert [diffs(question) for question in user.asked] == [
            [(str(file), "old\n", "new\n")],
            [(str(file), "other\n", "new\n")],
        ]
    assert len(user.asked) == 2
    assert file.read_text() == "new\n"


@pytest.mark.requirement("F7")
async def test_a_file_that_never_stands_still_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    count = iter(range(100))
    user = Meddler(*[lambda: file.write_text(f"{next(count)}\n")] * 10)
    model = RecordingModel(apart([WRITE]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert (len(user.asked), file.read_text()) == (3, "2\n")
    reason = "What it is about changed each time the user was asked. Look at it again before you retry."
    assert model.results == [f"Permission denied. {reason}"]


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_link_that_leads_elsewhere_by_now_is_asked_about_with_where_it_leads(
    tmp_path: Path, protocol: int
) -> None:
    """Inside the roots, too, and though both files look the same."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("one")

    def swap() -> None:
        link.unlink()
        link.symlink_to("two")

    user = Meddler(swap)
    model = RecordingModel([call("write_file", path="link/f", content="x")])
    async with whole(tmp_path, model.make, user=user, protocol=protocol) as (_, session):
        await events_of(session)
    assert [diffs(question)[0][0] for question in user.asked] == [f"{tmp_path}/one/f", f"{tmp_path}/two/f"]
    assert (list((tmp_path / "one").iterdir()), (tmp_path / "two" / "f").read_text()) == ([], "x")


@pytest.mark.requirement("F8")
async def test_a_link_to_the_outside_that_comes_with_the_yes_is_not_followed(tmp_path: Path) -> None:
    """Swapped between the question and the yes, a file and a folder, written, edited and read."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work / "d", outside):
        folder.mkdir(parents=True)
        (folder / "f").write_text("old\n")

    def swap_folder() -> None:
        (work / "d").rename(work / "was")
        (work / "d").symlink_to(outside)

    def swap_file() -> None:
        (work / "g").unlink()
        (work / "g").symlink_to(outside / "f")

    (work / "g").write_text("old\n")
    user = Meddler(swap_folder, swap_file)
    steps = [
        call("write_file", path="d/f", content="x"),
        call("edit_file", path="g", old_string="old", new_string="x"),
        call("read_file", path="d/f"),
    ]
    model = RecordingModel(apart(steps))
    async with whole(work, model.make, user=user) as (_, session):
        await events_of(session)
    assert (outside / "f").read_text() == "old\n"
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert all("outside of the workspace" in result for result in model.results)


def race(tmp_path: Path, tries: int, swaps: int) -> None:
    """Write and read `d/f` while `d` is now a folder and now a link to the outside."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "d").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("canary")
    (work / "link").symlink_to(outside)
    roots = Roots([str(work)])
    done = 0
    with swapper(work / "d", work / "link") as count:
        while done < tries or count[0] < swaps:
            done += 1
            try:
                write_bytes(roots.place("d/f"), b"x")
            except PathRefused:
                pass
            try:
                data, _ = read_bytes(roots.place("d/secret"), 100)
                assert data != b"canary"
            except PathRefused:
                pass
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.requirement("F8")
def test_a_swapper_never_gets_a_write_out(tmp_path: Path) -> None:
    """A bounded race."""
    race(tmp_path, tries=500, swaps=500)


@pytest.mark.requirement("F8")
@pytest.mark.slow
def test_a_swapper_never_gets_a_write_out_in_a_million_swaps(tmp_path: Path) -> None:
    """As long as it takes to swap a million times."""
    race(tmp_path, tries=100_000, swaps=1_000_000)


async def swapped_while_asking(tmp_path: Path, tries: int) -> tuple[int, int]:
    """The whole agent against a swapper; how many writes were done and refused."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "d").mkdir(parents=True)
    outside.mkdir()
    (work / "link").symlink_to(outside)
    steps = [call("write_file", path="d/f", content=str(number)) for number in range(tries)]
    model = RecordingModel(steps)
    with swapper(work / "d", work / "link"):
        async with whole(work, model.make, user=User("allow_once")) as (_, session):
            statuses = [status for _, status in ends(await events_of(session))]
    assert list(outside.iterdir()) == []
    return statuses.count("completed"), statuses.count("failed")


@pytest.mark.requirement("F8")
async def test_the_whole_agent_against_a_swapper(tmp_path: Path) -> None:
    """Every write is asked for and agreed to, and none gets out."""
    done, refused = await swapped_while_asking(tmp_path, 100)
    assert done + refused == 100


@pytest.mark.requirement("F8")
@pytest.mark.slow
async def test_the_whole_agent_against_a_swapper_for_a_while(tmp_path: Path) -> None:
    done, refused = await swapped_while_asking(tmp_path, 10_000)
    assert done + refused == 10_000


@pytest.mark.requirement("F9")
async def test_a_call_that_comes_again_with_another_input_is_another_call(tmp_path: Path) -> None:
    """Under the id of a call that was agreed to."""

    class Twice(RecordingModel):
        async def respond(self, inquiry: Any) -> Any:
            number = len([item for item in inquiry.items if type(item).__name__ == "ContextToolResult"])
            if number < 2:
                yield ToolCallRequested("bash", {"command": ["touch good", "touch evil"][number]}, id="call-1")

    user = User("allow_once", "reject_once")
    async with whole(tmp_path, Twice([]).make, user=user) as (_, session):
        await events_of(session)
    assert [question.title for question in user.asked] == ["touch good", "touch evil"]
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


@pytest.mark.requirement("F10")
@once
def test_a_yes_to_another_question_is_no_yes(tmp_path: Path, version: int) -> None:
    """Another session's id, an id of before, an id from nowhere, and another connection's."""
    works = [tmp_path / name for name in ("one", "two")]
    for each in works:
        each.mkdir()
    script = turns([bash("touch ran")])
    with (
        closing_by_force(Editor(tmp_path, script, version=version)) as editor,
        closing_by_force(Editor(tmp_path, script, version=version)) as other,
    ):
        for one in (editor, other):
            one.folder = works[0]
            one.open()
        first = editor.session
        asked, _ = answer_questions(editor, lambda question: {"result": {"outcome": {"outcome": "cancelled"}}})
        used = asked[0]["id"]
        second = editor.result("session/new", {"cwd": str(works[1]), "mcpServers": []})["sessionId"]
        questions: dict[str, int] = {}
        for number, session in enumerate((first, second)):
            editor.session = session
            editor.send({"id": 50 + number, "method": "session/prompt", "params": editor.words("go")})
            while (message := editor.read()).get("method") != "session/request_permission":
                pass
            questions[message["params"]["sessionId"]] = message["id"]
        # Ids of before and from nowhere; as text; and the first session's question is answered with a no, then a yes.
        for wrong in (used, 10**6, -1, str(questions[second]), None):
            editor.send({"id": wrong, **ALLOW})
        editor.send({"id": questions[first], "result": {"outcome": {"outcome": "cancelled"}}})
        for _ in range(3):
            editor.send({"id": questions[first], **ALLOW})
        # Another connection says yes to everything.
        for number in range(20):
            other.send({"id": number, **ALLOW})
        assert "result" in other.ask("session/list", {})[-1]
        editor.send({"id": 60, "method": "session/list", "params": {}})
        while editor.read().get("id") != 60:
            pass
        assert [list(each.iterdir()) for each in works] == [[], []]
        editor.send({"id": questions[second], **ALLOW})
        while not (works[1] / "ran").exists() and editor.read():
            pass
        assert list(works[0].iterdir()) == []


@pytest.mark.requirement("F11")
@pytest.mark.parametrize("mode", ["read-only", "plan", "safe", "sandbox"])
async def test_a_mode_that_became_stricter_while_asking_wins(tmp_path: Path, mode: str) -> None:
    where: list[Any] = []
    user = Meddler(lambda: where[0].set_mode(mode))
    model = RecordingModel(apart([bash("touch b")]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        where.append(session)
        await events_of(session)
    result = "Permission denied. It was forbidden while the user was being asked."
    assert (len(user.asked), model.results, list(tmp_path.iterdir())) == (1, [result], [])


@pytest.mark.requirement("F11")
async def test_a_never_holds_for_what_was_asked_in_another_form(tmp_path: Path) -> None:
    """A rule that came while the turn ran; the rest is in `test_permissions.py`."""
    user = User("reject_always", "allow_once")
    model = RecordingModel(apart([bash("touch b"), bash("touch b; true"), bash("env touch b")]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert (len(user.asked), list(tmp_path.iterdir())) == (1, [])


@pytest.mark.requirement("F12")
async def test_a_thousand_tries_make_few_questions(tmp_path: Path) -> None:
    """The same with a detail changed, ever new things, and ever new content; in two turns each."""
    tries = 1_000 // 6 + 1
    same = [bash("touch b", timeout=number + 1) for number in range(tries)]
    new = [bash(f"touch b{number}") for number in range(tries)]
    files = [call("write_file", path="f", content=str(number)) for number in range(tries)]
    for steps, most in ((same, 1), (new, 20), (files, 20)):
        user = User("reject_once")
        async with whole(tmp_path, RecordingModel(steps, steps).make, user=user) as (_, session):
            await events_of(session)
            assert 1 <= len(user.asked) <= most
            # The next prompt is the user's, and may be asked about again.
            before = len(user.asked)
            await events_of(session)
            assert before < len(user.asked) <= 2 * most
    assert list(tmp_path.iterdir()) == []


ODD_NAMES = {
    "RTL": "a\u202etxt.exe",
    "ANSI": "a\x1b[2J\x1b]0;title\x07",
    "zero width": "a\u200b\u200d\ufeffb",
    "newline": "a\nAllow once: harmless",
    "tabs": "a" + "\t" * 100 + "b",
    "carriage return": "harmless\rrm -rf",
    "C1": "a\x9b31m",
    "half": "a\udc80b",
}


@pytest.mark.requirement("F13")
@pytest.mark.parametrize(
    "tool", ["bash", "write_file", "edit_file", "read_file", "list_files", "glob", "grep", "agent"]
)
async def test_nothing_that_is_shown_moves_a_cursor_or_hides(tmp_path: Path, tool: str) -> None:
    """Commands, file names, patterns and descriptions; and no "always" for what cannot be read."""
    user = User("reject_once")
    steps = []
    for odd in ODD_NAMES.values():
        given: dict[str, Any] = {
            "bash": {"command": f"echo {odd}"},
            "write_file": {"path": odd, "content": "x"},
            "edit_file": {"path": odd, "old_string": "x", "new_string": "y"},
            "read_file": {"path": odd},
            "list_files": {"path": odd},
            "glob": {"pattern": odd},
            "grep": {"pattern": odd},
            "agent": {"prompt": "x", "description": odd},
        }[tool]
        steps.append(call(tool, **given))
        if tool in ("edit_file", "read_file") and "\udc80" not in odd:
            (tmp_path / odd).write_text("x")
    async with whole(tmp_path, RecordingModel(apart(steps)).make, user=user) as (_, session):
        events = await events_of(session)
    titles = [str(title) for e in events if isinstance(title := getattr(e, "title", None), str)]
    titles += [question.title for question in user.asked]
    assert titles
    for title in titles:
        seen = title.replace("\n", "").replace("\t", "") if tool == "bash" else title
        assert seen.isprintable(), ascii(title)
    odd_ones = [question for question in user.asked if "\\u" in question.title]
    assert len(odd_ones) == (5 if tool in ("bash", "write_file", "edit_file") else 0)
    for question in odd_ones:
        assert not any(option.kind == "allow_always" for option in question.options), ascii(question.title)


@pytest.mark.requirement("F13")
async def test_a_megabyte_of_command_is_not_shown_in_part_and_remembered(tmp_path: Path) -> None:
    user = User("reject_once")
    too_long = "echo " + "x" * (1 << 20)
    commands = ["echo " + "x" * 100_000, "echo " + "\t" * 10_000 + "; touch b", "true" + " " * 5_000 + "; touch b"]
    model = RecordingModel(apart(map(bash, [too_long, *commands])))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    unread = "It cannot be undone: It cannot be checked: it is longer than a command line can be."
    assert model.results == [f"Permission denied. {reason}" for reason in (unread, *["The user said no."] * 3)]
    shown = []
    for question, command in zip(user.asked, commands, strict=True):
        is_whole = "touch b" in question.title
        assert (f"({len(command)} characters in all)" in question.title) == (not is_whole)
        assert isinstance(question.subject, ToolCallSubject)
        assert question.subject.tool_call.raw_input == {"command": command}
        shown.append((is_whole, any(option.kind == "allow_always" for option in question.options)))
    # Whole or not, and whether it can be remembered.
    assert shown == [(False, False), (True, False), (True, True)]


@pytest.mark.requirement("F14")
@once
def test_with_no_user_to_ask_the_answer_is_no_and_the_model_hears_it(tmp_path: Path, version: int) -> None:
    """A client that knows no permissions."""
    steps = apart([WRITE, bash("touch b")])
    with Editor(tmp_path, turns(steps), version=version) as editor:
        editor.open()
        before = sorted(tmp_path.iterdir())
        refusal = {"error": {"code": -32601, "message": "Method not found"}}
        _, told = answer_questions(editor, lambda question: refusal)
        assert sorted(tmp_path.iterdir()) == before
        results = [message["params"]["update"] for message in told if "rawOutput" in str(message)]
        assert [update["rawOutput"] for update in results] == [{"reason": "no answer was given"}] * 2
    logs = [path.read_bytes() for path in (tmp_path / "home" / "sessions").rglob("*") if path.is_file()]
    assert sum(log.count(b"Permission denied.") for log in logs) >= 2
