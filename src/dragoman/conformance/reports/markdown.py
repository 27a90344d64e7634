"""A report as a comment on a pull request: the verdict, a line for each version, what failed with its frames. Pure.

What a subject sent is shown in fences that it cannot end, and sentences of it have no markup: a comment must name no
person and load no picture because an agent said so. The text is bounded, because a comment is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.conformance.frames import Frame
from dragoman.conformance.report import frame_line, verdict_line
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from dragoman.host.text import harmless_line

# A comment on GitHub has at most 65,536 characters.
_MOST_CHARACTERS: Final = 60_000
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~@&:])")
_FENCE: Final = re.compile("`{3,}")


def as_markdown(report: CheckReport, *, strict: bool = False) -> str:
    """Return the report as Markdown."""
    parts, size = [], 0
    for part in _parts(report, strict=strict):
        size += len(part)
        if size > _MOST_CHARACTERS:
            parts.append("\nThe rest is left out; the JSON and HTML reports have all of it.\n")
            break
        parts.append(part)
    return "".join(parts)


def _parts(report: CheckReport, *, strict: bool) -> Iterator[str]:
    yield f"### dragoman check: {plain(report.subject)}\n\n**{plain(verdict_line(report, strict=strict))}**\n"
    if report.obstacle:
        yield f"\nNothing could be tested: {plain(report.obstacle)}\n"
    if report.hellos:
        yield "\n| version | pass | fail | not tested | blocked |\n| --- | --: | --: | --: | --: |\n"
    for version in report.hellos:
        counts = Counter(one.verdict for one in report.results if one.version == version)
        yield f"| {version} | {' | '.join(str(counts[verdict]) for verdict in Verdict)} |\n"
    for result in sorted(report.results, key=lambda one: not one.counts(strict=strict)):
        if result.verdict is Verdict.FAIL:
            yield from _failure(result, counts=result.counts(strict=strict))
    unjudged = [one for one in report.failures(strict=strict) if one.verdict is not Verdict.FAIL]
    if unjudged:
        yield "\nMust hold, and could not be judged:\n\n"
    for result in unjudged:
        step = f" Next: {plain(result.next_step)}." if result.next_step else ""
        yield f"- {result.row.id} (version {result.version}): {plain(result.reason)}.{step}\n"
    for error in report.harness_errors:
        yield f"\nA fault of dragoman check, no verdict: {plain(error)}\n"


def _failure(result: RowResult, *, counts: bool) -> Iterator[str]:
    row = result.row
    mark = "does not conform" if counts else row.tier
    yield f"\n<details><summary><b>{row.id}</b> (version {result.version}, {mark}): {_html(row.sentence)}</summary>\n\n"
    yield f"{plain(result.reason)}\n\n"
    yield _fenced(result.frames)
    yield f"Source: {plain(row.source())}\n\n</details>\n"


def _fenced(frames: Sequence[Frame]) -> str:
    if not frames:
        return ""
    text = "\n".join(frame_line(frame).strip() for frame in frames)
    fence = "`" * (max((len(found) for found in _FENCE.findall(text)), default=2) + 1)
    return f"{fence}text\n{text}\n{fence}\n\n"


def plain(text: str) -> str:
    """Return text on one line, without any markup that it may contain."""
    return _MARKUP.sub(r"\\\1", harmless_line(text))


def _html(text: str) -> str:
    return re.sub("`([^`]*)`", r"<code>\1</code>", text.replace("&", "&amp;").replace("<", "&lt;"))
