"""What `dragoman sessions` does, an action each."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from dragoman.agent.session import new_session_id
from dragoman.cli.decisions import decisions_of
from dragoman.cli.errors import CommandError, can_ask_user, discard_typed_input, print_error
from dragoman.cli.find_session import find_in, find_session
from dragoman.cli.home import data_folder, open_database, open_recordings, open_store
from dragoman.cli.output import Output
from dragoman.cli.progress import Progress
from dragoman.cli.session_table import SessionTable, heading, markdown_heading, summary
from dragoman.cli.text_width import harmless_line
from dragoman.cli.transcript import Part, TranscriptText, as_markdown, as_text, decision_text, parts
from dragoman.cli.used_totals import UsedTotals
from dragoman.coder.decision_log import DECISION
from dragoman.coder.worktree_folders import marked
from dragoman.dialects.event_json import info_json, update_json
from dragoman.store.contract import ArchiveFilter, Record, SessionMeta, Store, StoreFailed
from dragoman.store.entries import NoteEntry, events_of
from dragoman.store.log_places import MessageTakenOut, counting, end_of_counted_message
from dragoman.store.recording import recorded_agent
from dragoman.store.session_list import info_of

# Sessions named in the question whether to delete them.
_NAMED: Final = 5
# In `_meta` of a listed session: the agent whose session was recorded.
AGENT: Final = "dragoman/agent"
# The kind of line that a decision is in an export; updates of the protocol have no such name.
_DECISION_LINE: Final = "_dragoman/decision"


async def perform(arguments: argparse.Namespace) -> int:
    """Do what the command line says; the exit code. `CommandError` and `StoreFailed` are for the user."""
    async with Progress() as progress, _open(progress, arguments) as (store, recordings):
        target = getattr(arguments, "output", None)
        try:
            with Output(None if target == "-" else target, progress) as output:
                return await _ACTIONS[arguments.action](SessionTask(arguments, store, recordings, output, progress))
        except BrokenPipeError:
            raise  # the reader of stdout has closed its pipe; `main` ends quietly
        except OSError as error:
            raise CommandError(f"{target or 'stdout'}: cannot write there: {error.strerror}") from None


@asynccontextmanager
async def _open(progress: Progress, arguments: argparse.Namespace) -> AsyncIterator[tuple[Store, Store | None]]:
    url = getattr(arguments, "store", None)
    store = (
        open_store(lambda done, total: progress.at("Making the list of sessions", done, total))
        if url is None
        else open_database(url)
    )
    recordings = open_recordings() if url is None else None
    try:
        yield store, recordings
    finally:
        progress.stop()  # or an interrupted user would wait for the list
        await store.close()
        if recordings is not None:
            await recordings.close()


class SessionTask(NamedTuple):
    """What an action needs: the sessions of our own agent are in `store`; a database has no recordings beside them."""

    arguments: argparse.Namespace
    store: Store
    recordings: Store | None
    output: Output
    progress: Progress


async def resolved(task: SessionTask, given: str) -> tuple[Store, str]:
    """Return the session that is meant, of our own agent or recorded of another: where it is stored, and its id."""
    stores = (task.store,) if task.recordings is None else (task.store, task.recordings)
    return await find_in(stores, given, ".")


# -- list ------------------------------------------------------------------------------------------------------------


async def _list(task: SessionTask) -> int:
    arguments, store, recordings, output, progress = task
    if arguments.cwd is not None:
        arguments.cwd = os.path.abspath(os.path.expanduser(arguments.cwd))
    related = await _worktrees(arguments.cwd)
    own, recorded = await store.ids(), [] if recordings is None else await recordings.ids()
    names = sorted([*own, *recorded])
    sessions = _newest_first(
        _sessions(arguments, related, store, progress, len(own)),
        _sessions(arguments, related, recordings, progress, len(recorded)),
        arguments.limit or len(names),
    )
    if arguments.json:
        await output.array(session_json(meta) async for meta in sessions)
        return 0
    table = SessionTable(names, columns=output.columns)
    count = 0
    async for meta in sessions:
        output.write(table.row(meta))
        count += 1
    if not count:
        progress.hide()
        print(_nothing_there(arguments.cwd), file=sys.stderr)
    return 0


async def _newest_first(
    some: AsyncIterator[SessionMeta], others: AsyncIterator[SessionMeta], limit: int
) -> AsyncIterator[SessionMeta]:
    """Merge two lists that are each sorted so."""
    one, other = await anext(some, None), await anext(others, None)
    for _ in range(limit):
        if one is not None and (other is None or one.activity >= other.activity):
            yield one
            one = await anext(some, None)
        elif other is not None:
            yield other
            other = await anext(others, None)
        else:
            return


def session_json(meta: SessionMeta) -> bytes:
    """Return a session as lists and `--json` have it."""
    info, agent = marked(info_of(meta)), recorded_agent(meta.id)
    if agent:
        info = replace(info, meta={**(info.meta or {}), AGENT: agent})
    return info_json(info)


def _nothing_there(cwd: str | None) -> str:
    """Sessions may outlive their folder; where there are none, a folder that is none is a slip of the pen."""
    if cwd is None:
        return "No sessions yet; `dragoman chat` begins one."
    return f"No sessions of {harmless_line(cwd)}{'' if os.path.isdir(cwd) else ': there is no such folder'}."


async def _worktrees(cwd: str | None) -> Sequence[str]:
    """Return the folders of worktrees that were made for sessions of a folder."""
    if cwd is None:
        return ()
    from dragoman.host.worktrees import folders_for

    return await asyncio.to_thread(folders_for, cwd)


async def _sessions(
    arguments: argparse.Namespace, related: Sequence[str], store: Store | None, progress: Progress, total: int
) -> AsyncIterator[SessionMeta]:
    left = min(arguments.limit or total, total)  # where nothing is kept, no list is asked for and none is made
    done = 0
    cursor = None
    while left > 0 and store is not None:
        archived: ArchiveFilter = "include" if arguments.all else "exclude"
        page = await store.list(cwd=arguments.cwd, related=related, cursor=cursor, archived=archived)
        for meta in page.sessions[:left]:
            yield meta
        done += len(page.sessions)
        left -= len(page.sessions)
        cursor = page.cursor
        if cursor is None:
            return
        progress.at("Reading the list", done, done + left)


# -- show and export -------------------------------------------------------------------------------------------------


async def _show(task: SessionTask) -> int:
    store, session_id = await resolved(task, task.arguments.id)
    log = counting(lambda: _log(task, store, session_id))
    if task.arguments.json:
        await task.output.array(_updates(log))
        return 0
    coloured = task.output.coloured
    task.output.write(heading(await store.read_meta(session_id), coloured=coloured))
    used = UsedTotals(is_recorded=store is task.recordings)
    async for part in parts(used.read(log)):
        task.output.write(as_text(part, full=task.arguments.full, coloured=coloured))
    if used.text:
        task.output.write(f"{used.text}\n")
    return 0


async def _export(task: SessionTask) -> int:
    store, session_id = await resolved(task, task.arguments.id)
    log = _log(task, store, session_id)
    if task.arguments.format == "markdown":
        log = counting(lambda: _log(task, store, session_id))
        task.output.write(markdown_heading(await store.read_meta(session_id)))
        used = UsedTotals(is_recorded=store is task.recordings)
        async for part in parts(used.read(log)):
            task.output.write(as_markdown(part))
        if used.text:
            task.output.write(f"*{used.text}*\n\n")
        decisions = [decision_text(value) async for value in _decisions(_log(task, store, session_id))]
        if decisions:
            task.output.write(
                as_markdown(Part("Permission decisions", [TranscriptText("output", "\n".join(decisions))]))
            )
    else:
        async for line in _lines(log):
            task.output.line(line)
    return 0


async def _audit(task: SessionTask) -> int:
    try:
        session_id = await find_session(task.store, task.arguments.id, ".")
    except CommandError:
        given = task.arguments.id  # a session of another agent; behind a gateway its id begins as those of ours do
        found = (decisions_of(given) or decisions_of(f"sess_{given}")) if given else {}
        if len(found) != 1:
            raise
        for line in next(iter(found.values())):
            task.output.line(line)
        return 0
    async for value in _decisions(_log(task, task.store, session_id)):
        task.output.line(msgspec.json.encode(value))
    return 0


async def _decisions(log: AsyncIterator[Sequence[Record]]) -> AsyncIterator[Mapping[str, object]]:
    async for records in log:
        for record in records:
            if (value := _decision(record)) is not None:
                yield value


def _decision(record: Record) -> Mapping[str, object] | None:
    match record.entry:
        case NoteEntry(kind=kind, value=dict() as value) if kind == DECISION:
            return value
    return None


async def _log(task: SessionTask, store: Store, session_id: str) -> AsyncIterator[Sequence[Record]]:
    total = await store.length(session_id)
    async for records in store.read(session_id):
        yield records
        task.progress.at("Reading the log", records[-1].sequence, total)


async def _lines(log: AsyncIterator[Sequence[Record]]) -> AsyncIterator[bytes]:
    """Yield the events, with the decisions about tool calls in their places."""
    async for records in log:
        for record in records:
            if (decision := _decision(record)) is not None:
                yield msgspec.json.encode({"sessionUpdate": _DECISION_LINE, **decision})
            for event in events_of([record.entry]):
                if (update := update_json(event)) is not None:
                    yield update


async def _updates(log: AsyncIterator[Sequence[Record]]) -> AsyncIterator[bytes]:
    async for records in log:
        for event in events_of([record.entry for record in records]):
            update = update_json(event)
            if update is not None:
                yield update


# -- fork and delete -------------------------------------------------------------------------------------------------


async def _fork(task: SessionTask) -> int:
    store, source = await resolved(task, task.arguments.id)
    if store is task.recordings:
        raise CommandError(
            f"{source} is a session of another agent, which only that agent can fork; "
            f"`dragoman sessions continue {source} --agent NAME` goes on with it elsewhere"
        )
    meta = await task.store.read_meta(source)
    last = None
    if (at := task.arguments.at) is not None:
        try:
            last = await end_of_counted_message(lambda: _log(task, store, source), at)
        except MessageTakenOut:
            raise CommandError(
                f"a rewind has taken message {at} out of the session; "
                f"`dragoman sessions rewind {source} --undo` brings it back, if nothing was asked since"
            ) from None
        if last is None:
            raise CommandError(
                f"the session has no message {at!r}; `dragoman sessions export {source}` shows the ids of messages"
            )
    task.progress.at("Copying the session", 0, 0)
    log = await task.store.fork(source, meta._replace(id=new_session_id(), created=0, archived=False), last)
    copy = log.meta
    await log.release()
    if task.arguments.json:
        task.output.line(session_json(copy))
    else:
        task.output.write(f"{copy.id}\n")
    return 0


async def _delete(task: SessionTask) -> int:
    # All of them first: a mistake in the last must not cost the first.
    return await delete_all(task, list(dict.fromkeys([await resolved(task, given) for given in task.arguments.ids])))


async def delete_all(task: SessionTask, found: Sequence[tuple[Store, str]]) -> int:
    """Delete sessions, after a question unless `--yes` was given; return the exit code."""
    if not task.arguments.yes:
        if not can_ask_user():
            sentence = "nothing was deleted: there is no terminal to ask at; add --yes to delete without a question"
            return print_error(sentence)
        if not await _is_confirmed(task, found):
            return print_error("nothing was deleted", 1)
    from dragoman.coder.checkpoints.cleaning import forget_session

    deleted_ids: list[str] = []
    code = 0
    for number, (store, session_id) in enumerate(found):
        task.progress.at("Deleting", number, len(found))
        what = await summary(store, session_id)
        try:
            if await store.delete(session_id):
                await asyncio.to_thread(forget_session, data_folder(), session_id)
                deleted_ids.append(session_id)
                if not task.arguments.json:
                    task.output.write(f"deleted {what}\n")
        except StoreFailed as failure:
            task.progress.hide()
            code = print_error(f"{session_id} was not deleted: {failure}", 1)
    if task.arguments.json:
        task.output.line(msgspec.json.encode({"deleted": deleted_ids}))
    return code


async def _is_confirmed(task: SessionTask, found: Sequence[tuple[Store, str]]) -> bool:
    task.progress.hide()
    for store, session_id in found[:_NAMED]:
        print(f"  {await summary(store, session_id)}", file=sys.stderr)
    if len(found) > _NAMED:
        print(f"  and {len(found) - _NAMED:,} more", file=sys.stderr)
    what = "this session" if len(found) == 1 else f"these {len(found):,} sessions"
    discard_typed_input()
    print(f"Delete {what} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = await read_line()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")


async def read_line() -> str:
    """Return a line from the terminal. Waits in the loop, so that Ctrl-C ends the wait."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


async def _rewind(task: SessionTask) -> int:
    from dragoman.cli.session_rewind import rewind

    store, session_id = await resolved(task, task.arguments.id)
    if store is task.recordings:
        raise CommandError(f"{session_id} is a session of another agent, which has no checkpoints")
    return await rewind(store, session_id, task.arguments, task.output, task.progress)


async def _finish(task: SessionTask) -> int:
    from dragoman.cli.worktrees import finish, worktree_meant

    worktree = await worktree_meant(task.store, task.arguments.id)
    task.progress.hide()
    return await finish(worktree, task.arguments)


async def _search(task: SessionTask) -> int:
    from dragoman.cli.session_search import search

    return await search(task, await sessions_of(task))


async def _stats(task: SessionTask) -> int:
    from dragoman.cli.session_stats import stats

    task.arguments.all = True
    return await stats(task, await sessions_of(task))


async def _upkeep(task: SessionTask) -> int:
    from dragoman.cli.session_upkeep import ACTIONS

    return await ACTIONS[task.arguments.action](task)


async def sessions_of(task: SessionTask) -> list[tuple[Store, SessionMeta]]:
    """Return the sessions that the command line means, the newest first, each with the store that has it."""
    arguments = task.arguments
    if arguments.cwd is not None:
        arguments.cwd = os.path.abspath(os.path.expanduser(arguments.cwd))
    listing = argparse.Namespace(cwd=arguments.cwd, all=arguments.all, limit=None)
    related = await _worktrees(arguments.cwd)
    found: list[tuple[Store, SessionMeta]] = []
    for store in (task.store, task.recordings):
        if store is not None:
            total = len(await store.ids())
            found += [(store, meta) async for meta in _sessions(listing, related, store, task.progress, total)]
    return sorted(found, key=lambda one: one[1].activity, reverse=True)


_ACTIONS: Final[dict[str, Callable[[SessionTask], Awaitable[int]]]] = {
    "list": _list,
    "show": _show,
    "export": _export,
    "audit": _audit,
    "fork": _fork,
    "rewind": _rewind,
    "delete": _delete,
    "finish": _finish,
    "search": _search,
    "stats": _stats,
    "rename": _upkeep,
    "archive": _upkeep,
    "prune": _upkeep,
}
