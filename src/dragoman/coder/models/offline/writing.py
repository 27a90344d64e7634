"""Changing files: made anew, added to, text replaced, names replaced."""

import re
from typing import Final

from dragoman.coder.models.contract import TextDelta
from dragoman.coder.models.offline.answers import hits, is_cut
from dragoman.coder.models.offline.edits import edit
from dragoman.coder.models.offline.explaining import Found, read_or_find
from dragoman.coder.models.offline.walk import Reach, Walk
from dragoman.coder.models.offline.wishes.intents import Append, Create, Rename, Replace, Where
from dragoman.coder.models.offline.wishes.names import literal

# Files changed by one request: each is a change the user may be asked about.
MOST_FILES: Final = 20
_MORE_FILES: Final = f"There are more files; I did the first {MOST_FILES}. Say it again for the next.\n"


def create(reach: Reach, wish: Create) -> Walk[None]:
    """A new file. One that is there stays, unless the user said to overwrite it."""
    reach.need("write_file")
    if not wish.overwrite:
        there = yield from _is_there(reach, wish.path)
        if there:
            yield TextDelta(f"`{wish.path}` exists already. To replace all of it, say: overwrite {wish.path} with …\n")
            return
    said = yield from reach.call("write_file", path=wish.path, content=wish.content)
    lines = len(wish.content.splitlines())
    done = f"Wrote `{wish.path}`, {'1 line' if lines == 1 else f'{lines} lines'}.\n"
    yield TextDelta(f"`{wish.path}` could not be written: {said.text}\n" if said.failed else done)


def _is_there(reach: Reach, path: str) -> Walk[bool]:
    """Return whether a file exists, by the listings of its folders: reading a file that is not there is a failure, and
    the user would see one before every new file."""
    *folders, name = reach.short(path).split("/")
    if reach.has("list_files") and not {"", ".", "..", "~"}.intersection((*folders, name)):
        for depth, inner in enumerate((*folders, name)):
            listed = yield from reach.call("list_files", path="/".join(folders[:depth]) or None)
            entries = listed.text.splitlines()
            if listed.failed or not {inner, f"{inner}/", f"{inner}@"}.intersection(entries):
                if listed.failed or (entries and entries[-1].startswith("[")):
                    break  # not all of it is listed
                return False
    said = yield from reach.call("read_file", path=path)
    return not said.failed


def append(reach: Reach, wish: Append) -> Walk[None]:
    """Add lines to a file, or begin it with them."""
    reach.need("write_file")
    said = yield from reach.call("read_file", path=wish.path)
    if said.failed and "no such file" not in said.text:
        yield TextDelta(f"I cannot read `{wish.path}`: {said.text}\n")
        return
    if is_cut(said.text):
        yield TextDelta(f"I cannot read all of `{wish.path}`, so I add nothing to it.\n")
        return
    before = "" if said.failed else said.text
    ending = "\r\n" if "\r\n" in before else "\n"
    text = wish.text.replace("\n", ending)
    between = "" if not before or before.endswith("\n") else ending
    content = text + before if wish.at_top else before + between + text
    said = yield from reach.call("write_file", path=wish.path, content=content)
    done = f"Added to {'the top' if wish.at_top else 'the end'} of `{wish.path}`: `{wish.text.strip()[:80]}`\n"
    yield TextDelta(f"`{wish.path}` could not be written: {said.text}\n" if said.failed else done)


def replace(reach: Reach, wish: Replace) -> Walk[None]:
    """Replace text: once, or wherever it is."""
    reach.need("edit_file")
    path = wish.where.path or (next(iter(reach.attached), "") if not wish.everything else "")
    if path:
        yield from _replace_in(reach, wish, path)
        return
    if not wish.everything:
        yield TextDelta(f"In which file? Say: replace {wish.old} with {wish.new} in FILE, or everywhere.\n")
        return
    files = yield from _files_with(reach, literal(wish.old), wish.where)
    for file in files[:MOST_FILES]:
        yield from _replace_in(reach, wish, file)
    yield TextDelta(_MORE_FILES if len(files) > MOST_FILES else "" if files else f"No file has `{wish.old}`.\n")


def _replace_in(reach: Reach, wish: Replace, path: str) -> Walk[None]:
    said = yield from reach.call(
        "edit_file",
        path=path,
        old_string=wish.old,
        new_string=wish.new,
        replace_all=True if wish.everything else None,
    )
    if not said.failed:
        yield TextDelta(f"`{reach.short(path)}`: replaced `{wish.old}` with `{wish.new}`.\n")
        return
    hint = ""
    if re.search(r"is \d+ times in", said.text):
        hint = f" To replace every one, say: replace all {wish.old} with {wish.new} in {path}"
    yield TextDelta(f"`{reach.short(path)}` is as it was: {said.text}{hint}\n")


def rename(reach: Reach, wish: Rename) -> Walk[None]:
    """Replace a name where it is a word of its own."""
    reach.need("edit_file")
    word = re.compile(rf"(?<![\w]){re.escape(wish.old)}(?!\w)")
    files = [wish.where.path] if wish.where.path else (yield from _files_with(reach, rf"\b{wish.old}\b", wish.where))
    for path in files[:MOST_FILES]:
        file = yield from read_or_find(reach, path)
        if file is not None:
            yield from _rename_in(reach, wish, word, file)
    yield TextDelta(_MORE_FILES if len(files) > MOST_FILES else "" if files else f"No file has `{wish.old}`.\n")


def _rename_in(reach: Reach, wish: Rename, word: re.Pattern[str], file: Found) -> Walk[None]:
    after, count = word.subn(lambda match: wish.new, file.text)
    if not count:
        yield TextDelta(f"`{wish.old}` is not in `{file.path}`.\n")
        return
    if is_cut(file.text):
        yield TextDelta(f"I cannot read all of `{file.path}`, so I change nothing in it.\n")
        return
    if count == file.text.count(wish.old):
        said = yield from reach.call(
            "edit_file", path=file.path, old_string=wish.old, new_string=wish.new, replace_all=True
        )
    else:
        # The name is part of longer words, too: those stay.
        change = edit(file.text, after)
        said = yield from reach.call("edit_file", path=file.path, old_string=change.old, new_string=change.new)
    times = "once" if count == 1 else f"{count} times"
    done = f"`{file.path}`: `{wish.old}` is `{wish.new}` now, {times}.\n"
    yield TextDelta(f"`{file.path}` is as it was: {said.text}\n" if said.failed else done)


def _files_with(reach: Reach, pattern: str, where: Where) -> Walk[list[str]]:
    said = yield from reach.call("grep", pattern=pattern, path=where.path or None, glob=where.glob or None)
    found = [] if said.failed else [reach.short(hit.path) for hit in hits(said.text)]
    return list(dict.fromkeys(found))
