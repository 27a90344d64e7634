"""Whatever a hook prints, and whatever its file says, is read or named as a mistake; nothing of it raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.coder.hook_files import Hook, parse_hooks
from dragoman.coder.hook_output import TEXT_CHARACTERS, HookRun, read_answer, verdict_of

TEXTS = st.text(max_size=20) | st.just("\ud800") | st.sampled_from(["allow", "deny", "ask", "block", "PreToolUse"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OWN = st.dictionaries(
    st.sampled_from(
        ["hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"]
    ),
    VALUES,
)
OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("continue", "stopReason", "systemMessage", "decision", "reason"), VALUES),
        "hookSpecificOutput": OWN | VALUES,
    },
)


def hook(event: str = "PreToolUse", **more: Any) -> Hook:
    fields: dict[str, Any] = {"origin": "user", "file": "hooks.json", **more}
    return Hook(event, "", "true", None, 60.0, **fields)


@given(said=OUTPUTS, event=st.sampled_from(["PreToolUse", "UserPromptSubmit", "Stop"]))
def test_every_output_has_an_answer_and_no_word_that_it_does_not_say(said: dict[str, Any], event: str) -> None:
    out = json.dumps(said)
    answer = read_answer(hook(event), HookRun(0, out))
    assert answer.word in ("", "allow", "ask", "deny")
    if answer.word == "allow":
        assert "allow" in out or "approve" in out
    if answer.failure:
        assert answer.is_missing
    assert verdict_of([answer]).word in ("", "allow", "ask", "deny")


@given(out=st.text(max_size=40), code=st.integers(-64, 255))
def test_every_end_has_an_answer_and_only_a_success_allows(out: str, code: int) -> None:
    answer = read_answer(hook(), HookRun(code, out, out))
    assert answer.word == ("deny" if code == 2 else "")


def test_long_and_hidden_words_are_cut_and_spelled_out() -> None:
    answer = read_answer(hook(), HookRun(2, "", "\u202e" + "x" * 20_000))
    assert answer.reason.startswith("\\u202ex")
    assert len(answer.reason) < TEXT_CHARACTERS + 100
    assert answer.reason.endswith("more characters of the hook were left out]")


@pytest.mark.parametrize(
    "matcher",
    ["(" * 5_000 + ")" * 5_000, "(" * 400 + ")" * 300, "a{99999999999999999999}", "[", "x" * 2_000 + ".*", "*abc"],
)
def test_a_matcher_that_is_no_pattern_is_named_and_its_hooks_do_not_run(matcher: str) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": "true"}]}
    file = parse_hooks(json.dumps({"hooks": {"PreToolUse": [group]}}).encode(), "hooks.json", "project")
    assert file.hooks == ()
    assert "is no pattern, so its hooks do not run" in file.mistakes[0]


@given(document=VALUES, event=st.sampled_from(["PreToolUse", "Nonsense"]))
def test_every_file_is_read_or_its_mistakes_are_named(document: Any, event: str) -> None:
    for hooks in (document, {event: document}, {event: [{"hooks": document}]}, {event: [{"hooks": [document]}]}):
        for one in parse_hooks(json.dumps({"hooks": hooks}).encode(), "hooks.json", "user").hooks:
            assert one.line()
