"""A question of permission and its answer. Anything but a known yes, to an option that was offered, is a no.

"Always" is offered where the session can remember it, and says how far it reaches. A question whose answer can be
remembered has an `AnswerKey`. It is the author's own (`remember="bash: npm test"`), or a fingerprint of everything the
user was shown: the question, and the call or the command as it stood then. A call that differs in any of that has
another key, so an "always" can never cover what the user has not seen. Remembered answers end with their session. With
a store they are notes in its log, which name the session: a fork has a copy of the log and is asked anew. An answer
that is lost, evicted or cannot be read is asked for again.

While a question is open, the session is in `requires_action`. A user may take an hour, so there is no timeout here: a
question ends with its turn, and is not answered then.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman import limits
from dragoman.agent.checks import (
    check_fields,
    check_known,
    check_list,
    check_optional_text,
    check_schema,
    check_text,
    plain_text,
)
from dragoman.agent.client_services import check_turn
from dragoman.agent.tool import ToolCall
from dragoman.errors import PeerError, UsageError
from dragoman.vocabulary.asking import R, Reply, Request
from dragoman.vocabulary.events import RequiresAction, Running
from dragoman.vocabulary.identity import LOCAL, Identity, Needs, identity_in, with_needs
from dragoman.vocabulary.services import (
    CommandSubject,
    Elicit,
    ElicitationAnswer,
    Form,
    PermissionAnswer,
    PermissionKind,
    PermissionOption,
    RequestPermission,
    Selected,
    SessionScope,
    ToolCallSubject,
    Url,
)

if TYPE_CHECKING:
    from dragoman.agent.session_core import SessionCore

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
        # Characters that cannot be seen could make two keys look the same on the button.
        readable = remember.strip() and remember.isprintable() and len(remember) <= KEY_CHARACTERS
        return AnswerKey(f"key:{remember}", remember, True) if readable else None
    if isinstance(subject, CommandSubject):
        return _fingerprint(subject.command, title, description, [subject.command, subject.cwd])
    if isinstance(subject, ToolCallSubject) and tool is not None:
        # What differs between two calls that show the same: the id, and how far the call has come.
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


class RememberedAnswers(msgspec.Struct):
    """The answers of one session, by their keys; oldest first, at most `ANSWERS`."""

    _session_id: str
    _answers: dict[str, _Answer] = msgspec.field(default_factory=dict)

    def find(self, key: AnswerKey | None, options: Iterable[PermissionOption]) -> PermissionOption | None:
        """Return the option that was chosen under this key, if it is offered now as well."""
        answer = None if key is None else self._answers.get(key.key)
        if answer is None:
            return None
        # Ids are the author's and may be used again for another kind: an old yes must not become a new "always".
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
                # A note of another session came with a fork. It is passed over: that user said "always" to another
                # conversation.
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
        # Removed first, so that it moves to the end: the oldest answers are evicted.
        self._answers.pop(key, None)
        self._answers[key] = answer
        limits.evict_oldest(self._answers, ANSWERS)


# In the order in which most clients show them.
YES_OR_NO: Final = (
    PermissionOption("allow_once", "Allow once", "allow_once"),
    PermissionOption("allow_always", "Always allow", "allow_always"),
    PermissionOption("reject_once", "Reject", "reject_once"),
    PermissionOption("reject_always", "Always reject", "reject_always"),
)
ALWAYS: Final = ("allow_always", "reject_always")
_OPTION: Final = 'PermissionOption("yes", "Allow", "allow_once")'


class Permission:
    """The user's answer to `session.ask_permission`. Truthy exactly when it is a known yes.

    `option` is the option that was chosen; None: none of those that were offered. `identity` is the user who answered.

    `remembered`: it was given to an earlier question of this session, and the user was not asked now.

    `feedback` is what the user wrote to a no, as it came: it may have characters that do not show. Empty: nothing.
    """

    def __init__(
        self,
        option: PermissionOption | None,
        identity: Identity = LOCAL,
        *,
        remembered: bool = False,
        feedback: str = "",
    ) -> None:
        self.option: Final = option
        self.identity: Final = identity
        self.remembered: Final = remembered
        self.feedback: Final = "" if self else feedback

    def __bool__(self) -> bool:
        return self.option is not None and self.option.allows

    @property
    def always(self) -> bool:
        """Whether the answer is meant for the rest of the session too: an "always", of either kind."""
        return self.option is not None and self.option.kind in ALWAYS


def options_for(key: AnswerKey | None) -> list[PermissionOption]:
    """Return what the user can answer. "Always" says what it covers, and is not offered where nothing is remembered."""
    if key is None:
        return [option for option in YES_OR_NO if option.kind not in ALWAYS]
    what = f"“{key.name}”" if key.by_author else "exactly this"
    return [
        replace(option, name=f"{option.name} {what} for this session") if option.kind in ALWAYS else option
        for option in YES_OR_NO
    ]


def check_question(
    title: object, tool: object, command: object, description: str | UnsetType | None, remember: object
) -> None:
    """Raise `UsageError` for arguments of `ask_permission` that make no question."""
    check_text(title, "a question", 'session.ask_permission("Run make?", command="make")')
    if tool is not None and not isinstance(tool, ToolCall):
        raise UsageError(f"tool is a call that is shown, not {tool!r}: write `async with session.tool(...) as call`")
    if isinstance(tool, ToolCall):
        tool.check_open()
    check_optional_text(description, "the description of a question", 'ask_permission(..., description="why")')
    if command is not None:
        check_text(command, "a command", 'session.ask_permission("Run make?", command="make")')
    if remember is not None:
        check_text(remember, "remember", 'session.ask_permission("Test?", remember="npm test")')


def check_options(options: Sequence[PermissionOption]) -> list[PermissionOption]:
    """Raise `UsageError` unless an answer can mean exactly one of these options."""
    for option in options:
        if not isinstance(option, PermissionOption):
            raise UsageError(f"an option is a PermissionOption, not {option!r}: write `{_OPTION}`")
        check_known(option.kind, "the kind of a PermissionOption", get_args(PermissionKind))
    checked_options = [check_fields(option, _OPTION) for option in options]
    if not options:
        raise UsageError("a permission needs at least one option to choose from")
    if len({option.option_id for option in options}) < len(options):
        raise UsageError("the options of a permission need different ids: an answer must mean one of them")
    return checked_options


class PermissionQuestion(NamedTuple):
    """What is sent, and what an "always" to it covers; None: nothing but this one question."""

    request: RequestPermission
    key: AnswerKey | None


def question(
    session_id: str,
    title: str,
    subject: Subject,
    *,
    tool: ToolCall | None,
    description: str | UnsetType,
    options: Sequence[PermissionOption] | None,
    remember: str | None,
    shared: bool,
) -> PermissionQuestion:
    """Return the question as it is to be asked. `shared`: several users may answer, so no answer is remembered."""
    # `shared`: an "always" of one user must not answer for the next one.
    keeps = not shared and (options is None or remember is not None)
    key = answer_key(title, description, subject, tool, remember) if keeps else None
    choices = options_for(key) if options is None else check_list(options, "options", f"options=[{_OPTION}]")
    choices = check_options(choices)
    return PermissionQuestion(RequestPermission(session_id, title, choices, description, subject), key)


def subject_of(tool: ToolCall | None, command: str | None, cwd: str) -> Subject:
    """Return what is asked about: a call as it is shown now, or a command."""
    if tool is not None and command is not None:
        raise UsageError("a question is about one thing: give ask_permission tool=… or command=…, not both")
    if tool is not None:
        # As it is shown now, with every update so far: the user judges what stands on the screen.
        return ToolCallSubject(tool.opening)
    return UNSET if command is None else CommandSubject(command, cwd)


def chosen(reply: Reply, request: RequestPermission) -> PermissionOption | None:
    """Return the option that the answer names; None if it names none that was offered."""
    if not isinstance(reply, PermissionAnswer) or not isinstance(reply.outcome, Selected):
        return None
    # An id that was not offered is no answer, whatever kind it would be.
    named = [option for option in request.options if option.option_id == reply.outcome.option_id]
    # Options have different ids (`check_options`), so more than one match is a client's mistake; it is no yes.
    return named[0] if len(named) == 1 else None


# -- asking ----------------------------------------------------------------------------------------------------------


async def ask_permission(core: "SessionCore", question: PermissionQuestion, needs: Needs | None) -> Permission:
    """Return the answer to a question: one that is remembered for it, or the user's, which this waits for."""
    check_turn()
    known = core.answers.find(question.key, question.request.options)
    if known is not None:
        return Permission(known, remembered=True)
    permission = await _ask_permission(core, question.request, needs)
    if question.key is not None and permission.option is not None and permission.always:
        # Remembered before the note is on disk: a kill in between has the user asked once more, which harms nothing.
        await core.record_note(NOTE, core.answers.add(question.key, permission.option))
    return permission


async def _ask_permission(core: "SessionCore", request: RequestPermission, needs: Needs | None) -> Permission:
    shared = core.trusts_identities
    if needs is not None and shared:
        request = with_needs(request, needs)
    try:
        reply = await _ask(core, request)
    except PeerError:
        # Refused, or answered with what cannot be read: that is no yes, and says of no client that it answered.
        return Permission(None, Identity() if shared else LOCAL)
    identity = identity_in(reply) if shared else LOCAL
    return Permission(chosen(reply, request), identity, feedback=reply.feedback)


async def ask_form(core: "SessionCore", message: str, schema: dict[str, object]) -> dict[str, object] | None:
    """Return the form as the user filled it in; None: the user declined or dismissed it."""
    if not core.sink.client.elicitation_form:
        raise UsageError("the client cannot show forms; look at session.client.elicitation_form first")
    check_text(message, "a question", 'session.ask_user("Which one?", schema)')
    reply = await elicit(core, plain_text(message), Form(check_schema(schema)))
    if reply.action == "accept" and isinstance(reply.content, dict):
        return reply.content
    return None


async def elicit(core: "SessionCore", message: str, mode: Form | Url) -> ElicitationAnswer:
    """Return the user's answer to a form or a page. `PeerError` where the client refuses: look at what it can show."""
    return await _ask(core, Elicit(message, mode, SessionScope(core.id)))


async def _ask(core: "SessionCore", request: Request[R]) -> R:
    """Ask the client; the session is in `requires_action` meanwhile, however the question ends."""
    check_turn()
    await _record_state(core, RequiresAction())
    try:
        return await core.sink.ask(request)
    finally:
        await _record_state(core, Running())


async def _record_state(core: "SessionCore", state: RequiresAction | Running) -> None:
    # A question outside of a turn, or one that outlived its turn, changes no state: the session is idle.
    if core.turn is not None and not core.turn.ended:
        await core.record(state)
