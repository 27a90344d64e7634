"""What a question shows is what there is: no character of a command, a path, a tool or a plan hides."""

from pathlib import Path

import pytest

from dragoman.coder.permissions import JudgedCall, decide_call
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.events import PlanUpdate
from dragoman.vocabulary.options import PlanItems
from tests.coder.test_slash_commands import prompted, questions
from tests.support.editor import Editor, turns
from tests.support.mcp_servers import raw
from tests.support.scripted_turns import bash, call
from tests.support.whole_agent import User, events_of, scripted, until_server, whole

# The file that looks like `test.sh`, and one character of each kind that hides.
TWIN = "test\ufe0f.sh"
KINDS = [
    *"\ufe0f\U000e0100\u3164\u034f\u115f\uffa0\u2800\u200b\u00ad\u00a0\u3000\U0001d173\U0001bca0\U000e0041\u202e\x1b"
]


@pytest.mark.parametrize("version", [1, 2])
def test_the_question_about_a_command_spells_out_what_hides_and_offers_no_always(tmp_path: Path, version: int) -> None:
    (tmp_path / TWIN).write_text("touch PWNED")
    (tmp_path / "test.sh").write_text("true")
    with Editor(tmp_path, turns([bash(f"sh ./{TWIN}")]), version=version) as editor:
        editor.open()
        heard = prompted(editor, [{"type": "text", "text": "go"}], version)
    (question,) = questions(heard)
    params = question["params"]
    title = params["toolCall"]["title"] if version == 1 else params["title"]
    assert title == r"sh ./test\ufe0f.sh"
    assert [option["kind"] for option in params["options"]] == ["allow_once", "reject_once"]
    titles = [one["params"]["update"].get("title") for one in heard if one.get("method") == "session/update"]
    assert r"sh ./test\ufe0f.sh" in titles
    assert "sh ./test\ufe0f.sh" not in titles
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("character", KINDS)
async def test_no_kind_of_hidden_character_is_shown_as_nothing(tmp_path: Path, character: str) -> None:
    user = User("reject_once")
    name = f"a{character}b"
    steps = [bash(f"cat {name}"), call("write_file", path=name, content="x")]
    async with whole(tmp_path, scripted(steps), user=user) as (_, session):
        await events_of(session)
    assert len(user.asked) == 2
    for question in user.asked:
        assert character not in question.title
        assert f"{ord(character):x}" in question.title
        assert {option.kind for option in question.options} == {"allow_once", "reject_once"}


def test_no_rule_covers_what_hides() -> None:
    for subject in (f"sh ./{TWIN}", f"cat\u00a0{TWIN}"):
        asked = JudgedCall("c", "bash", {}, [Action("execute", subject)])
        rules = [
            PermissionRule("allow", tool="bash", subject=subject),
            PermissionRule("allow", tool="bash", subject="sh …"),
            PermissionRule("allow", tool="bash", subject="cat …"),
        ]
        assert decide_call(asked, "ask", rules).verdict == "ask"


async def test_the_title_of_a_servers_tool_spells_out_what_hides(tmp_path: Path) -> None:
    user = User("reject_once")
    server = raw("good", name="files\ufe0f\u202e")
    steps = [call("mcp__files__act")]
    async with whole(tmp_path, scripted(steps), user=user, mcp_servers=[server]) as (_, session):
        await until_server("connected", session)
        await events_of(session)
    (question,) = user.asked
    assert question.title == r"files\ufe0f\u202e: act"


async def test_a_plan_spells_out_what_hides_and_keeps_emoji(tmp_path: Path) -> None:
    entries = [{"content": f"run {TWIN}\u202e"}, {"content": "✔\ufe0f done 👩\u200d💻"}]
    async with whole(tmp_path, scripted([call("update_plan", entries=entries)])) as (_, session):
        events = await events_of(session)
    (plan,) = [event.plan for event in events if isinstance(event, PlanUpdate)]
    assert isinstance(plan, PlanItems)
    assert [entry.content for entry in plan.entries] == [r"run test\ufe0f.sh\u202e", "✔\ufe0f done 👩\u200d💻"]
