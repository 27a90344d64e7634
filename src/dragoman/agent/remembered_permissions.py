"""Answers that count for the rest of a session: what was said "always" to, and nothing else.

A question whose answer can be remembered has an `AnswerKey`. It is the author's own (`remember="bash: npm test"`), or
a fingerprint of everything the user was shown: the question, and the call or the command as it stood then. A call that
differs in any of that has another key, so an "always" can never cover what the user has not seen.

Answers end with their session. With a store they are notes in its log, which name the session: a fork has a copy of
the log and is asked anew. An answer that is lost, evicted or cannot be read is asked for again.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.agent.tool import ToolCall
from dragoman.vocabulary.services import CommandSubject, PermissionOption, ToolCallSubject

# How the notes are called in a log.
NOTE: Final = "remembered permission"
# So many answers one session remembers; the oldest are evicted, and asked for again.
ANSWERS: Final = 256
# A longer key does not fit on a button.
KEY_CHARACTERS: Final = 200

Subject = ToolCallSubject | CommandSubject | UnsetType


class AnswerKey(NamedTuple):
    """What an answer is remembered for. `name` is for people; `by_author`: the author gave the key itself."""

    key: str
    name: str
    by_author: bool


class RememberedPermission(NamedTuple):
    """An answer that counts for the rest of the session. `covers` is the author's key, the command, or the title."""

    covers: str
    allowed: bool


class _Answer(NamedTuple):
    name: str
    option_id: str
    kind: str


def answer_key(
    title: str, description: str | UnsetType, subject: Subject, tool: ToolCall | None, remember: str | None
) -> AnswerKey | None:
    """Return what an answer to this question may cover; None: nothing but this one question."""
    if remember is not None:
        readable = remember.strip() and remember.isprintable() and len(remember) <= KEY_CHARACTERS
        return AnswerKey(f"key:{remember}", remember, True) if readable else None
    if isinstance(subject, CommandSubject):
        return _fingerprint(subject.command, title, description, [subject.command, subject.cwd])
    if isinstance(subject, ToolCallSubject) and tool is not None:
        call = replace(subject.tool_call, tool_call_id="", status=UNSET, raw_output=UNSET, capabilities=UNSET)
        return _fingerprint(tool.title, title, description, [call, tool.added])
    return None


def _fingerprint(name: str, title: str, description: str | UnsetType, subject: Sequence[object]) -> AnswerKey | None:
    """Return the key of a question: a hash of everything the user is shown."""
    import hashlib  # most agents never ask

    whole = [title, description or None, *subject]
    try:
        data = msgspec.json.encode(whole, enc_hook=repr, order="deterministic")
    except (TypeError, ValueError):
        return None  # it holds what has no JSON, so two of them cannot be compared
    return AnswerKey(f"shown:{hashlib.sha256(data).hexdigest()}", name, False)


class RememberedAnswers:
    """The answers of one session, by their keys."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._answers: dict[str, _Answer] = {}

    def find(self, key: AnswerKey | None, options: Iterable[PermissionOption]) -> PermissionOption | None:
        """Return the option that was chosen under this key, if it is offered now as well."""
        answer = None if key is None else self._answers.get(key.key)
        if answer is None:
            return None
        same = [option for option in options if (option.option_id, option.kind) == (answer.option_id, answer.kind)]
        return same[0] if len(same) == 1 else None

    def add(self, key: AnswerKey, option: PermissionOption) -> dict[str, object]:
        """Remember a choice; return the note for the log."""
        self._put(key.key, _Answer(key.name, option.option_id, option.kind))
        answer = {"covers": key.name, "option": option.option_id, "kind": option.kind}
        return {"session": self._session_id, "key": key.key, **answer}

    def forget(self, covers: str | None) -> dict[str, object]:
        """Forget the answers with this name, or all; return the note for the log."""
        self._answers = {key: one for key, one in self._answers.items() if covers is not None and one.name != covers}
        return {"session": self._session_id, "forget": covers}

    def list(self) -> list[RememberedPermission]:
        """List the answers, oldest first."""
        return [RememberedPermission(one.name, one.kind == "allow_always") for one in self._answers.values()]

    def restore(self, notes: Iterable[object]) -> None:
        """Apply the notes of a log in order. What is no note of this session, or of ours, is passed over."""
        for note in notes:
            match note:
                case {"session": self._session_id, "forget": str() | None as covers}:
                    self.forget(covers)
                case {
                    "session": self._session_id,
                    "key": str() as key,
                    "covers": str() as name,
                    "option": str() as option_id,
                    "kind": "allow_always" | "reject_always" as kind,
                }:
                    self._put(key, _Answer(name, option_id, kind))

    def _put(self, key: str, answer: _Answer) -> None:
        self._answers.pop(key, None)
        self._answers[key] = answer
        while len(self._answers) > ANSWERS:
            del self._answers[next(iter(self._answers))]
