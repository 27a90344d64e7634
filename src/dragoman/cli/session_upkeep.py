"""Keep stored sessions in order: give them titles, put them away, delete the old ones."""

import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from dragoman.cli.errors import CommandError
from dragoman.cli.session_actions import SessionTask, delete_all, resolved, session_json, sessions_of
from dragoman.cli.session_search import is_empty
from dragoman.cli.session_table import summary
from dragoman.cli.text_width import harmless_line
from dragoman.store.contract import Store

# Of a title that a person writes.
TITLE_CHARACTERS: Final = 200
# In microseconds.
_DAY: Final = 86_400_000_000


async def _rename(task: SessionTask) -> int:
    store, session_id = await resolved(task, task.arguments.id)
    title = harmless_line(task.arguments.title).strip()[:TITLE_CHARACTERS]
    if not title:
        raise CommandError("a title has at least one character")
    meta = await store.change(session_id, title=title)
    if task.arguments.json:
        task.output.line(session_json(meta))
    else:
        task.output.write(f"{await summary(store, session_id)}\n")
    return 0


async def _archive(task: SessionTask) -> int:
    found = list(dict.fromkeys([await resolved(task, given) for given in task.arguments.ids]))
    for store, session_id in found:
        await store.change(session_id, archived=not task.arguments.undo)
        if not task.arguments.json:
            task.output.write(f"{await summary(store, session_id)}\n")
    if task.arguments.json:
        what = "unarchived" if task.arguments.undo else "archived"
        task.output.line(msgspec.json.encode({what: [session_id for _, session_id in found]}))
    return 0


async def _prune(task: SessionTask) -> int:
    arguments = task.arguments
    arguments.all = True
    found: list[tuple[Store, str]] = []
    before = None if arguments.older_than is None else time.time_ns() // 1000 - arguments.older_than * _DAY
    for number, (store, meta) in enumerate(sessions := await sessions_of(task)):
        task.progress.at("Looking for sessions to delete", number, len(sessions))
        if arguments.archived and not meta.archived:
            continue
        if (before is not None and meta.activity < before) or (arguments.empty and await is_empty(store, meta.id)):
            found.append((store, meta.id))
    if not found:
        task.progress.hide()
        print("No session is like that.", file=sys.stderr)
        if arguments.json:
            task.output.line(msgspec.json.encode({"deleted": []}))
        return 0
    return await delete_all(task, found)


ACTIONS: Final[Mapping[str, Callable[[SessionTask], Awaitable[int]]]] = {
    "rename": _rename,
    "archive": _archive,
    "prune": _prune,
}
