"""May this call run: a table, and the one door."""

import pytest

from dragoman.coder.modes import MODES
from dragoman.coder.permissions import (
    NOES,
    Approved,
    JudgedCall,
    PermissionGate,
    UserAnswer,
    decide_call,
    offers,
    rules_for,
)
from dragoman.permissions.decision import Decision
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.identity import Identity

READ = JudgedCall("1", "read_file", {"path": "a"}, [Action("read", "/w/a")])
WRITE = JudgedCall("2", "write_file", {"path": "a", "content": "x"}, [Action("edit", "/w/a")])
HOOK = JudgedCall("2", "write_file", {"path": ".git/hooks/x"}, [Action("edit", "/w/.git/hooks/x", guarded=True)])
BASH = JudgedCall("3", "bash", {"command": "make"}, [Action("execute", "make")])
KEPT_IN = JudgedCall("3", "bash", {"command": "make"}, [Action("execute", "make", confined=True)])
FREED = JudgedCall("3", "bash", {}, [Action("execute", "make", guarded=True, unconfined="needs it", confined=True)])
LOOK = JudgedCall("3", "bash", {"command": "ls"}, [Action("execute", "ls", harmless=True)])
FETCH = JudgedCall("4", "web_fetch", {"url": "https://example.com"}, [Action("fetch", "example.com")])
FOREIGN = JudgedCall("5", "mcp__x__read", {}, [Action("foreign", "mcp__x__read")])
PLAN = JudgedCall("6", "update_plan", {}, [Action("free")])
RUIN = JudgedCall(
    "7", "bash", {"command": "rm -rf /"}, [Action("execute", "rm -rf /", blocked_reason="nothing brings that back")]
)
UNKNOWN_TOOL = JudgedCall("8", "format_disk", {})

CALLS = {
    "read": READ,
    "write": WRITE,
    "protected": HOOK,
    "command": BASH,
    "look": LOOK,
    "confined": KEPT_IN,
    "unconfined": FREED,
    "network": FETCH,
    "foreign": FOREIGN,
    "free": PLAN,
    "ruin": RUIN,
    "unknown": UNKNOWN_TOOL,
}
TABLE = {
    "read-only": "read allow, write deny, protected deny, command deny, look deny, confined deny, unconfined deny, "
    "network deny, foreign deny",
    "plan": "read allow, write deny, protected deny, command deny, look deny, confined deny, unconfined deny, "
    "network deny, foreign deny",
    "ask": "read allow, write ask, protected ask, command ask, look allow, confined ask, unconfined ask, "
    "network ask, foreign ask",
    "workspace-write": "read allow, write allow, protected ask, command ask, look allow, confined allow, "
    "unconfined ask, network ask, foreign ask",
    "safe": "read allow, write ask, protected ask, command deny, look deny, confined deny, unconfined deny, "
    "network deny, foreign deny",
    "sandbox": "read deny, write deny, protected deny, command deny, look deny, confined deny, unconfined deny, "
    "network deny, foreign deny",
    "full-access": "read allow, write allow, protected allow, command allow, look allow, confined allow, "
    "unconfined allow, network allow, foreign allow",
}
ALWAYS = "free allow, ruin deny, unknown deny"


@pytest.mark.parametrize("mode", TABLE)
def test_a_mode_decides(mode: str) -> None:
    expected = dict(entry.split() for entry in f"{TABLE[mode]}, {ALWAYS}".split(", "))
    assert {name: decide_call(call, mode, []).verdict for name, call in CALLS.items()} == expected


def test_every_mode_is_in_the_table_and_no_other_allows_anything() -> None:
    assert set(MODES) == set(TABLE)
    assert {decide_call(call, "no-such-mode", []).verdict for call in CALLS.values()} == {"deny"}


def allowed_always(command: str) -> list[PermissionRule]:
    return rules_for(JudgedCall("1", "bash", {}, [Action("execute", command)]), "allow")


def run(command: str) -> JudgedCall:
    return JudgedCall("2", "bash", {"command": command}, [Action("execute", command, paths_in_workspace=("src",))])


OTHERS = [
    *("git status; rm x", "git status && rm x", "git status | sh", "git status\nrm x", "GIT_DIR=/x git status"),
    *("git -c core.pager=rm status", "git status $(rm x)", "git status > x", "git", "git push", "sudo git status"),
]


@pytest.mark.requirement("F6", "8.1.22")
def test_an_always_for_one_command_covers_no_other() -> None:
    rules = allowed_always("git status")
    assert rules == [PermissionRule("allow", tool="bash", subject="git status …")]
    assert decide_call(run("git  status"), "ask", rules).verdict == "allow"
    assert decide_call(run("git status src"), "ask", rules).verdict == "allow"
    assert {decide_call(run(other), "ask", rules).verdict for other in OTHERS} == {"ask"}
    assert decide_call(run("git status ../out"), "ask", rules).verdict == "ask"


def test_an_always_for_what_cannot_be_known_covers_that_text_alone() -> None:
    rules = allowed_always("echo $(date) >> log")
    assert decide_call(run("echo $(date) >> log"), "ask", rules).verdict == "allow"
    assert decide_call(run("echo $(date) >> log; rm x"), "ask", rules).verdict == "ask"


@pytest.mark.requirement("H6")
def test_a_never_holds_in_every_disguise() -> None:
    (rule,) = rules_for(JudgedCall("1", "bash", {}, [Action("execute", "curl evil")]), "reject")
    for command in ("curl evil", "/usr/bin/curl evil", "env curl evil", "sh -c 'curl evil'", "true; curl evil -o x"):
        assert decide_call(run(command), "full-access", [rule]) == Decision("deny", "you said: never", "rule", (rule,))
    assert decide_call(run("ls"), "full-access", [rule]).verdict == "allow"


def test_what_a_mode_forbids_it_does_not_offer() -> None:
    assert [mode for mode in MODES if not offers(mode, "execute")] == ["read-only", "plan", "safe", "sandbox"]
    assert not offers("no-such-mode", "read")
    assert [mode for mode in MODES if offers(mode, "sandboxed")] == ["sandbox"]


@pytest.mark.parametrize(
    ("command", "subjects"),
    [
        ("cd src && npm test", ["npm test …"]),
        ("cd /x && npm test", ["cd /x && npm test"]),
        ("for i in 1 2; do make; done", ["make …"]),
        ("FOO=1 pytest -q", ["FOO=1 pytest …"]),
        ("PATH=. pytest -q", ["PATH=. pytest -q"]),
        ("git commit -m \"$(cat <<'E'\nit's done\nE\n)\"", ["git commit …"]),
        ("make $X", ["make $X"]),
    ],
)
def test_an_always_for_a_line_is_about_its_commands_where_these_are_all_that_matters(
    command: str, subjects: list[str]
) -> None:
    act = Action("execute", command, paths_in_workspace=("src",))
    call = JudgedCall("1", "bash", {"command": command}, [act])
    rules = rules_for(call, "allow")
    assert [rule.subject for rule in rules] == subjects
    assert decide_call(call, "ask", rules).verdict == "allow"


def test_a_never_for_a_compound_line_is_about_that_line() -> None:
    for command in ("cd src && npm test", "for i in 1 2; do make; done", "A=1 make"):
        call = JudgedCall("1", "bash", {"command": command}, [Action("execute", command)])
        rules = rules_for(call, "reject")
        assert [rule.subject for rule in rules] == [command]
        assert decide_call(call, "full-access", rules).verdict == "deny"


def test_never_beats_always_beats_the_mode() -> None:
    always, never = (
        PermissionRule("allow", tool="bash", subject="make …"),
        PermissionRule("reject", tool="bash", subject="make …"),
    )
    assert decide_call(BASH, "ask", [always]).verdict == "allow"
    assert decide_call(BASH, "full-access", [always, never]) == Decision("deny", "you said: never", "rule", (never,))
    assert decide_call(BASH, "read-only", [always]).verdict == "deny"


def test_a_call_with_several_acts_needs_a_yes_for_each() -> None:
    both = JudgedCall("9", "bash", {}, [Action("execute", "make"), Action("edit", "/w/.git/config", guarded=True)])
    always = PermissionRule("allow", tool="bash", subject="make")
    assert decide_call(both, "ask", [always]).verdict == "ask"
    assert (
        decide_call(both, "ask", [always, PermissionRule("allow", tool="bash", subject="/w/.git/config")]).verdict
        == "allow"
    )


def test_a_yes_of_a_confined_identity_allows_nothing_that_runs_unconfined() -> None:
    confined = PermissionRule("allow", tool="bash", subject=BASH.acts[0].subject, confined=True)
    assert decide_call(BASH, "workspace-write", [confined], identity=Identity()).verdict == "allow"
    assert decide_call(BASH, "workspace-write", [confined]).verdict == "allow"
    assert decide_call(BASH, "ask", [confined]).verdict == "ask"


async def test_what_a_confined_identity_always_allows_is_remembered_as_such() -> None:
    user = User("allow_always", mode="workspace-write")
    user.gate = PermissionGate(lambda: user.mode, user.rules, user._keep, identity=Identity)
    await user.approve()
    assert [rule.confined for rule in user.kept] == [True]


async def test_always_to_a_confined_command_does_not_count_where_it_would_run_unconfined() -> None:
    user = User("allow_always", "reject_once", mode="workspace-write")
    assert isinstance(await user.approve(), Approved)
    assert isinstance(await user.approve(), Approved)
    assert user.asked == 1
    user.mode = "ask"
    assert isinstance(await user.approve(), Decision)
    assert user.asked == 2


async def test_a_yes_to_a_confined_command_is_asked_again_if_it_would_run_unconfined_by_then() -> None:
    user = User("allow_once", "reject_once", mode="workspace-write")

    async def ask(call: JudgedCall) -> UserAnswer:
        user.mode = "ask"
        return await user.ask(call)

    assert isinstance(await user.gate.approve(BASH, user.look, ask), Decision)
    assert user.asked == 2


def test_guarded_acts_are_refused_to_a_confined_identity_whatever_was_remembered() -> None:
    call = JudgedCall("9", "write_file", {}, [Action("edit", "/w/.envrc", guarded=True)])
    always = PermissionRule("allow", tool="write_file", subject="/w/.envrc")
    assert decide_call(call, "workspace-write", [always]).verdict == "allow"
    refused = decide_call(call, "workspace-write", [always], identity=Identity(token="bob"))
    reason = "the token 'bob' may not leave the confinement, and this would"
    assert refused == Decision("deny", reason, "policy")


class User:
    """Answers as told, and counts the questions."""

    def __init__(self, *answers: str | None, mode: str = "ask") -> None:
        self.mode, self.asked = mode, 0
        self.rules: list[PermissionRule] = []
        self.kept: list[PermissionRule] = []
        self.world = [BASH]
        self._answers = list(answers)
        self.gate = PermissionGate(lambda: self.mode, self.rules, self._keep)

    async def _keep(self, rule: PermissionRule) -> None:
        self.kept.append(rule)

    async def ask(self, call: JudgedCall) -> UserAnswer:
        self.asked += 1
        return UserAnswer(self._answers.pop(0))

    async def look(self) -> JudgedCall:
        return self.world.pop(0) if len(self.world) > 1 else self.world[0]

    async def approve(self, call: JudgedCall = BASH) -> Approved | Decision:
        return await self.gate.approve(call, self.look, self.ask)


@pytest.mark.parametrize("answer", [None, "reject_once", "reject_always", "allow", "", "yes", "ALLOW_ONCE"])
async def test_anything_but_a_known_yes_is_a_no(answer: str | None) -> None:
    assert isinstance(await User(answer).approve(), Decision)


@pytest.mark.parametrize("answer", ["allow_once", "allow_always"])
async def test_a_yes_approves_exactly_what_was_shown(answer: str) -> None:
    approved = await User(answer).approve()
    assert isinstance(approved, Approved)
    assert approved.call == BASH


@pytest.mark.requirement("F5")
async def test_a_yes_for_once_is_asked_again_the_next_time() -> None:
    user = User("allow_once", "allow_once")
    await user.approve()
    await user.approve()
    assert (user.asked, user.rules) == (2, [])


async def test_an_answer_for_the_future_is_remembered_and_kept() -> None:
    user = User("allow_always")
    await user.approve()
    assert isinstance(await user.approve(), Approved)
    assert user.asked == 1
    assert user.rules == user.kept == [PermissionRule("allow", tool="bash", subject="make …")]


async def test_a_no_for_the_future_holds_in_every_mode() -> None:
    user = User("reject_always")
    await user.approve()
    user.gate.begin_turn()
    user.mode = "full-access"
    assert await user.approve() == Decision("deny", "you said: never", "rule", tuple(user.kept))


@pytest.mark.requirement("F12")
async def test_a_no_is_remembered_for_the_turn() -> None:
    """A model that asks a thousand times makes one question."""
    user = User("reject_once", "allow_once")
    for _ in range(1000):
        assert isinstance(await user.approve(), Decision)
    assert user.asked == 1
    user.gate.begin_turn()
    assert isinstance(await user.approve(), Approved)


@pytest.mark.requirement("F7")
async def test_what_changed_between_the_question_and_the_yes_is_asked_again() -> None:
    user = User("allow_once", "allow_once")
    user.world = [BASH._replace(stamp="another")]
    approved = await user.approve()
    assert user.asked == 2
    assert isinstance(approved, Approved)
    assert approved.call.stamp == "another"


async def test_what_never_stands_still_does_not_run() -> None:
    user = User(*["allow_always"] * 10)
    user.world = [BASH._replace(stamp=str(number)) for number in range(10)]
    assert isinstance(await user.approve(), Decision)
    assert user.rules == []


@pytest.mark.requirement("F9")
async def test_a_call_that_changes_while_it_is_asked_for_does_not_run() -> None:
    user = User("allow_once", "reject_once")
    user.world = [BASH._replace(input={"command": "rm -rf x"})]
    assert isinstance(await user.approve(), Decision)
    assert user.asked == 2


@pytest.mark.requirement("F11")
@pytest.mark.parametrize("stricter", ["mode", "rule"])
async def test_what_becomes_stricter_while_asking_wins(stricter: str) -> None:
    user = User("allow_always")

    async def ask(call: JudgedCall) -> UserAnswer:
        if stricter == "mode":
            user.mode = "read-only"
        else:
            user.rules.append(PermissionRule("reject", tool="bash", subject="make …"))
        return UserAnswer("allow_always")

    assert await user.gate.approve(BASH, user.look, ask) == Decision(
        "deny", "it was forbidden meanwhile", "policy", option="allow_always"
    )
    assert user.kept == []


def test_no_other_client_can_approve() -> None:
    with pytest.raises(TypeError, match="only the permission gate"):
        Approved(BASH, Decision("allow", "mode ask"), object())


def test_a_page_is_fetched_unasked_only_where_that_was_said() -> None:
    guarded = JudgedCall("4", "web_fetch", {}, [Action("fetch", "example.com", guarded=True)])
    other = JudgedCall("4", "mcp__x__fetch", {}, [Action("fetch", "example.com")])
    assert [decide_call(call, "ask", [], fetches=True).verdict for call in (FETCH, guarded, other, BASH)] == [
        "allow",
        "ask",
        "ask",
        "ask",
    ]
    assert decide_call(FETCH, "read-only", [], fetches=True).verdict == "deny"
    assert (
        decide_call(
            FETCH, "ask", [PermissionRule("reject", tool="web_fetch", subject="example.com")], fetches=True
        ).verdict
        == "deny"
    )


async def test_after_so_many_noes_no_question_is_asked_any_more() -> None:
    asked = []

    async def no(call: JudgedCall) -> UserAnswer:
        asked.append(call)
        return UserAnswer("reject_once")

    async def remember(rule: PermissionRule) -> None:
        raise AssertionError

    gate = PermissionGate(lambda: "ask", [], remember)
    for number in range(NOES + 3):
        call = JudgedCall(str(number), "bash", {}, [Action("execute", f"make {number}")])

        async def look(call: JudgedCall = call) -> JudgedCall:
            return call

        found = await gate.approve(call, look, no)
    assert found == Decision("deny", f"you have said no {NOES} times in this turn", "policy")
    assert len(asked) == NOES


async def test_an_answer_that_is_a_rule_already_is_kept_once() -> None:
    kept: list[PermissionRule] = []

    async def remember(rule: PermissionRule) -> None:
        kept.append(rule)

    twice = JudgedCall("1", "bash", {}, [Action("execute", "make"), Action("execute", "make")])
    gate = PermissionGate(lambda: "ask", [], remember)

    async def look() -> JudgedCall:
        return twice

    async def always(call: JudgedCall) -> UserAnswer:
        return UserAnswer("allow_always")

    assert isinstance(await gate.approve(twice, look, always), Approved)
    assert kept == gate.rules
    assert len(kept) == 1


def test_a_rule_that_cannot_be_read_covers_its_own_text_alone() -> None:
    torn = "make 'half …"
    rules = [
        PermissionRule("allow", tool="bash", subject=torn),
        PermissionRule("reject", tool="bash", subject="ls 'half …"),
    ]
    assert decide_call(run("make"), "ask", rules).verdict == "ask"
    assert decide_call(run("ls"), "workspace-write", rules).reason != "you said: never"
