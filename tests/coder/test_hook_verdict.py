"""What hooks change of a decision, case by case; and what they are told of a call, there and back."""

from typing import Any

import pytest

from dragoman.coder.hook_input import hook_calls, our_input
from dragoman.coder.hook_verdict import HookVerdict, HookWord, decide_after_hooks
from dragoman.coder.permissions import Approved, JudgedCall, PermissionGate, UserAnswer
from dragoman.permissions.decision import DecidedBy, Decision
from dragoman.permissions.facts import Action
from dragoman.permissions.policy import Verdict
from dragoman.vocabulary.identity import LOCAL, Identity

RUN = Action("execute", "make")


def after(
    verdict: Verdict, by: DecidedBy, word: HookWord, act: Action = RUN, *, is_local: bool = True
) -> tuple[str, str]:
    decided = decide_after_hooks(Decision(verdict, "r", by), HookVerdict(word, "h"), [act], is_local=is_local)
    return decided.verdict, decided.by


@pytest.mark.requirement("HK3")
@pytest.mark.parametrize("by", ["mode", "rule", "managed", "policy"])
@pytest.mark.parametrize("word", ["", "allow", "ask", "deny"])
def test_what_is_denied_stays_denied_by_the_same(by: DecidedBy, word: HookWord) -> None:
    assert after("deny", by, word) == ("deny", by)


@pytest.mark.requirement("HK3")
@pytest.mark.parametrize("by", ["mode", "rule", "managed"])
@pytest.mark.parametrize("verdict", ["allow", "ask"])
def test_deny_and_ask_count_whatever_has_allowed(verdict: Verdict, by: DecidedBy) -> None:
    assert after(verdict, by, "deny") == ("deny", "hook")
    assert after(verdict, by, "ask") == ("ask", "hook")


@pytest.mark.requirement("HK3")
@pytest.mark.parametrize(
    ("by", "act", "is_local", "answered"),
    [
        ("mode", RUN, True, True),
        ("rule", RUN, True, False),
        ("managed", RUN, True, False),
        ("mode", RUN, False, False),
        ("mode", Action("edit", ".git/config", guarded=True), True, False),
        ("mode", Action("execute", "make", unconfined="why"), True, False),
        ("mode", Action("execute", "ma\u202eke"), True, False),
    ],
)
def test_an_allow_answers_a_plain_question_of_the_mode_alone(
    by: DecidedBy, act: Action, is_local: bool, answered: bool
) -> None:
    assert after("ask", by, "allow", act, is_local=is_local) == (("allow", "hook") if answered else ("ask", by))


@pytest.mark.anyio
@pytest.mark.requirement("HK3")
@pytest.mark.parametrize(("identity", "questions"), [(LOCAL, 0), (Identity(confined=False, token="phone"), 1)])
async def test_a_gate_takes_an_allow_in_the_turns_of_its_own_user_alone(identity: Identity, questions: int) -> None:
    called = JudgedCall("c", "bash", {"command": "make"}, [RUN], hooked=HookVerdict("allow", "h"))
    asked: list[JudgedCall] = []

    async def look() -> JudgedCall:
        return called

    async def ask(call: JudgedCall) -> UserAnswer:
        asked.append(call)
        return UserAnswer("reject_once")

    async def remember(rule: object) -> None:
        raise AssertionError(rule)

    gate = PermissionGate(lambda: "ask", [], remember, identity=lambda: identity)
    verdict = await gate.approve(called, look, ask)
    assert (len(asked), isinstance(verdict, Approved)) == (questions, not questions)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("bash", {"command": "make", "timeout": 90, "background": True, "cwd": "src"}),
        ("read_file", {"path": "/w/a.txt", "start_line": 3, "end_line": 7}),
        ("read_file", {"path": "/w/a.txt", "start_line": 3}),
        ("read_file", {"path": "/w/a.txt", "end_line": 7}),
        ("write_file", {"path": "/w/a.txt", "content": "x"}),
        ("edit_file", {"path": "/w/a.txt", "old_string": "x", "new_string": "y", "replace_all": True}),
        ("grep", {"pattern": "x", "path": "src", "case_insensitive": True, "max_results": 5}),
        ("agent", {"prompt": "look", "name": "scout"}),
        ("mcp__db__query", {"sql": "select 1"}),
        ("sandbox_write_file", {"path": "/w/a.txt", "content": "x"}),
    ],
)
def test_an_input_comes_back_as_it_was(tool: str, given: dict[str, Any]) -> None:
    (told,) = hook_calls(JudgedCall("c", tool, given), "/w")
    assert our_input(tool, told["tool_input"]) == given


def test_a_relative_path_is_told_whole_and_milliseconds_are_rounded_up() -> None:
    (told,) = hook_calls(JudgedCall("c", "write_file", {"path": "x/../a.txt", "content": ""}), "/w")
    assert told == {"tool_name": "Write", "tool_input": {"file_path": "/w/a.txt", "content": ""}}
    assert our_input("bash", {"command": "x", "timeout": 1500}) == {"command": "x", "timeout": 2}
