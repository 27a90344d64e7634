"""`list_files`, `glob` and `grep`: looking through the workspace without reading all of it."""

import asyncio
import os
from typing import Any, Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, flag_input, only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, OutOfReach, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import (
    check_not_ours,
    check_unmoved,
    is_out_of_reach,
    named_for_reading,
    ours_in,
    reading,
    user_home,
)
from dragoman.coder.tools.result_text import cut, title_text
from dragoman.errors import WorldError
from dragoman.host import search
from dragoman.host.decoding import decode_text, describe_binary
from dragoman.host.paths import PathRefused, Place, facts_of, read_bytes
from dragoman.host.ripgrep import find_ripgrep
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.tools import Location

_FOLDER: Final[dict[str, Any]] = {"type": "string", "description": "where to look; the working folder if left out"}
# An editor follows these; more of them is a flood.
_LOCATIONS: Final = 20


class ListFiles:
    """`list_files(path?)`."""

    name = "list_files"
    kind = "read"
    does: ActionKind = "read"
    description = (
        "List the names in one folder, folders with a slash behind them. Use it to see how a project is laid out; for "
        'a tree or a kind of file use glob. Example: {"path": "src"}'
    )
    schema = schema([], path=_FOLDER)

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path")
        _where(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return _preview(f"List {_where(call)}", call, context)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        try:
            listing = await search.list_files(_place(approved.call, context))
        except WorldError as error:
            raise BadInput(str(error)) from None
        marks = {"folder": "/", "link": "@"}
        lines = [entry.name + marks.get(entry.kind, "") for entry in listing.entries]
        return _outcome(lines, listing.cut, "The folder is empty.", {"entries": len(lines)})


class Glob:
    """`glob(pattern, path?)`."""

    name = "glob"
    kind = "search"
    does: ActionKind = "read"
    description = (
        "Find files by a pattern of their path, for questions such as which test files there are, or where "
        "is the configuration. `*` stays in a folder, `**` goes through folders, `{a,b}` is either. A pattern without "
        "a slash is looked for in every folder. What ignore files name is left out; long lists are cut. "
        'Examples: {"pattern": "src/**/*.py"}, {"pattern": "*.{ts,tsx}", "path": "web"}'
    )
    schema = schema(["pattern"], pattern={"type": "string"}, path=_FOLDER)

    def check(self, call: JudgedCall) -> None:
        only_known(call, "pattern", "path")
        text_input(call, "pattern")
        _where(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return _preview(f"Find {call.input['pattern']}", call, context)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        place = _place(approved.call, context)
        try:
            files = await search.glob(
                text_input(approved.call, "pattern"), place, ripgrep=_ripgrep(context), guardian=context.guardian
            )
        except WorldError as error:
            raise BadInput(str(error)) from None
        paths = [path for path in files.paths if not is_out_of_reach(context.roots.shown_path(path), context)]
        await _locate(shown, [Location(context.roots.shown_path(path)) for path in paths])
        lines = [_short(path, context) for path in paths]
        return _outcome(lines, files.cut, "No file has such a name.", {"files": len(lines)})


class Grep:
    """`grep(pattern, path?, glob?, case_insensitive?, max_results?)`."""

    name = "grep"
    kind = "search"
    does: ActionKind = "read"
    description = (
        "Find lines in files by a regular expression (the syntax of ripgrep), with their path and number. Use it "
        "first to find a name, a message or a call; give glob or path to search less. Escape what is special: "
        "`foo\\(`. Left out are what ignore files name, binary files, and files that hold credentials (.env, private "
        "keys): name one as the path to search it. Long lists are cut. "
        'Example: {"pattern": "def load_\\\\w+", "glob": "*.py"}'
    )
    schema = schema(
        ["pattern"],
        pattern={"type": "string", "description": "a regular expression"},
        path=_FOLDER,
        glob={"type": "string", "description": "only in files with such a path: `*.py`"},
        case_insensitive={"type": "boolean"},
        max_results={"type": "integer", "minimum": 1, "maximum": search.MOST_GREP_RESULTS},
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "pattern", "path", "glob", "case_insensitive", "max_results")
        text_input(call, "pattern")
        _where(call)
        if call.input.get("glob") is not None:
            text_input(call, "glob")
        flag_input(call, "case_insensitive")
        count_input(call, "max_results", 1)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return _preview(f"Search for {call.input['pattern']}", call, context, content=True)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        place = _place(call, context)
        check_unmoved(approved, Place(context.roots.shown_path(place.path), ()))
        most = count_input(call, "max_results", 1) or search.GREP_RESULTS
        await _check_text(place, context)
        try:
            found = await search.grep(
                text_input(call, "pattern"),
                place,
                glob=text_input(call, "glob") if call.input.get("glob") is not None else None,
                case_insensitive=flag_input(call, "case_insensitive"),
                max_results=min(most, search.MOST_GREP_RESULTS),
                # Left out before they are counted: else the count would tell what is in them.
                without=[
                    _there(path, place, context) for path in ours_in(context.roots.shown_path(place.path), context)
                ],
                credentials_of=None if approved.call.acts[0].guarded else _home_in(place, context),
                ripgrep=_ripgrep(context),
                guardian=context.guardian,
            )
        except WorldError as error:
            raise BadInput(str(error)) from None
        matches = [
            match for match in found.matches if not is_out_of_reach(context.roots.shown_path(match.path), context)
        ]
        await _locate(shown, [Location(context.roots.shown_path(match.path), match.line) for match in matches])
        lines = [f"{_short(match.path, context)}:{match.line}:{match.text}" for match in matches]
        return _outcome(lines, found.cut, "Nothing matches.", {"matches": len(lines)})


async def _check_text(place: Place, context: ToolContext) -> None:
    """Raise `BadInput` for a named file that is not searched: "nothing matches" would say that it was."""
    try:
        data, more = await asyncio.to_thread(read_bytes, place, search.BINARY_BYTES)
    except PathRefused:
        return  # a folder, or what the search itself complains about
    if search.is_searched(data):
        return
    path, decoded = context.roots.shown_path(place.path), decode_text(data, is_cut=more)
    if decoded is not None:
        raise BadInput(f"{path} is {decoded.encoding}, and grep searches UTF-8. Use read_file.")
    size = (await asyncio.to_thread(facts_of, place)).st_size
    raise BadInput(f"{path} is not text: {describe_binary(data, size)}.")


def _ripgrep(context: ToolContext) -> str | None:
    return find_ripgrep(context.environment.get("PATH", os.defpath), context.roots)


def _where(call: JudgedCall) -> str:
    return text_input(call, "path") if call.input.get("path") is not None else "."


def _place(call: JudgedCall, context: ToolContext) -> Place:
    try:
        place = context.roots.tree(_where(call))
    except WorldError as error:
        raise OutOfReach(str(error)) from None
    check_not_ours(context.roots.shown_path(place.path), context)
    return place


def _home_in(place: Place, context: ToolContext) -> str:
    """Return the user's home folder; where a copy of it is searched, its place there."""
    return _there(user_home(context), place, context)


def _there(path: str, place: Place, context: ToolContext) -> str:
    """Return a path; where a copy of it is searched, its place there."""
    shown_path = context.roots.shown_path(place.path)
    return place.path + path[len(shown_path) :] if shown_path != place.path and path.startswith(shown_path) else path


def _preview(title: str, call: JudgedCall, context: ToolContext, *, content: bool = False) -> Preview:
    """`content`: what is in the files is shown, and not their names alone."""
    path = context.roots.shown_path(_place(call, context).path)
    act = reading(path, context) if content else Action("read", path)
    where = f" in {_where(call)}{named_for_reading(act)}" if act.guarded else ""
    return Preview(title_text(title + where), [act], locations=[Location(path)])


async def _locate(shown: ToolCall, places: list[Location]) -> None:
    if places:
        await shown.update(locations=places[:_LOCATIONS])


def _short(path: str, context: ToolContext) -> str:
    """Return a path as the model may say it again: from the working folder where it lies in it."""
    here = context.roots.real[0].rstrip("/") + "/"
    return context.roots.shown_path(path).removeprefix(here)


def _outcome(lines: list[str], missing: str, nothing: str, raw: dict[str, object]) -> ToolOutcome:
    text = cut("\n".join(lines)) if lines else nothing
    return ToolOutcome(f"{text}\n[{missing}]" if missing else text, raw=raw)
