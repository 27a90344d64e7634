"""The checker of campaigns accepts what a correct cluster leaves behind, and sees each thing that one never does."""

from collections.abc import Sequence

import pytest

from chaos.acts import Act
from chaos.check import History, Log, Piece, Row, violations

ROWS = (
    Row(1, 1, user="op0 2 2"),
    Row(2, 1, agent="op0.0 "),
    Row(3, 2, agent="op0.1 "),
    Row(4, 2, user="op1 1 1"),
    Row(5, 2, agent="op1.0 "),
)
ACTS = (Act("s", "op0", 1, 10), Act("s", "op0", 2, 10), Act("s", "op1", 1, 20))
PIECES = (Piece("op0.0 op0.1 ", is_first=True), Piece("op1.0 ", is_first=False), Piece("", is_first=True))


def history(
    rows: Sequence[Row] = ROWS,
    acts: Sequence[Act] = ACTS,
    pieces: Sequence[Piece] = PIECES,
    *,
    last: int = 5,
    end: tuple[str, str] = ("s", "op1.0"),
) -> History:
    return History({"s": Log(rows, last)}, acts, {"s": pieces}, {"op1": end})


def test_what_a_correct_cluster_leaves_behind_has_no_violation() -> None:
    assert list(violations(history())) == []


@pytest.mark.parametrize(
    ("left", "complaint"),
    [
        (history([*ROWS[:3], ROWS[3]._replace(sequence=5), ROWS[4]._replace(sequence=6)]), "have not the numbers"),
        (history(last=6), "has 5 entries, and its row says 6"),
        (history([*ROWS[:4], ROWS[4]._replace(fence=1)]), "entry 5 was written under ownership 1, behind 2"),
        (history([*ROWS[:4], ROWS[4]._replace(user="op1 1 1")]), "op1 is 2 times in the log"),
        (history([*ROWS[:4], ROWS[4]._replace(agent="op0.1 op1.0 ")]), "a word of the agent is in the log twice"),
        (history(acts=[ACTS[0], ACTS[2], ACTS[1]]), "act 2 of op0 under ownership 1, after one under 2"),
        (history(acts=[*ACTS, ACTS[2]]), "act 1 of op1 was done twice"),
        (history(acts=[*ACTS, Act("s", "op1", 2, 21)]), "act 2 of op1 was done twice"),
        (history(acts=[*ACTS, Act("s", "op2", 1, 30)]), "act 1 of op2, which is not in the log"),
        (history(pieces=[Piece("op0.1 ", is_first=True)]), "is not the beginning of the log"),
        (history(pieces=[Piece("op0.0 op1.0 ", is_first=False)]), "is not a part of the log"),
        (history(end=("s", "op1.1")), "the end of op1 was told, and the log does not have all of it"),
        (history(end=("other", "op1.0")), "the end of op1 was told, and the log does not have all of it"),
    ],
)
def test_each_thing_that_never_happens_is_seen(left: History, complaint: str) -> None:
    found = list(violations(left))
    assert any(complaint in one for one in found), found
