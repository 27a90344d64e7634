"""What no permission answer may get past: it is a yes only to one option that was really offered.

Anything else is a no, whoever sent it and however it is spelled. These checks are the same in every version.
"""

import json
from typing import NoReturn

from msgspec import Raw
from msgspec.structs import replace

from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.services import Dismissed, PermissionAnswer, PermissionOption, Selected


def refuse_duplicates(answer: Raw) -> None:
    """Two readers may take different ones of two equal keys: an answer that means two things means nothing."""
    try:
        json.loads(bytes(answer), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise PeerMistake(INVALID_PARAMS, "Invalid permission answer") from None


def only_offered(answer: PermissionAnswer, offered: list[PermissionOption]) -> PermissionAnswer:
    """The answer; a choice that names no offered option, or two of them, is nobody's choice."""
    if not isinstance(answer.outcome, Selected):
        return answer
    chosen = answer.outcome.option_id
    if sum(option.option_id == chosen for option in offered) == 1:
        return answer
    return replace(answer, outcome=Dismissed())


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse()


def _refuse() -> NoReturn:
    raise ValueError("a key stands twice")
