"""Notes of a project for agents: `AGENTS.md`, and where a folder has none, its `CLAUDE.md` and `GEMINI.md`.

They are instructions for how work is done in the project. They never change a permission: what a call may do is judged
without them. They come from the user's own folder of settings, from the repository's root down to the working folder,
from the other roots, and from a deeper folder once a file in it was touched.

`@path` in a note stands for another file: it is read too, after the note, if it lies in the workspace. Links are
resolved before a file is read, and a file that holds credentials is not read: nothing here asks the user.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.host.decoding import decode_text
from dragoman.host.paths import PathRefused, Place, Roots, read_bytes
from dragoman.host.text import visible_line

# All notes of a session together: more is a manual, and the model can read that with a tool.
NOTES_BYTES: Final = 64 * 1024
# Imports of imports.
IMPORT_DEPTH: Final = 5
IMPORTS: Final = 50
AGENTS: Final = "AGENTS.md"
# What other agents call theirs.
_OTHERS: Final = ("CLAUDE.md", "GEMINI.md")
# From the working folder up to the repository's root; a deeper one is no project.
_MOST_FOLDERS: Final = 40
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\]|\\ )+)")

IsWithheld = Callable[[str], bool]


class ProjectNote(NamedTuple):
    """One file of notes by its real path, as the model is shown it. `is_cut`: there was more than `NOTES_BYTES`."""

    path: str
    text: str
    is_cut: bool = False


class NoteReader:
    """Reads notes for one session, each file once, up to `NOTES_BYTES` of all."""

    def __init__(self, roots: Roots, is_withheld: IsWithheld, *, room: int = NOTES_BYTES) -> None:
        self._roots = roots
        self._is_withheld = is_withheld
        self.room = room
        self._read: set[str] = set()

    def of_workspace(self, *, above: bool) -> list[ProjectNote]:
        """Return the notes from the repository's root to the working folder, and of the other roots. Blocks.

        `above`: folders above the roots count as well, as far as the repository goes. An identity that is kept in its
        folders is not shown what lies above them.
        """
        notes: list[ProjectNote] = []
        for folder in self._above() if above else ():
            # Its own folder for the note alone: what it imports lies in the workspace, like what others import.
            notes += self._in_folder(Roots([folder]), folder, self._roots)
        for root in self._roots.real:
            notes += self._in_folder(self._roots, root, self._roots)
        return notes

    def of_folders(self, folders: Sequence[str]) -> list[ProjectNote]:
        """Return the notes of deeper folders, each with those between it and its root, outermost first. Blocks."""
        notes: list[ProjectNote] = []
        for folder in folders:
            root = next((root for root in self._roots.real if folder.startswith(root.rstrip("/") + "/")), None)
            if root is not None:
                for each in _between(root, folder):
                    notes += self._in_folder(self._roots, each, self._roots)
        return notes

    def _above(self) -> Iterator[str]:
        """Yield the folders from the repository's root to the one above the working folder, outermost first."""
        folder = self._roots.real[0]
        found: list[str] = []
        for _ in range(_MOST_FOLDERS):
            if os.path.lexists(os.path.join(folder, ".git")):
                yield from reversed(found)
                return
            above = os.path.dirname(folder)
            if above == folder:
                return
            found.append(folder := above)

    def _in_folder(self, roots: Roots, folder: str, import_roots: Roots) -> list[ProjectNote]:
        if os.path.lexists(os.path.join(folder, AGENTS)):
            return self._notes(roots, os.path.join(folder, AGENTS), import_roots)
        return [note for name in _OTHERS for note in self._notes(roots, os.path.join(folder, name), import_roots)]

    def _notes(self, roots: Roots, path: str, import_roots: Roots, depth: int = 0) -> list[ProjectNote]:
        """Return a file and the files that it imports; none if it is not there, was read or may not be read."""
        try:
            place = roots.place(path)
            if place.path in self._read or len(self._read) >= IMPORTS or self._is_withheld(place.path):
                return []
            self._read.add(place.path)
            text, is_cut = self._text(place)
        except (PathRefused, OSError):
            return []
        notes = [ProjectNote(place.path, text, is_cut)] if text.strip() or is_cut else []
        if depth < IMPORT_DEPTH:
            for name in _imports(text):
                file = os.path.join(os.path.dirname(place.path), name)
                notes += self._notes(import_roots, file, import_roots, depth + 1)
        return notes

    def _text(self, place: Place) -> tuple[str, bool]:
        data, is_cut = read_bytes(place, max(self.room, 0))
        decoded = decode_text(data, is_cut=is_cut)
        if decoded is None:
            return "", False
        self.room -= len(data)
        return decoded.text, is_cut


def note_text(note: ProjectNote) -> str:
    """Return a note for the model, in a tag that its text cannot end."""
    more = "\n[… there is more in the file …]" if note.is_cut else ""
    path = visible_line(note.path).replace('"', "%22").replace("<", "%3C").replace(">", "%3E")
    return f"Notes of the project; follow them in {visible_line(os.path.dirname(note.path))}:\n" + wrap_in_tag(
        "notes", note.text + more, f' path="{path}"'
    )


def _imports(text: str) -> list[str]:
    """Return the paths that a note imports: `@path` after a blank, and not in code."""
    found = (match[1].replace("\\ ", " ").rstrip(".,;:!?)") for match in _IMPORT.finditer(_CODE.sub("", text)))
    return [path for path in found if path and not path.startswith("~")]


def _between(root: str, folder: str) -> Iterator[str]:
    """Yield the folders below `root` down to `folder`."""
    here = root.rstrip("/")
    for part in folder[len(here) + 1 :].split("/")[:_MOST_FOLDERS]:
        here = f"{here}/{part}"
        yield here
