"""May this call run: a table, and the one door."""

import pytest

from dragoman.coder.permissions import Approved, Call, Decision, Rule, approve, decide, digest_of

READ = Call("1", "read_file", {"path": "a"})
WRITE = Call("2", "write_file", {"path": "a", "content": "x"})
BASH = Call("3", "bash", {"command": "git status"})


@pytest.mark.parametrize(
    ("mode", "call", "verdict"),
    [
        ("ask", READ, "allow"),
        ("ask", WRITE, "ask"),
        ("ask", BASH, "ask"),
        ("full-access", READ, "allow"),
        ("full-access", WRITE, "allow"),
        ("full-access", BASH, "allow"),
        ("ask", Call("4", "format_disk", {}), "deny"),
        ("full-access", Call("4", "format_disk", {}), "deny"),
        ("no-such-mode", READ, "deny"),
    ],
)
def test_a_mode_decides(mode: str, call: Call, verdict: str) -> None:
    assert decide(call, mode, []).verdict == verdict


def test_never_beats_always_beats_the_mode() -> None:
    always, never = Rule("allow", "bash", digest_of(BASH)), Rule("deny", "bash", digest_of(BASH))
    assert decide(BASH, "ask", [always]) == Decision("allow", "you said: always")
    assert decide(BASH, "full-access", [always, never]) == Decision("deny", "you said: never")


def test_a_rule_for_one_command_covers_no_other() -> None:
    always = Rule("allow", "bash", digest_of(BASH))
    for command in ("git status; rm x", "git status ", "git  status", "GIT STATUS"):
        assert decide(Call("5", "bash", {"command": command}), "ask", [always]).verdict == "ask"


async def answer(kind: str | None, rules: list[Rule]) -> Approved | None:
    async def ask(call: Call) -> str | None:
        return kind

    return await approve(BASH, "ask", rules, ask)


@pytest.mark.parametrize("kind", [None, "reject_once", "reject_always", "allow", "", "yes", "ALLOW_ONCE"])
async def test_anything_but_a_known_yes_is_a_no(kind: str | None) -> None:
    assert await answer(kind, []) is None


@pytest.mark.parametrize("kind", ["allow_once", "allow_always"])
async def test_a_yes_approves_exactly_what_was_shown(kind: str) -> None:
    approved = await answer(kind, [])
    assert approved is not None
    assert (approved.call, approved.digest) == (BASH, digest_of(BASH))


async def test_an_answer_for_the_future_is_remembered() -> None:
    rules: list[Rule] = []
    await answer("allow_once", rules)
    await answer("reject_once", rules)
    assert rules == []
    await answer("allow_always", rules)
    assert decide(BASH, "ask", rules).verdict == "allow"
    rules.clear()
    await answer("reject_always", rules)
    assert decide(BASH, "full-access", rules).verdict == "deny"


async def test_a_call_that_changes_while_it_is_asked_for_does_not_run() -> None:
    call = Call("6", "bash", {"command": "ls"})

    async def ask(asked: Call) -> str:
        asked.input["command"] = "rm -rf /"
        return "allow_once"

    assert await approve(call, "ask", [], ask) is None


def test_nobody_else_can_approve() -> None:
    with pytest.raises(TypeError, match="only the permission gate"):
        Approved(BASH, digest_of(BASH), object())
