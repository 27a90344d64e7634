"""What a campaign has to prove, on what it has left behind: logs, acts and what clients were shown. Pure.

One node at a time writes to a log, so nothing has to be searched for: each property is one pass. A violation is a
sentence that names the session and what is wrong with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from chaos.acts import Act


class Row(NamedTuple):
    """One entry of a log: who wrote it, and the words that it adds to what the agent, or the user, has said."""

    sequence: int
    fence: int
    agent: str = ""
    user: str = ""


class Log(NamedTuple):
    """The log of a session, which its row says is so long."""

    rows: Sequence[Row]
    last: int

    @property
    def text(self) -> str:
        """What the agent has said."""
        return "".join(row.agent for row in self.rows)

    def fences(self) -> dict[str, list[int]]:
        """The fences of the prompts of each operation; more than one: it had more than one effect."""
        found: dict[str, list[int]] = {}
        for row in self.rows:
            for operation in row.user.split()[:1]:
                found.setdefault(operation, []).append(row.fence)
        return found


class Piece(NamedTuple):
    """What one client was shown of a session, without a gap that it was told of. `is_first`: from the log's start;
    `source`: by which node and from when, for a look into that node's log."""

    text: str
    is_first: bool
    source: str = ""


class History(NamedTuple):
    """What a campaign has left behind. Sessions are named by their folder.

    `ended`: for each operation whose end a client was told, its session and the last word that the agent said in it.
    """

    logs: Mapping[str, Log]
    acts: Sequence[Act]
    views: Mapping[str, Sequence[Piece]]
    ended: Mapping[str, tuple[str, str]]


def violations(history: History) -> Iterator[str]:
    """Yield what a correct cluster never does."""
    for name, log in history.logs.items():
        yield from _log_violations(name, log)
    yield from _act_violations(history)
    for name, pieces in history.views.items():
        yield from _view_violations(name, history.logs.get(name), pieces)
    for operation, (name, word) in history.ended.items():
        found = history.logs.get(name)
        if found is None or operation not in found.fences() or word not in found.text.split():
            yield f"{name}: the end of {operation} was told, and the log does not have all of it"


def _log_violations(name: str, log: Log) -> Iterator[str]:
    sequences = [row.sequence for row in log.rows]
    if sequences != list(range(1, len(sequences) + 1)):
        yield f"{name}: the entries of the log have not the numbers from 1 to {len(sequences)}"
    if log.last != len(sequences):
        yield f"{name}: the log has {len(sequences)} entries, and its row says {log.last}"
    for before, after in pairwise(log.rows):
        if after.fence < before.fence:
            yield f"{name}: entry {after.sequence} was written under ownership {after.fence}, behind {before.fence}"
    for operation, fences in log.fences().items():
        if len(fences) > 1:
            yield f"{name}: {operation} is {len(fences)} times in the log"
    words = log.text.split()
    if len(set(words)) < len(words):
        yield f"{name}: a word of the agent is in the log twice"


def _act_violations(history: History) -> Iterator[str]:
    fences = {name: log.fences() for name, log in history.logs.items()}
    newest: dict[str, int] = {}
    done: set[tuple[str, int]] = set()
    processes: dict[str, int] = {}
    for act in history.acts:
        of_prompt = fences.get(act.session, {}).get(act.operation)
        if of_prompt is None:
            yield f"{act.session}: act {act.number} of {act.operation}, which is not in the log"
            continue
        if of_prompt[0] < newest.get(act.session, 0):
            yield (
                f"{act.session}: act {act.number} of {act.operation} under ownership {of_prompt[0]}, after one under "
                f"{newest[act.session]}"
            )
        newest[act.session] = max(newest.get(act.session, 0), of_prompt[0])
        if (act.operation, act.number) in done or processes.setdefault(act.operation, act.pid) != act.pid:
            yield f"{act.session}: act {act.number} of {act.operation} was done twice"
        done.add((act.operation, act.number))


def _view_violations(name: str, log: Log | None, pieces: Sequence[Piece]) -> Iterator[str]:
    text = "" if log is None else log.text
    for piece in pieces:
        if not (text.startswith(piece.text) if piece.is_first else piece.text in text):
            kind = "the beginning" if piece.is_first else "a part"
            shown = f"{piece.text[:20]!r} to {piece.text[-20:]!r}"
            yield f"{name}: a client was shown what is not {kind} of the log, by {piece.source}: {shown}"
