"""What language servers see in files: `diagnostics`, and new errors behind the results of tools that edit."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.language_servers.problems import (
    EDIT_LINES,
    FileEdit,
    Problem,
    Seen,
    edit_report,
    problem_lines,
    tool_report,
)
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import only_known, schema
from dragoman.coder.tools.contract import BadInput, Preview, Tool, ToolContext, ToolOutcome
from dragoman.coder.tools.files import (
    Loaded,
    check_not_ours,
    check_unmoved,
    is_withheld,
    load,
    named_for_reading,
    place_of,
    reading,
)
from dragoman.coder.tools.result_text import title_text
from dragoman.host.text import visible_line
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.tools import Location

if TYPE_CHECKING:
    from dragoman.coder.language_servers.servers import LanguageServers

# Each is a question to every server of its language.
MOST_PATHS: Final = 20
_RAW_PROBLEMS: Final = 100


class Diagnostics:
    """`diagnostics(paths?)`."""

    name = "diagnostics"
    kind = "other"
    does: ActionKind = "read"
    description = (
        "Get the errors and warnings that language servers (type checkers, linters, compilers) see in files as they "
        "are now. The result of an edit names new errors by itself; use this for what was there before, and for a last "
        'look at all files that you have edited: without paths it is about those. Example: {"paths": ["src/app.py"]}'
    )
    schema = schema([], paths={"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_PATHS})

    def __init__(self, servers: "LanguageServers") -> None:
        self._servers = servers

    def check(self, call: JudgedCall) -> None:
        only_known(call, "paths")
        paths = _named(call)
        if len(paths) > MOST_PATHS:
            raise BadInput(f"diagnostics takes up to {MOST_PATHS} paths; {len(paths)} were given. Make several calls.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        paths = [place_of(path, context).path for path in self._paths(call)]
        for path in paths:
            check_not_ours(path, context)
        acts = [reading(path, context) for path in paths] or [Action("read", context.roots.real[0])]
        hidden = next((words for act in acts if (words := named_for_reading(act))), "")
        named = ", ".join(_named(call)) or "edited files"
        return Preview(
            title_text(f"Diagnostics of {named}{hidden}"), acts, locations=[Location(path) for path in paths]
        )

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        paths = self._paths(approved.call)
        seen = await asyncio.gather(*(self._look_at(path, approved, context) for path in paths))
        problems = [problem for one in seen if one is not None for problem in one.problems]
        lines = _remarks(paths, seen)
        if problems:
            text = tool_report(problems, context.roots.real[0]) + "\n".join(lines)
        else:
            text = "\n".join(lines) or "No problems."
        return ToolOutcome(text, raw={"problems": _raw(problems)})

    def _paths(self, call: JudgedCall) -> list[str]:
        """Return the paths that are meant; without any, those that were edited last."""
        return _named(call) or self._servers.edited_paths[-MOST_PATHS:]

    async def _look_at(self, path: str, approved: Approved, context: ToolContext) -> Seen | None:
        """Return what is seen in a file; None: it is not there. Raises `BadInput` for one that was named."""
        is_named = bool(_named(approved.call))
        try:
            place = place_of(path, context)
            check_unmoved(approved, place)
            file = await load(place, context)
        except BadInput:
            if is_named:
                raise
            return None
        if file.text is None and is_named:
            raise BadInput(f"{place.path}: no such file or directory.")
        return (
            await self._servers.look_at(place.path, file.text or "") if file.text is not None and file.whole else None
        )


def _named(call: JudgedCall) -> list[str]:
    """Return the paths that a call names; none where it names none. Raises `BadInput`."""
    paths = call.input.get("paths")
    if paths is None:
        return []
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise BadInput("diagnostics needs 'paths' as a list of texts, with at least one, or none at all.")
    return paths


def _remarks(paths: Sequence[str], seen: Sequence[Seen | None]) -> list[str]:
    """Return what is to be said beside the problems: files that nothing looks at, and servers that were late."""
    lines: list[str] = []
    without = [path for path, one in zip(paths, seen, strict=True) if one is not None and not one.names]
    if without:
        lines.append(f"No language server looks at {', '.join(map(visible_line, without))}.")
    late = dict.fromkeys(name for one in seen if one is not None for name in one.late)
    if late:
        lines.append(f"No answer yet from {', '.join(map(visible_line, late))}; call again in a while.")
    if not paths:
        lines.append("No file was edited yet that a language server looks at; name files in 'paths'.")
    return lines


def _raw(problems: Sequence[Problem]) -> list[dict[str, object]]:
    """Return problems for programs: clients get them with the call's raw output."""
    return [problem._asdict() for problem in problems[:_RAW_PROBLEMS]]


class Diagnosed:
    """A tool that edits files: the errors that an edit has brought stand behind its result."""

    def __init__(self, tool: Tool, servers: "Callable[[], LanguageServers | None]") -> None:
        """`servers` returns those of the session, as far as there are any."""
        self.name = tool.name
        self.kind = tool.kind
        self.does: ActionKind = tool.does
        self.description = tool.description
        self.schema: dict[str, Any] = tool.schema
        self._tool = tool
        self._servers = servers

    def check(self, call: JudgedCall) -> None:
        self._tool.check(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return await self._tool.preview(call, context)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        servers = self._servers()
        edited = [act.subject for act in approved.call.acts if act.kind == "edit"] if servers is not None else []
        paths = [path for path in edited if servers is not None and servers.is_for(path)]
        if servers is None or not paths:
            return await self._tool.run(approved, shown, context)
        before = {path: await _loaded(path, context) for path in paths}
        outcome = await self._tool.run(approved, shown, context)
        if outcome.failed:
            return outcome
        edits = [_edit(path, old, await _loaded(path, context)) for path, old in before.items() if old is not None]
        problems = await servers.check_edits(edits)
        if not problems:
            return outcome
        root = context.roots.real[0]
        # The user sees what the model is told: else it mends what nothing seems to be wrong with.
        await shown.add("\n".join(["New errors:", *problem_lines(problems, root, EDIT_LINES)]))
        report = edit_report(problems, root).rstrip("\n")
        raw = {**outcome.raw, "problems": _raw(problems)} if isinstance(outcome.raw, dict) else outcome.raw
        return outcome._replace(text=outcome.text + report, raw=raw)


async def _loaded(path: str, context: ToolContext) -> Loaded | None:
    """Return a file that is to be edited, or was; None: it is not one for a language server."""
    try:
        if is_withheld(path, context):
            return None
        file = await load(place_of(path, context), context)
    except BadInput:
        return None
    return file if file.whole else None


def _edit(path: str, old: Loaded, new: Loaded | None) -> FileEdit:
    return FileEdit(path, old.text, None if new is None else new.text)
