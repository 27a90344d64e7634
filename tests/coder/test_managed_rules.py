"""The administrator's rules about calls: they beat the user's yes and the user's no, and no question evades them."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.decision_log import DECISION
from dragoman.coder.kept_rules import KeptRules
from dragoman.coder.managed_file import parse_managed
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.permissions.rule import PermissionRule
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from tests.support.needs import need, need_ripgrep
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.whole_agent import User, events_of, text, whole

pytestmark = pytest.mark.anyio

FILE = "/etc/dragoman/managed.toml"
DENIES_TOUCH = "[rules]\ndeny = [{ command = 'touch *' }]"
DENIED = f"Permission denied. The administrator's file {FILE} denies this ({{}})."


def managed(text: str) -> ManagedSettings:
    return parse_managed(text.encode(), FILE)


def kept(home: Path, effect: Any, subject: str) -> None:
    KeptRules(home).add("", [PermissionRule(effect, tool="bash", subject=subject)])


async def turn(
    folder: Path, user: User, text: str, *steps: Any, mode: str = "ask", home: Path | None = None
) -> list[str]:
    """The results of calls, where the administrator's file has this text."""
    folder.mkdir(exist_ok=True)
    model = RecordingModel(apart(steps))
    async with whole(folder, model.make, user=user, mode=mode, home=home, managed=managed(text)) as (_, session):
        await events_of(session)
    return model.results


@pytest.mark.requirement("N4")
async def test_a_rule_to_deny_beats_what_the_user_always_allows(tmp_path: Path) -> None:
    home, user = tmp_path / "home", User("allow_always")
    kept(home, "allow", "touch x …")
    (result,) = await turn(tmp_path / "work", user, DENIES_TOUCH, bash("touch x"), home=home)
    assert result == DENIED.format("command touch *")
    assert (user.asked, (tmp_path / "work" / "x").exists()) == ([], False)


async def test_a_rule_to_deny_beats_full_access(tmp_path: Path) -> None:
    (result,) = await turn(tmp_path / "work", User("allow_once"), DENIES_TOUCH, bash("touch x"), mode="full-access")
    assert result == DENIED.format("command touch *")


@pytest.mark.parametrize("line", ["true && touch x", "sh -c 'touch x'", "env touch x", "if true; then touch x; fi"])
async def test_a_rule_to_deny_is_about_the_command_in_a_longer_line(tmp_path: Path, line: str) -> None:
    (result,) = await turn(tmp_path / "work", User("allow_once"), DENIES_TOUCH, bash(line), mode="full-access")
    assert result == DENIED.format("command touch *")


@pytest.mark.requirement("N4")
async def test_a_rule_to_allow_beats_what_the_user_has_said_never_to(tmp_path: Path) -> None:
    home, user = tmp_path / "home", User("reject_once")
    kept(home, "reject", "touch x …")
    allows = "[rules]\nallow = [{ command = 'touch x' }]"
    await turn(tmp_path / "work", user, allows, bash("touch x"), home=home)
    assert (user.asked, (tmp_path / "work" / "x").exists()) == ([], True)


async def test_a_rule_to_allow_does_not_beat_a_mode_that_refuses(tmp_path: Path) -> None:
    allows = "[rules]\nallow = [{ command = 'touch x' }]"
    (result,) = await turn(tmp_path / "work", User("allow_once"), allows, bash("touch x"), mode="read-only")
    assert result == "Permission denied. Mode read-only does not allow it."


@pytest.mark.requirement("N4")
async def test_a_rule_to_ask_beats_every_yes_and_no_always_is_offered(tmp_path: Path) -> None:
    home, user = tmp_path / "home", User("allow_once")
    kept(home, "allow", "touch x …")
    asks = "[rules]\nask = [{ command = 'touch *' }]"
    await turn(tmp_path / "work", user, asks, bash("touch x"), bash("touch x"), mode="full-access", home=home)
    assert len(user.asked) == 2
    kinds = {option.kind for option in user.asked[0].options}
    assert kinds == {"allow_once", "reject_once", "reject_always"}


async def test_a_never_of_the_user_answers_the_question_of_a_rule_to_ask(tmp_path: Path) -> None:
    home, user = tmp_path / "home", User("allow_once")
    kept(home, "reject", "touch x …")
    asks = "[rules]\nask = [{ command = 'touch *' }]"
    (result,) = await turn(tmp_path / "work", user, asks, bash("touch x"), home=home)
    assert result == "Permission denied. The user's rule for every project says never to bash `touch x …`."
    assert user.asked == []


async def test_where_only_managed_rules_allow_the_user_is_asked_each_time_and_offered_no_always(tmp_path: Path) -> None:
    home, user = tmp_path / "home", User("allow_once")
    kept(home, "allow", "touch x …")
    await turn(tmp_path / "work", user, "[rules]\nonly_managed = true", bash("touch x"), bash("touch x"), home=home)
    assert len(user.asked) == 2
    assert "allow_always" not in {option.kind for option in user.asked[0].options}


SECRETS = "[rules]\ndeny = [{ path = 'secrets/**' }]"


def with_secrets(folder: Path) -> Path:
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets" / "plan").write_text("canary\n")
    (folder / "open").write_text("canary in the open\n")
    (folder / "way").symlink_to("secrets/plan")
    return folder


@pytest.mark.parametrize(
    "step",
    [
        call("read_file", path="secrets/plan"),
        call("read_file", path="way"),
        call("write_file", path="secrets/new", content="x"),
        call("edit_file", path="secrets/plan", old_string="canary", new_string="x"),
        bash("cat secrets/plan"),
        bash("cat ./secrets/../secrets/plan"),
        bash("cat way"),
    ],
)
async def test_a_denied_path_is_reached_by_no_tool_and_by_no_command_that_names_it(tmp_path: Path, step: Any) -> None:
    work = with_secrets(tmp_path / "work")
    (result,) = await turn(work, User("allow_once"), SECRETS, step, mode="full-access")
    assert result == DENIED.format("path secrets/**")


async def test_a_search_shows_nothing_of_a_denied_path(tmp_path: Path) -> None:
    need_ripgrep()
    work = with_secrets(tmp_path / "work")
    steps = [call("grep", pattern="canary"), call("glob", pattern="**/*")]
    steps += [call("grep", pattern="canary", path="secrets")]
    lines, names, inside = await turn(work, User("allow_once"), SECRETS, *steps)
    assert lines == "open:1:canary in the open"
    assert "secrets" not in names
    assert inside == "Nothing matches."


async def test_a_rule_that_names_a_folder_is_about_the_folder_and_all_in_it(tmp_path: Path) -> None:
    work = with_secrets(tmp_path / "work")
    text = "[rules]\ndeny = [{ path = 'secrets' }]"
    steps = [call("list_files", path="secrets"), call("read_file", path="secrets/plan")]
    assert await turn(work, User("allow_once"), text, *steps) == [DENIED.format("path secrets")] * 2


async def test_a_confined_command_does_not_see_a_denied_path(tmp_path: Path) -> None:
    need("bwrap")
    work = with_secrets(tmp_path / "work")
    step = bash('python3 -c \'import os; print(os.listdir("secrets"), open("open").read())\'')
    (result,) = await turn(work, User("reject_once"), SECRETS, step, mode="workspace-write", home=tmp_path / "home")
    assert "plan" not in result
    assert "canary in the open" in result


@pytest.mark.requirement("N4")
async def test_a_rule_counts_in_the_sandbox_as_well(tmp_path: Path) -> None:
    need("bwrap")
    work, home = with_secrets(tmp_path / "work"), tmp_path / "home"
    text = "[rules]\ndeny = [{ path = 'secrets/**' }, { command = 'touch *' }]"
    steps = [call("sandbox_read_file", path="secrets/plan"), call("sandbox_bash", command="touch x")]
    read, ran = await turn(work, User("allow_once"), text, *steps, mode="sandbox", home=home)
    assert (read, ran) == (DENIED.format("path secrets/**"), DENIED.format("command touch *"))


@pytest.mark.requirement("N4")
async def test_a_rule_counts_for_helpers_as_well(tmp_path: Path) -> None:
    helper = {"turns": [{"steps": [*apart([bash("touch x")]), {"say": "Done."}]}]}
    model = RecordingModel(
        [call("agent", prompt="go", description="Task", name="h"), {"say": "."}], agents={"h": helper}
    )
    user = User("allow_always")
    async with whole(tmp_path, model.make, user=user, mode="full-access", managed=managed(DENIES_TOUCH)) as (
        _,
        session,
    ):
        await events_of(session)
    assert (user.asked, (tmp_path / "x").exists()) == ([], False)


async def test_the_rules_are_listed_in_the_session_and_cannot_be_revoked(tmp_path: Path) -> None:
    text_of_file = "[rules]\ndeny = [{ command = 'curl *' }]\nallow = [{ command = 'make test' }]\nonly_managed = true"
    model = RecordingModel([{"say": "."}])
    async with whole(tmp_path, model.make, managed=managed(text_of_file)) as (_, session):
        shown = text(await events_of(session, "/permissions"))
        assert shown.splitlines()[1:] == [
            "",
            f"Of the administrator's file {FILE}, before all others:",
            "",
            "- deny command curl *",
            "- allow command make test",
            "- what you always allow does not count",
        ]
        assert text(await events_of(session, "/permissions revoke 1")) == "There is none to revoke.\n"


async def test_a_refusal_of_the_administrator_is_kept_as_one(tmp_path: Path) -> None:
    model, store = RecordingModel(apart([bash("touch x")])), SqliteStore(tmp_path / "home")
    (tmp_path / "work").mkdir()
    async with whole(tmp_path / "work", model.make, store=store, managed=managed(DENIES_TOUCH)) as (_, session):
        await events_of(session)
        read = [record.entry async for records in store.read(session.id) for record in records]
    notes: list[Any] = [one.value for one in read if isinstance(one, NoteEntry) and one.kind == DECISION]
    assert [(note["by"], note["decision"], note["rule"]) for note in notes] == [
        ("managed", "deny", "deny by a pattern")
    ]
