"""Reading a file where it is, or where it turns out to be; and saying what is in it."""

from typing import NamedTuple

from dragoman.coder.models.contract import TextDelta
from dragoman.coder.models.offline.answers import entries, fenced, hits, paths
from dragoman.coder.models.offline.outline import describe, outline
from dragoman.coder.models.offline.source import Source, definitions, parsed
from dragoman.coder.models.offline.walk import Reach, Walk
from dragoman.coder.models.offline.wishes.intents import Explain
from dragoman.coder.models.offline.wishes.makers import definition
from dragoman.coder.models.offline.wishes.names import is_path, is_url

# Lines shown of something that is not Python.
_AROUND = 15


class Found(NamedTuple):
    """A file that was read."""

    path: str
    text: str


def read_or_find(reach: Reach, path: str, start: int | None = None, end: int | None = None) -> Walk[Found | None]:
    """A file's text: from what was attached, by its path, or by its name anywhere below. None: it was told why not."""
    attached = reach.attached.get(path)
    if attached is not None:
        lines = attached.splitlines(keepends=True)
        return Found(reach.short(path), "".join(lines[(start or 1) - 1 : end]))
    if is_url(path):
        said = yield from reach.call("web_fetch", url=path)
    else:
        said = yield from reach.call("read_file", path=path, start_line=start, end_line=end)
    if not said.failed:
        return Found(reach.short(path), said.text)
    if "/" in path.strip("/") or not reach.has("glob") or is_url(path) or "no such file" not in said.text:
        yield TextDelta(f"I cannot read `{path}`: {said.text}\n")
        return None
    pattern = f"**/{path}"
    looked = yield from reach.call("glob", pattern=pattern)
    found = [] if looked.failed else [reach.short(each) for each in paths(looked.text, pattern)]
    if len(found) != 1:
        several = "There are several: " + ", ".join(f"`{each}`" for each in found[:10])
        yield TextDelta(
            f"{several}. Which one?\n" if found else f"There is no file `{path}`, here or in a folder below.\n"
        )
        return None
    said = yield from reach.call("read_file", path=found[0], start_line=start, end_line=end)
    if said.failed:
        yield TextDelta(f"I cannot read `{found[0]}`: {said.text}\n")
        return None
    return Found(found[0], said.text)


def explain(reach: Reach, wish: Explain) -> Walk[None]:
    """A project, a file, or a name."""
    if not wish.subject:
        yield from _project(reach)
    elif wish.subject in reach.attached or is_path(wish.subject):
        found = yield from read_or_find(reach, wish.subject)
        if found is not None:
            yield TextDelta(outline(found.path, found.text))
    else:
        yield from _name(reach, wish)


def _project(reach: Reach) -> Walk[None]:
    said = yield from reach.call("list_files")
    names = [] if said.failed else entries(said.text)
    yield TextDelta(
        f"The working folder has {', '.join(f'`{name}`' for name in names[:40])}.\n" if names else "It is empty.\n"
    )
    readme = next((name for name in names if name.lower().startswith("readme")), None)
    if readme is not None:
        text = yield from reach.call("read_file", path=readme)
        if not text.failed:
            yield TextDelta(f"\n{outline(readme, text.text)}")


def _name(reach: Reach, wish: Explain) -> Walk[None]:
    name = wish.subject.removesuffix("()").rpartition(".")[2].rpartition(":")[2]
    path = wish.path
    line = 0
    if not path:
        said = yield from reach.call("grep", pattern=definition(name))
        found = [] if said.failed else hits(said.text)
        if not found:
            yield TextDelta(f"I found nothing that defines `{name}`.\n")
            return
        path, line = found[0].path, found[0].line
        if len(found) > 1:
            others = ", ".join(f"`{reach.short(hit.path)}:{hit.line}`" for hit in found[1:6])
            yield TextDelta(f"`{name}` is defined {len(found)} times; I take the first. The others: {others}.\n\n")
    file = yield from read_or_find(reach, path)
    if file is not None:
        yield TextDelta(_described(name, file, line))


def _described(name: str, file: Found, line: int) -> str:
    tree = parsed(file.text) if file.path.endswith((".py", ".pyi")) else None
    for node in definitions(tree) if tree is not None else ():
        if node.name == name:
            source = Source(file.text)
            shown = fenced(source.cut(*source.line_span(node)), "python") if len(source.of(node)) < 4000 else ""
            return f"`{file.path}`, line {node.lineno}. {describe(node)}\n{shown}"
    lines = file.text.splitlines()
    if not line:
        line = next((number for number, text in enumerate(lines, 1) if name in text), 0)
    if not line:
        return f"`{name}` is not in `{file.path}`.\n"
    return f"`{file.path}`, line {line}:\n\n{fenced(chr(10).join(lines[line - 1 : line - 1 + _AROUND]))}"
