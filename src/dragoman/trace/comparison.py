"""What is different between two conversations, in the form of `normal_form`: aligned, so that one message more in the
middle is one difference and not a hundred. Pure; what it returns is harmless to show."""

import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dragoman.host.text import harmless_line
from dragoman.trace.normal_form import NormalMessage
from dragoman.trace.summary import chunk_text, summary

_SHOWN_FIELDS: Final = 8
_VALUE: Final = 120
# Messages that are aligned at once, between what is equal at the start and at the end.
_ALIGNED: Final = 5_000
_encode = msgspec.json.Encoder(order="deterministic").encode


class Difference(NamedTuple):
    """A message of A and one of B in its place; None: only the other has it."""

    left: NormalMessage | None
    right: NormalMessage | None

    def __str__(self) -> str:
        """Return it as lines for a terminal."""
        if self.left is None or self.right is None:
            name, one = ("A", self.left) if self.left is not None else ("B", self.right)
            assert one is not None
            return f"only {name} {_place(one)}"
        fields = list(itertools.islice(field_differences(self.left.value, self.right.value), _SHOWN_FIELDS))
        return "\n".join([f"A {_place(self.left)}", f"B {_place(self.right)}", *(f"  {field}" for field in fields)])

    def as_json(self) -> dict[str, Any]:
        """Return it for programs: lines of the files, and the fields that differ."""
        found: dict[str, Any] = {}
        for name, one in (("a", self.left), ("b", self.right)):
            if one is not None:
                found[name] = {"line": one.line, "direction": one.direction, "method": one.method}
        if self.left is not None and self.right is not None:
            found["fields"] = list(
                itertools.islice(field_differences(self.left.value, self.right.value), _SHOWN_FIELDS)
            )
        return found


def compare(left: Sequence[NormalMessage], right: Sequence[NormalMessage]) -> Iterator[Difference]:
    """Yield the differences, in the order of the conversations."""
    keys = [_key(one) for one in left], [_key(one) for one in right]
    start = _equal_start(*keys)
    end = _equal_start(*(side[start:][::-1] for side in keys))
    left, right = left[start : len(left) - end], right[start : len(right) - end]
    if max(len(left), len(right)) > _ALIGNED:  # to align that would take minutes
        yield from _paired(left[:_ALIGNED], right[:_ALIGNED])
        return
    matcher = difflib.SequenceMatcher(None, [_key(one) for one in left], [_key(one) for one in right], autojunk=False)
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        if tag != "equal":
            yield from _paired(left[left_start:left_end], right[right_start:right_end])


def _equal_start(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many keys at the start are the same."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def is_equal(left: NormalMessage, right: NormalMessage) -> bool:
    """Return whether two messages mean the same."""
    return _key(left) == _key(right)


def field_differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yield a sentence for each field in which two values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys((*left, *right)):
            here = f"{path}.{name}" if path else name
            if name not in right:
                yield f"{harmless_line(here)}: {_shown(left[name])} is missing"
            elif name not in left:
                yield f"{harmless_line(here)}: {_shown(right[name])} is more"
            else:
                yield from field_differences(left[name], right[name], here)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from field_differences(one, other, f"{path}[{at}]")
    elif left != right or type(left) is not type(right):
        yield f"{harmless_line(path)}: {_shown(left)} is {_shown(right)}"


def _paired(left: Sequence[NormalMessage], right: Sequence[NormalMessage]) -> Iterator[Difference]:
    """Pair what stands in the place of something with what is most like it: the same direction and method."""
    others = list(right)
    for one in left:
        alike = next((at for at, other in enumerate(others) if _kind(other) == _kind(one)), None)
        if alike is None:
            yield Difference(one, None)
            continue
        for extra in others[:alike]:
            yield Difference(None, extra)
        yield Difference(one, others[alike])
        del others[: alike + 1]
    for extra in others:
        yield Difference(None, extra)


def _kind(one: NormalMessage) -> tuple[str, str, str, str]:
    return (one.direction, one.exchange.kind, one.method, one.exchange.update)


def _key(one: NormalMessage) -> bytes:
    return _encode([one.direction, one.exchange.kind, one.value])


def _place(one: NormalMessage) -> str:
    # All of the text where it is the first piece of one.
    words = summary(one.exchange)
    if chunk_text(one.exchange) is not None:
        words = str(one.value["params"]["update"]["content"]["text"])
    elif words.startswith(one.exchange.update):
        words = words.removeprefix(one.exchange.update).strip()
    line = f"line {one.line}: {one.label} {words}".rstrip()
    return harmless_line(line if len(line) <= 2 * _VALUE else line[: 2 * _VALUE] + "…")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return harmless_line(text if len(text) <= _VALUE else text[:_VALUE] + "…")
