"""Render a Jupyter notebook as text: its cells in order, with their outputs cut. Pure.

A notebook is JSON, most of which is not for reading: pictures in base64, styles, counts. What is shown is the source of
each cell and the text of its outputs; what is not text is named.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

# Of one output. Tables and tracebacks fit; a training log does not, and its end says how it went.
_OUTPUT_CHARACTERS: Final = 2_000
_MOST_CELLS: Final = 2_000


def render_notebook(text: str) -> str | None:
    """Return the cells of a notebook as text; None: it is none, or damaged, and is to be read as it is."""
    try:
        notebook = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None
    shown = [_cell(number, cell) for number, cell in enumerate(cells[:_MOST_CELLS], 1)]
    if len(cells) > _MOST_CELLS:
        shown.append(f"[{len(cells) - _MOST_CELLS} more cells]")
    return "\n\n".join(shown) if shown else "[the notebook has no cells]"


def _cell(number: int, cell: dict[str, Any]) -> str:
    kind = cell.get("cell_type")
    parts = [f"[cell {number}, {kind if isinstance(kind, str) else 'of no kind'}]", _text(cell.get("source"))]
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        parts += [f"[output]\n{_cut(text)}" for output in outputs for text in _output(output) if text.strip()]
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _output(output: object) -> Iterator[str]:
    """Yield the texts of one output; what is no text is named."""
    if not isinstance(output, dict):
        return
    yield _text(output.get("text"))
    traceback = output.get("traceback")
    if isinstance(traceback, list):
        yield "\n".join(line for line in traceback if isinstance(line, str))
    data = output.get("data")
    if isinstance(data, dict):
        yield _text(data.get("text/plain"))
        others = [kind for kind in data if isinstance(kind, str) and not kind.startswith("text/")]
        yield "".join(f"[{kind}]" for kind in others)


def _text(source: object) -> str:
    """Return a text that a notebook has whole or as a list of lines."""
    if isinstance(source, str):
        return source
    return "".join(line for line in source if isinstance(line, str)) if isinstance(source, list) else ""


def _cut(text: str) -> str:
    half = _OUTPUT_CHARACTERS // 2
    if len(text) <= _OUTPUT_CHARACTERS:
        return text
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"
