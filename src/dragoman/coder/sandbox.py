"""Mode `sandbox`: everything happens in a view of the workspace, and at the end of the turn there is one question.

The model has `sandbox_*` tools and none of the plain ones. The view is opened with the first of them and thrown away
with the turn; what the user agrees to is brought to the workspace, all of it or nothing.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman.agent.permission import YES_OR_NO
from dragoman.agent.session import Session
from dragoman.agent.tool import ToolCall
from dragoman.coder.changes import Changes
from dragoman.coder.modes import Act, ActKind
from dragoman.coder.permissions import Approved, Call
from dragoman.coder.rigs import Above, ViewRoots
from dragoman.coder.tools.contract import BadInput, Desk, Outcome, Preview, Tool
from dragoman.errors import WorldError
from dragoman.host.own_folder import OwnFolder
from dragoman.host.paths import Roots
from dragoman.host.sandbox import probe
from dragoman.host.view import Change, View, ViewRefused
from dragoman.host.views import open_view
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Location, ToolContent, UnknownChange

PREFIX: Final = "sandbox_"
# Beside the tool calls of the model there is one of ours at the end, which carries the question.
APPLY: Final = "apply_changes"
# What a question shows; what is larger is named.
SHOWN_CHANGES: Final = 200


class Sandbox:
    """The view of one turn."""

    def __init__(self, session: Session, roots: Callable[[], Roots], home: str, environment: Mapping[str, str]) -> None:
        self._session = session
        self._roots = roots
        self._home = home
        self._environment = environment
        self._opening: asyncio.Future[_Opened] | None = None
        self._leaving: set[asyncio.Future[None]] = set()

    async def view(self) -> View:
        """The view, opened now if it is not open; `WorldError` if there can be none here."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        return (await asyncio.shield(self._opening)).view

    async def desk(self, desk: Desk) -> Desk:
        """A desk that stands in the view."""
        view = await self.view()
        roots = ViewRoots(view, self._roots())
        rig = Above(view, roots, self._environment, self._home)
        return desk._replace(roots=roots, changes=Changes(), rig=rig)

    async def settle(self) -> None:
        """The end of the turn: ask about what has changed, bring it home or not, and throw the view away."""
        if self._opening is None:
            return
        try:
            view = await self.view()
            changes = await asyncio.to_thread(view.changes)
            if changes:
                await self._ask(view, changes)
        except WorldError as error:
            await self._session.notice(f"The changes of the sandbox are lost: {error}", severity="error")
        finally:
            self.leave()
            await self.left()

    def leave(self) -> None:
        """Throw the view away, and wait for nothing: it may be large, or still on its way."""
        opening, self._opening = self._opening, None
        if opening is not None:
            leaving = asyncio.ensure_future(_discard(opening))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def left(self) -> None:
        """Nothing is left of any view."""
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _open(self) -> "_Opened":
        if probe().bubblewrap is None:
            raise ViewRefused(f"Mode sandbox is not possible on this machine. {' '.join(probe().lacks)}")
        roots = self._roots()
        _ = roots.folder  # refused where a link stands in the place of a root
        folder = OwnFolder(os.path.join(self._home, "views"))
        try:
            return _Opened(open_view(roots.real, folder=folder.path), folder)
        except BaseException:
            folder.remove()
            raise

    async def _ask(self, view: View, changes: Sequence[Change]) -> None:
        count = f"{len(changes)} change{'s' if len(changes) != 1 else ''}"
        shown = self._session.tool(
            f"Apply {count} to the workspace",
            kind="edit",
            name=APPLY,
            status="pending",
            content=_shown(changes),
            locations=[Location(change.path) for change in changes[:SHOWN_CHANGES]],
        )
        async with shown:
            options = [option for option in YES_OR_NO if not option.kind.endswith("_always")]
            if not await self._session.ask_permission(shown.title, tool=shown, options=options):
                await shown.add("Not applied; the workspace is as it was.")
                await shown.end("failed")
                return
            await shown.start()
            conflicts = await asyncio.to_thread(view.apply, changes)
            for conflict in conflicts:
                await shown.add(f"{conflict.path}: {conflict.reason}")
            applied = {"applied": 0 if conflicts else len(changes)}
            await shown.end("failed" if conflicts else "completed", raw_output=applied)


class _Opened(NamedTuple):
    """A view, and where it lies."""

    view: View
    folder: OwnFolder


async def _discard(opening: "asyncio.Future[_Opened]") -> None:
    try:
        opened = await opening
    except WorldError:
        return

    def discard() -> None:
        opened.view.close()
        opened.folder.remove()

    await asyncio.to_thread(discard)


class Sandboxed:
    """A tool that works in the view."""

    does: ActKind = "sandboxed"

    def __init__(self, tool: Tool, sandbox: Sandbox) -> None:
        self.name = PREFIX + tool.name
        self.kind = tool.kind
        self.description = f"{tool.description} In the sandbox: it changes nothing until the user agrees at the end."
        self.schema: dict[str, Any] = tool.schema
        self._tool = tool
        self._sandbox = sandbox

    def check(self, call: Call) -> None:
        self._tool.check(call)

    async def preview(self, call: Call, desk: Desk) -> Preview:
        seen = await self._tool.preview(call, await self._desk(desk))
        hopeless = next((act.hopeless for act in seen.acts if act.hopeless), "")
        acts = [Act("sandboxed", act.subject, hopeless=hopeless) for act in seen.acts]
        return seen._replace(acts=acts)

    async def run(self, approved: Approved, shown: ToolCall, desk: Desk) -> Outcome:
        return await self._tool.run(approved, shown, await self._desk(desk))

    async def _desk(self, desk: Desk) -> Desk:
        try:
            return await self._sandbox.desk(desk)
        except WorldError as error:
            raise BadInput(str(error)) from None


def _shown(changes: Sequence[Change]) -> list[ToolContent]:
    """The change as one diff; what is no text, or too large, is named beside it."""
    files: list[FileChange | UnknownChange] = []
    named: list[str] = []
    for change in changes[:SHOWN_CHANGES]:
        old, new = _text(change.old), _text(change.new)
        if change.what == "file" and change.kind == "deleted" and old is not None:
            files.append(FileChange("delete", change.path, old_text=old))
        elif change.what == "file" and change.kind != "mode" and new is not None:
            files += Diff.of(change.path, old, new).changes
        else:
            named.append(f"{change.kind}: {change.path} ({change.what})")
    if len(changes) > SHOWN_CHANGES:
        named.append(f"… and {len(changes) - SHOWN_CHANGES} more")
    shown: list[ToolContent] = [Diff(files)] if files else []
    return [*shown, *([ContentItem(Text("\n".join(named)))] if named else [])]


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
