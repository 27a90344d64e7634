"""Ask about the changes of a sandbox one by one: in a form where the client shows forms, else in a question for each.

The changes were shown whole before, in the question whose answer was `FILE_BY_FILE`; that answer alone allows nothing.
Where several users share a session, a form does not say whose answer it is: there each is a question of its own, which
only who may answer it is asked.
"""

from collections.abc import Callable, Sequence
from typing import Final

from dragoman.agent.session import Session, session_core
from dragoman.coder.change_review import pages_of
from dragoman.coder.change_units import ChangeUnit
from dragoman.coder.decision_log import DecisionLog, answered_by
from dragoman.coder.identity_limits import may_answer
from dragoman.coder.tools.result_text import title_text
from dragoman.errors import PeerError
from dragoman.permissions.decision import Decision
from dragoman.vocabulary.identity import Identity, Needs
from dragoman.vocabulary.services import PermissionOption

# A no to all of it, for a client that does not know what it means.
FILE_BY_FILE: Final = PermissionOption("file_by_file", "Choose file by file", "reject_once")
# More is no question; all or none is.
MOST_UNITS: Final = 50
# Fields of a form: what terminals ask one by one. With more it is one list.
_FIELDS: Final = 20
_YES: Final = PermissionOption("allow_once", "Apply", "allow_once")
_NO: Final = PermissionOption("reject_once", "Leave in the sandbox", "reject_once")
_TOOL: Final = "apply_changes"
_ASK: Final = "Which of these changes are to be applied to the workspace? The others stay in the sandbox."


def can_be_chosen(units: Sequence[ChangeUnit]) -> bool:
    """Return whether there is something to choose, and not too much."""
    return 2 <= len(units) <= MOST_UNITS


async def choose_units(
    session: Session, units: Sequence[ChangeUnit], log: DecisionLog, identity: Callable[[], Identity]
) -> list[ChangeUnit]:
    """Return the choices that the user agrees to; each decision is in the log."""
    core = session_core(session)
    if not session.client.elicitation_form or core.trusts_identities:
        return [unit for unit in units if await _is_allowed(session, unit, log, identity)]
    chosen = await _ask_form(session, units)
    for unit in units:
        decision = Decision("allow" if unit in chosen else "deny", "", "user")
        await log.record(decision, identity(), mode="sandbox", tool=_TOOL, kind="edit", title=_title(unit))
    return chosen


async def _is_allowed(session: Session, unit: ChangeUnit, log: DecisionLog, identity: Callable[[], Identity]) -> bool:
    needs = Needs("sandbox", leave=unit.is_protected)
    (page,) = pages_of(unit.changes)
    title = _title(unit)
    shown = session.tool(title, kind="edit", name=_TOOL, status="pending", content=page.content)
    async with shown, log.asking(identity(), mode="sandbox", tool=_TOOL, kind="edit", title=title):
        answer = await session.ask_permission(title, tool=shown, options=[_YES, _NO], needs=needs)
        is_yes = bool(answer) and may_answer(answer.identity, needs)
        decision = Decision("allow" if is_yes else "deny", "", "user")
        decider = answered_by(answer, identity())
        await log.record(decision, decider, mode="sandbox", tool=_TOOL, kind="edit", title=title)
        await shown.end("completed" if is_yes else "failed")
    return is_yes


async def _ask_form(session: Session, units: Sequence[ChangeUnit]) -> list[ChangeUnit]:
    """Return what was chosen in a form; nothing where it was dismissed or answered with something else."""
    titles = {f"change_{number}": _title(unit) for number, unit in enumerate(units, 1)}
    try:
        found = await session.ask_user(_ASK, _fields(titles) if len(units) <= _FIELDS else _list(titles))
    except PeerError:
        return []
    content = found or {}
    several = content.get("changes")
    names = several if isinstance(several, list) else [name for name, value in content.items() if value is True]
    return [unit for name, unit in zip(titles, units, strict=True) if name in names]


def _fields(titles: dict[str, str]) -> dict[str, object]:
    fields = {name: {"type": "boolean", "title": title, "default": False} for name, title in titles.items()}
    return {"type": "object", "properties": fields, "required": [*fields]}


def _list(titles: dict[str, str]) -> dict[str, object]:
    choices = [{"const": name, "title": title} for name, title in titles.items()]
    several = {"type": "array", "title": "Changes to apply", "items": {"anyOf": choices}}
    return {"type": "object", "properties": {"changes": several}}


def _title(unit: ChangeUnit) -> str:
    mark = " (PROTECTED)" if unit.is_protected else ""
    return f"{unit.kind}: {title_text(unit.path)}{mark}"
