"""Answers that outlive their session: where they are kept, what they cover, and that a broken file allows nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.kept_rules import FILE, KeptRule, KeptRules, KeptRulesFailed, project_of
from dragoman.coder.permissions import Approved, JudgedCall, PermissionGate, UserAnswer
from dragoman.permissions.decision import Decision
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.whole_agent import User, events_of, whole

MAKE = PermissionRule("allow", tool="bash", subject="make …")
NEVER = PermissionRule("reject", tool="bash", subject="make …")


class Choosing(User):
    """Chooses options by their ids."""

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        wanted = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return next((option for option in request.options if option.option_id == wanted), None)


async def turn(home: Path, folder: Path, user: User, *steps: Any) -> list[str]:
    """The results of calls, in a session of their own."""
    folder.mkdir(exist_ok=True)
    model = RecordingModel(apart(steps))
    async with whole(folder, model.make, user=user, home=home) as (_, session):
        await events_of(session)
    return model.results


async def test_always_is_offered_for_the_session_first_then_the_project_then_everywhere(tmp_path: Path) -> None:
    user = Choosing("reject_once")
    steps = [bash("touch x"), call("write_file", path="a", content="x"), bash("./build.sh")]
    await turn(tmp_path / "home", tmp_path / "work", user, *steps)
    command, file, local = ([(o.option_id, o.kind) for o in request.options] for request in user.asked)
    ids = ["allow_once", "allow_always", "allow_always_project", "allow_always_everywhere"]
    ids += ["reject_once", "reject_always", "reject_always_project", "reject_always_everywhere"]
    assert command == [(one, "_".join(one.split("_")[:2])) for one in ids]
    assert [one for one, _ in file] == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert [one for one, _ in local] == [one for one in ids if not one.endswith("everywhere")]
    named = {o.option_id: o.name for o in user.asked[0].options}
    assert named["allow_always"] == "Always allow `touch x …` for this session"
    assert named["allow_always_project"] == "Always allow `touch x …` in this project"
    assert named["allow_always_everywhere"] == "Always allow `touch x …` everywhere"


async def test_a_yes_for_the_project_counts_in_its_next_session_and_in_no_other_project(tmp_path: Path) -> None:
    home, user = tmp_path / "home", Choosing("allow_always_project", "reject_once")
    await turn(home, tmp_path / "one", user, bash("touch x"))
    assert await turn(home, tmp_path / "one", user, bash("touch x")) == [""]
    assert len(user.asked) == 1
    assert await turn(home, tmp_path / "two", user, bash("touch x")) == ["Permission denied. The user said no."]
    assert len(user.asked) == 2


async def test_a_yes_for_everywhere_counts_in_other_projects(tmp_path: Path) -> None:
    home, user = tmp_path / "home", Choosing("allow_always_everywhere")
    await turn(home, tmp_path / "one", user, bash("touch x"))
    await turn(home, tmp_path / "two", user, bash("touch x"))
    assert (len(user.asked), (tmp_path / "two" / "x").exists()) == (1, True)


async def test_a_no_for_the_project_is_told_with_its_rule_and_beats_a_yes_for_everywhere(tmp_path: Path) -> None:
    home, user = tmp_path / "home", Choosing("reject_always_project")
    await turn(home, tmp_path / "one", user, bash("touch x"))
    KeptRules(home).add("", [PermissionRule("allow", tool="bash", subject="touch x …")])
    (told,) = await turn(home, tmp_path / "one", user, bash("touch x"))
    assert told == "Permission denied. The user's rule for this project says never to bash `touch x …`."
    assert (len(user.asked), (tmp_path / "one" / "x").exists()) == (1, False)


async def test_a_rule_that_was_removed_meanwhile_counts_no_more(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "one"
    work.mkdir()
    KeptRules(home).add(os.path.realpath(work), [PermissionRule("allow", tool="bash", subject="touch x …")])
    user = Choosing("reject_once")
    model = RecordingModel([bash("touch x")], [bash("touch x")])
    async with whole(work, model.make, user=user, home=home) as (_, session):
        await events_of(session)
        (rule,) = KeptRules(home).rules()
        KeptRules(home).remove([rule.id])
        await events_of(session)
    assert ([question.title for question in user.asked], sorted(os.listdir(work))) == (["touch x"], ["x"])


BROKEN = {
    "no JSON": b"{",
    "no list": b"[]",
    "of another format": b'{"format": 2}',
    "an unknown field": b'{"format": 1, "allow": []}',
    "no rule": b'{"format": 1, "everywhere": [{"effect": "allow"}]}',
    "a relative project": b'{"format": 1, "projects": {"one": []}}',
    "too long": b" " * (1024 * 1024 + 1),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
async def test_where_the_rules_cannot_be_read_nothing_is_allowed(tmp_path: Path, content: bytes) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / FILE).write_bytes(content)
    (home / FILE).chmod(0o600)
    user = Choosing("allow_once")
    (told,) = await turn(home, tmp_path / "one", user, bash("touch x"))
    assert told.startswith(f"Permission denied. The rules in {home / FILE} cannot be used: the file ")
    assert (user.asked, list((tmp_path / "one").iterdir()), (home / FILE).read_bytes()) == ([], [], content)


@pytest.mark.parametrize("mode", [0o622, 0o606])
def test_rules_that_others_can_write_are_refused(tmp_path: Path, mode: int) -> None:
    KeptRules(tmp_path).add("", [MAKE])
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(KeptRulesFailed, match="can be written by other users"):
        KeptRules(tmp_path).rules()


def test_a_link_in_the_place_of_the_rules_is_refused(tmp_path: Path) -> None:
    KeptRules(tmp_path / "there").add("", [MAKE])
    (tmp_path / FILE).symlink_to(tmp_path / "there" / FILE)
    with pytest.raises(KeptRulesFailed):
        KeptRules(tmp_path).rules()


def test_the_file_is_private_and_its_rules_are_added_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    KeptRules(home).add("", [MAKE, MAKE])
    KeptRules(home).add("/w", [MAKE])
    KeptRules(home).add("/w", [MAKE])
    assert KeptRules(home).rules() == (KeptRule("", MAKE), KeptRule("/w", MAKE))
    assert ((home / FILE).stat().st_mode & 0o777, home.stat().st_mode & 0o777) == (0o600, 0o700)
    stored = {"effect": "allow", "tool": "bash", "subject": "make …"}
    assert json.loads((home / FILE).read_text()) == {"format": 1, "everywhere": [stored], "projects": {"/w": [stored]}}


def test_a_project_is_its_repository_but_never_the_home_folder(tmp_path: Path) -> None:
    home, inner, loose = tmp_path / "home", tmp_path / "home" / "work" / "src", tmp_path / "home" / "loose"
    for folder in (home / ".git", inner, loose, home / "work" / ".git"):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inner)
    assert project_of(str(tmp_path / "link"), str(home)) == str(home / "work")
    assert project_of(str(loose), str(home)) == str(loose)
    assert project_of(str(home), str(home)) == str(home)


def gate(tmp_path: Path, identity: Identity, session_rules: list[PermissionRule]) -> PermissionGate:
    async def remember(rule: PermissionRule) -> None:
        pass

    return PermissionGate(
        lambda: "ask",
        session_rules,
        remember,
        identity=lambda: identity,
        kept=KeptRules(tmp_path),
        project=lambda: "/w",
    )


async def judged(gate: PermissionGate, answer: UserAnswer) -> Approved | Decision:
    command = JudgedCall("3", "bash", {"command": "make"}, [Action("execute", "make")])

    async def look() -> JudgedCall:
        return command

    async def ask(call: JudgedCall) -> UserAnswer:
        return answer

    return await gate.approve(command, look, ask)


SERVED = Identity(principal="p", token="t", confined=False, brings_programs=True, admin=True)


async def test_the_rules_of_the_owner_allow_nothing_to_an_identity_of_a_gateway(tmp_path: Path) -> None:
    KeptRules(tmp_path).add("/w", [MAKE])
    assert isinstance(await judged(gate(tmp_path, LOCAL, []), UserAnswer("reject_once")), Approved)
    assert isinstance(await judged(gate(tmp_path, SERVED, []), UserAnswer("reject_once")), Decision)


async def test_a_never_of_the_owner_holds_for_every_identity(tmp_path: Path) -> None:
    KeptRules(tmp_path).add("/w", [NEVER])
    refused = await judged(gate(tmp_path, SERVED, []), UserAnswer("allow_once"))
    assert isinstance(refused, Decision)
    assert refused.rules == (NEVER,)


async def test_an_identity_of_a_gateway_keeps_rules_for_its_session_alone(tmp_path: Path) -> None:
    """Whatever option it names."""
    rules: list[PermissionRule] = []
    served = gate(tmp_path, SERVED, rules)
    assert served.keeps_rules is False
    assert isinstance(await judged(served, UserAnswer("allow_always", scope="everywhere")), Approved)
    assert (rules, KeptRules(tmp_path).rules()) == ([MAKE], ())
