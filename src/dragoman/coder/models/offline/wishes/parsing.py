"""From a whole message to the requests in it, in order.

A message is cut where a list or a `then` says so, and only where both sides make sense: content that happens to
contain such a word stays whole.
"""

import re
from typing import Final

from dragoman.coder.models.offline.wishes.intents import (
    AnyIntent,
    Create,
    Explain,
    Fix,
    Intent,
    Replace,
    Run,
    RunTests,
    UnknownIntent,
    Where,
)
from dragoman.coder.models.offline.wishes.phrases import MARK, Phrase
from dragoman.coder.models.offline.wishes.rules import intent

# A message of more, blocks and quotations not counted, is a document and no request; rules take time for long ones.
MESSAGE_CHARACTERS: Final = 2_000
# Places where a message may be cut; trying them all takes time.
_CUTS: Final = 16

_ITEM: Final = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•])\s+(?=\S)")
_THEN: Final = re.compile(
    r"\s*[,;.]?\s*\b(?:and\s+)?(?:then|after that|afterwards|finally)\b,?\s+|\s*,\s*and\s+|\s+and\s+(?:also\s+)?|"
    r"(?<=[\w\x00)])[.!?]\s+|\s*\n+\s*",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"\s*,?\s*and\s+(?:also\s+)?", re.IGNORECASE)


def requests(phrase: Phrase) -> list[AnyIntent]:
    """What the user wants, in order. What makes no sense is an `UnknownIntent`."""
    if len(phrase.masked) > MESSAGE_CHARACTERS:
        return [
            AnyIntent(UnknownIntent("Your message is too long for my rules; blocks and quotations may be long."), "")
        ]
    parts = _listed(phrase) or _parts(phrase)
    return _merged([_request(part) for part in parts if part.masked]) or [AnyIntent(UnknownIntent(), "")]


def _listed(phrase: Phrase) -> list[Phrase]:
    """The items of a list; empty if it is none. A line above it that ends in a colon is its title."""
    lines = [line for line in phrase.masked.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith(":") and _ITEM.match(lines[1]):
        lines = lines[1:]
    if len(lines) < 2 or not all(_ITEM.match(line) for line in lines):
        return []
    return [part for line in lines for part in _parts(phrase.part(_ITEM.sub("", line)))]


def _parts(phrase: Phrase) -> list[Phrase]:
    """The message in pieces that make sense, cut as early as possible; whole, if there are none."""
    text = phrase.masked
    cuts = [(0, 0, ""), *((cut.start(), cut.end(), cut[0]) for cut in list(_THEN.finditer(text))[:_CUTS])]
    # What the text behind each cut comes to, from the last to the first.
    behind: list[list[Phrase]] = [[]] * len(cuts)
    for here in reversed(range(len(cuts))):
        begin = cuts[here][1]
        whole = intent(phrase.part(text[begin:]))
        behind[here] = [phrase.part(text[begin:])]
        for there in range(here + 1, len(cuts)):
            left = phrase.part(text[begin : cuts[there][0]])
            first = intent(left) if left.masked else UnknownIntent()
            if isinstance(first, UnknownIntent) or isinstance(intent(behind[there][0]), UnknownIntent):
                continue
            if not _without_mentions(behind[there][0]):
                continue  # what is attached behind the words belongs to them
            is_and = _AND.fullmatch(cuts[there][2]) is not None
            if is_and and not isinstance(whole, UnknownIntent) and _goes_on(first, left):
                continue
            behind[here] = [left, *behind[there]]
            break
    return behind[0]


def _goes_on(first: Intent, phrase: Phrase) -> bool:
    """Whether an `and` behind this request may belong to its own words."""
    if re.search(rf"{MARK}$", phrase.masked):
        return False
    if isinstance(first, Create):
        return not phrase.raw(phrase.masked).rstrip(".").endswith(first.path)
    return isinstance(first, Run) or (isinstance(first, Replace) and first.where == Where())


def _merged(requests: list[AnyIntent]) -> list[AnyIntent]:
    """Running the tests, or finding why they fail, and then fixing them: that is one thing."""
    merged: list[AnyIntent] = []
    for request in requests:
        last = merged[-1].intent if merged else None
        if isinstance(request.intent, Fix) and not request.intent.name and isinstance(last, Fix | RunTests):
            edit = request.intent.edit or (isinstance(last, Fix) and last.edit)
            merged[-1] = AnyIntent(Fix(last.name, edit), f"{merged[-1].words} and {request.words}")
        else:
            merged.append(request)
    return merged


def _request(phrase: Phrase) -> AnyIntent:
    made = intent(phrase)
    mentions = phrase.mentions()
    if mentions and isinstance(made, UnknownIntent):
        # Attachments behind the words are context: the words may make sense without them.
        bare = _without_mentions(phrase)
        made = intent(phrase.part(bare)) if bare else made
        if isinstance(made, Explain) and not made.subject:
            made = Explain(mentions[0].value)
    return AnyIntent(made, " ".join(phrase.raw(phrase.masked).split()))


def _without_mentions(phrase: Phrase) -> str:
    marks = re.findall(MARK, phrase.masked)
    text = phrase.masked
    for mark in marks:
        chunk = phrase.chunk(mark)
        if chunk is not None and chunk.kind == "mention":
            text = text.replace(mark, " ")
    return text.strip()
