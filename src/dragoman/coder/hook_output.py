"""What a hook has said, read from its exit code and its output, in the form of Claude Code. Pure.

Exit code 0: what it printed counts, as JSON or as text. Exit code 2: it blocks, and its stderr is the reason. Every
other end is a failure, which the user is told of and which allows nothing. Before a call, a hook that has not come to
its end (its time was over, it could not be started, a signal ended it, its output cannot be read) has given no answer
to a question that was put to it: then the user is asked, and a hook of the administrator's counts as a no.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman.coder.hook_files import Hook
from dragoman.coder.hook_verdict import HookVerdict, HookWord
from dragoman.host.text import visible

# Of a reason, a message, or what is added to the context. A hook can print a file that the model can read.
TEXT_CHARACTERS: Final = 10_000
_BLOCKS: Final = 2
# What a shell ends with that could not start the program.
_NOT_STARTED: Final = {126: "its program is not executable", 127: "its program was not found"}
# Events whose plain output is for the model.
_ADD_PLAIN_TEXT: Final = frozenset({"UserPromptSubmit", "SessionStart"})
_VERDICTS: Final[dict[str, HookWord]] = {"allow": "allow", "deny": "deny", "ask": "ask"}


class HookRun(NamedTuple):
    """How a hook has ended. `failure`: why it has not come to its end by itself; empty: it has."""

    exit_code: int | None
    out: str = ""
    error: str = ""
    failure: str = ""


class HookAnswer(NamedTuple):
    """What one hook has said.

    `word` deny: it blocks, with `reason`. `context` is for the model, `message` for the user. `stops`: nothing more is
    done in this turn, because of `stop_reason`. `updated` is the input that is to take the place of a call's.
    `failure`: why what it said does not count; `is_missing`: it has given no answer at all.
    """

    hook: Hook
    word: HookWord = ""
    reason: str = ""
    context: str = ""
    message: str = ""
    stops: bool = False
    stop_reason: str = ""
    updated: Mapping[str, Any] | None = None
    failure: str = ""
    is_missing: bool = False


def read_answer(hook: Hook, run: HookRun) -> HookAnswer:
    """Return what a hook has said."""
    error = _bounded(run.error)
    if run.failure or run.exit_code is None or run.exit_code < 0:
        why = run.failure or "a signal ended it"
        return HookAnswer(hook, failure=why, is_missing=True)
    if run.exit_code == _BLOCKS:
        return HookAnswer(hook, "deny", error or "it gave no reason")
    if run.exit_code != 0:
        first = error.splitlines()[0][:200] if error else ""
        why = _NOT_STARTED.get(run.exit_code, f"it ended with exit code {run.exit_code}")
        is_missing = run.exit_code in _NOT_STARTED
        return HookAnswer(hook, failure=f"{why}{f': {first}' if first else ''}", is_missing=is_missing)
    if not run.out.lstrip().startswith("{"):
        is_added = hook.event in _ADD_PLAIN_TEXT
        return HookAnswer(hook, context=_bounded(run.out) if is_added else "")
    try:
        return _read_json(hook, json.loads(run.out))
    except (ValueError, RecursionError, _Unreadable) as error_of_it:
        why = str(error_of_it) if isinstance(error_of_it, _Unreadable) else "its output is no JSON"
        return HookAnswer(hook, failure=why, is_missing=True)


class _Unreadable(Exception):
    """An output that is JSON and says nothing that is known."""


def _read_json(hook: Hook, said: Mapping[str, Any]) -> HookAnswer:
    own = said.get("hookSpecificOutput")
    if own is None:
        own = {}
    if not isinstance(own, Mapping) or own.get("hookEventName", hook.event) != hook.event:
        raise _Unreadable(f"its hookSpecificOutput is not that of {hook.event}")
    stops = said.get("continue", True)
    updated = own.get("updatedInput")
    if not isinstance(stops, bool) or not (updated is None or isinstance(updated, Mapping)):
        raise _Unreadable("its output has a value of another kind than the form says")
    word, reason = _word(hook.event, said, own)
    return HookAnswer(
        hook,
        word,
        reason,
        context=_text(own, "additionalContext"),
        message=_text(said, "systemMessage"),
        stops=not stops,
        stop_reason=_text(said, "stopReason"),
        updated=updated if hook.event == "PreToolUse" else None,
    )


def _word(event: str, said: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[HookWord, str]:
    decision, reason = said.get("decision"), _text(said, "reason")
    word: HookWord
    match decision:
        case None | "":
            word = ""
        case "block" | "deny":
            word = "deny"
        case "approve" | "allow":  # the older spelling, before a call
            word = "allow"
        case _:
            raise _Unreadable("its decision is none that there is")
    if event == "PreToolUse" and (given := own.get("permissionDecision")) is not None:
        if not isinstance(given, str) or given not in _VERDICTS:
            raise _Unreadable("its permissionDecision is none that there is")
        word, reason = _VERDICTS[given], _text(own, "permissionDecisionReason") or reason
    return word, reason or ("it gave no reason" if word == "deny" else "")


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Unreadable(f"its {name} is no text")
    return _bounded(value)


def _bounded(text: str) -> str:
    text = visible(text.strip())
    left = len(text) - TEXT_CHARACTERS
    return text if left <= 0 else f"{text[:TEXT_CHARACTERS]}\n[… {left} more characters of the hook were left out]"


def verdict_of(answers: Sequence[HookAnswer]) -> HookVerdict:
    """Return what follows from all answers: deny beats ask beats allow. An allow of a project's hook is none."""
    for word in _ORDER:
        said = [one for one in answers if _counted_word(one) == word]
        if said:
            return HookVerdict(word, _sentence(said[0], word), context_of(answers))
    return HookVerdict(context=context_of(answers))


def context_of(answers: Sequence[HookAnswer]) -> str:
    """Return what hooks add for the model."""
    return "\n".join(one.context for one in answers if one.context)


_ORDER: Final[tuple[HookWord, ...]] = ("deny", "ask", "allow")
_SAYS: Final = {"deny": "denies this", "ask": "wants a question about this", "allow": "allows this"}


def _counted_word(answer: HookAnswer) -> HookWord:
    if answer.stops:
        return "deny"
    if answer.is_missing:
        return "deny" if answer.hook.origin == "managed" else "ask"
    return "" if answer.word == "allow" and answer.hook.origin == "project" else answer.word


def _sentence(answer: HookAnswer, word: HookWord) -> str:
    if answer.is_missing:
        return f"a hook of {answer.hook.whose} gave no answer: {answer.failure}"
    reason = (answer.stop_reason if answer.stops else "") or answer.reason
    return f"a hook of {answer.hook.whose} {_SAYS[word]}{f': {reason}' if reason else ''}"
