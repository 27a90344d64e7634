"""A badge for a README: how many of the rows that were judged hold, as an SVG that loads nothing. Pure."""

from collections.abc import Sequence
from html import escape
from typing import Final

from dragoman.conformance.run import CheckReport
from dragoman.conformance.verdicts import Verdict

_LABEL: Final = "ACP"
# Widths of Verdana at 11 pixels, near enough for digits and short words.
_CHARACTER_PIXELS: Final = 7
_MARGIN_PIXELS: Final = 10
# Colours with a contrast of at least 4.5 to white text.
_GREEN, _RED, _GREY = "#1a7f37", "#b3261e", "#5f6368"


def badge(report: CheckReport, *, strict: bool = False) -> str:
    """Return the badge as SVG."""
    text, colour = _message(report, strict=strict)
    return _svg(text, colour)


def _message(report: CheckReport, *, strict: bool) -> tuple[str, str]:
    if not report.could_test():
        return "not tested", _GREY
    judged = [one for one in report.results if one.verdict in (Verdict.PASS, Verdict.FAIL)]
    passed = sum(one.verdict is Verdict.PASS for one in judged)
    versions = " ".join(f"v{version}" for version in report.hellos)
    text = f"{versions} {passed}/{len(judged)}".strip()
    return text, _GREEN if report.conforms(strict=strict) else _RED


def _svg(text: str, colour: str) -> str:
    widths = [len(part) * _CHARACTER_PIXELS + _MARGIN_PIXELS for part in (_LABEL, text)]
    whole, name = sum(widths), escape(f"{_LABEL}: {text}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{name}">',
            f"<title>{name}</title>",
            f'<rect width="{whole}" height="20" rx="3" fill="#424242"/>',
            f'<rect x="{widths[0]}" width="{widths[1]}" height="20" rx="3" fill="{colour}"/>',
            f'<rect x="{widths[0]}" width="4" height="20" fill="{colour}"/>',
            '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
            *_texts(widths, (_LABEL, text)),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _texts(widths: Sequence[int], texts: Sequence[str]) -> list[str]:
    starts = (0, widths[0])
    centres = [start + width / 2 for start, width in zip(starts, widths, strict=True)]
    return [f'<text x="{at:g}" y="14">{escape(text)}</text>' for at, text in zip(centres, texts, strict=True)]
