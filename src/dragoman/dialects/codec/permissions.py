"""Checks of a permission answer: it is a yes only to one option that was really offered.

Any other answer is a no, from any peer and in any form. These checks are the same in every version and dialect.
"""

import json
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.services import Dismissed, PermissionAnswer, PermissionOption, Selected

# Outcomes as plain texts in place of the schema's object, as clients send them (rows 8.1.19 and 8.4.12).
_FLAT: Final = ("allowed", "selected", "denied", "rejected", "cancelled")


def refuse_duplicates(answer: Raw) -> None:
    """Raise `PeerMistake` for an answer with a key twice: readers differ in which one counts, so it means nothing."""
    # Python's own reader, because msgspec takes the last of two equal keys without a word.
    try:
        json.loads(bytes(answer), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise PeerMistake(INVALID_PARAMS, "Invalid permission answer") from None


def unfolded(answer: Raw, offered: list[PermissionOption]) -> Raw:
    """Return an answer whose outcome is a plain text, as some clients send it, in the schema's form.

    Only `allowed` and `selected` beside the id of an option can become a choice, and what was offered decides whether
    it is one. The words for no are the option for it where there is one. Any other word is left as it is: malformed.
    """
    body = _loosely(answer)
    if not isinstance(body, dict) or body.get("outcome") not in _FLAT:
        return answer
    if body.keys() == {"outcome"} and body["outcome"] == "selected":
        return answer  # without an id it names no option in any form
    # Two names for the id are in use; two different ids are no choice.
    ids = {body[key] for key in ("option_id", "optionId") if isinstance(body.get(key), str)}
    chosen = ids.pop() if body["outcome"] in ("allowed", "selected") and len(ids) == 1 else None
    # Only `reject_once`: a plain no must not be remembered for the rest of the session.
    if chosen is None and body["outcome"] in ("denied", "rejected"):
        chosen = next((option.option_id for option in offered if option.kind == "reject_once"), None)
    outcome = {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
    meta = {"_meta": body["_meta"]} if isinstance(body.get("_meta"), dict) else {}
    return Raw(msgspec.json.encode({"outcome": outcome, **meta}))


def _loosely(answer: Raw) -> Any:
    try:
        return msgspec.json.decode(answer)
    except (ValueError, RecursionError, OverflowError):
        return None


def only_offered(answer: PermissionAnswer, offered: list[PermissionOption]) -> PermissionAnswer:
    """Return the answer, as `Dismissed` if the chosen id names no offered option, or two of them."""
    if not isinstance(answer.outcome, Selected):
        return answer
    chosen = answer.outcome.option_id
    # An id that two options have may stand for the yes or for the no.
    if sum(option.option_id == chosen for option in offered) == 1:
        return answer
    return replace(answer, outcome=Dismissed())


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse()


def _refuse() -> NoReturn:
    raise ValueError("a key stands twice")
