"""What the model is told of the session beside the prompts: environment, mode, notes of the project, skills.

Each is an item of the context on the user's side, with a `source`. An item is added when what it says is new: the
environment once, the mode and a note when they differ from what the context last says of them. So the beginning of a
request never changes, and after a reload or a summary nothing is told twice.

`SessionBriefing.new_items` is asked before every request. Within a turn it looks at the mode, and at folders whose
files were touched since; files of notes that are known already are read again with the next prompt.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from dragoman.agent.session import new_id
from dragoman.coder.context import NOT_THE_USER, Context, ContextUserMessage, Item
from dragoman.coder.environment_facts import environment_text
from dragoman.coder.identity_limits import is_unlimited
from dragoman.coder.modes import MODES
from dragoman.coder.project_notes import NOTES_BYTES, IsWithheld, NoteReader, ProjectNote, note_text
from dragoman.coder.prompt_files import PromptFile
from dragoman.coder.skill_list import SKILLS, skill_list
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.host.paths import Roots
from dragoman.host.text import visible_line
from dragoman.vocabulary.content import Text, text_of
from dragoman.vocabulary.identity import Identity

ENVIRONMENT: Final = "environment"
MODE: Final = "mode"
NOTES: Final = "notes "
_PLAN: Final = " End with a plan: call update_plan with its steps, and say why in a few words. Change nothing."


class SessionBriefing:
    """Finds out what the model of one session has not been told yet."""

    def __init__(
        self,
        roots: Callable[[], Roots],
        mode: Callable[[], str],
        identity: Callable[[], Identity],
        environment: Mapping[str, str],
        settings_folder: str,
        notice: Callable[[str], Awaitable[None]],
        skills: Callable[[], Sequence[PromptFile]] = tuple,
    ) -> None:
        self._skills = skills
        self._roots = roots
        self._mode = mode
        self._identity = identity
        self._environment = environment
        self._settings_folder = settings_folder
        self._notice = notice
        # Folders whose files a tool has read or written, and of which the notes were not looked at yet.
        self._touched: set[str] = set()
        self._looked_at: set[str] = set()
        self._has_noticed_cut = False
        self._has_noticed_skills = False

    def begin_turn(self) -> None:
        """Read the notes of touched folders again: they may have changed since the last turn."""
        self._touched |= self._looked_at
        self._looked_at = set()

    def touch(self, path: str) -> None:
        """Record that a tool reads or writes a file here: the notes of its folder count from now on."""
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        if folder not in self._looked_at:
            self._touched.add(folder)

    async def new_items(
        self, context: Context, is_withheld: IsWithheld, *, is_new_turn: bool
    ) -> list[ContextUserMessage]:
        """Return what has to be added to the context before the next request. Waits for the disk, and for git once."""
        items: list[ContextUserMessage] = []
        told = last_of_each_source(context.items)
        if is_new_turn and ENVIRONMENT not in told:
            text = await environment_text(self._roots(), self._environment)
            items.append(_item(ENVIRONMENT, wrap_in_tag("environment", text)))
        if is_new_turn or self._touched:
            items += await self._notes(told, is_withheld, is_new_turn=is_new_turn)
        if is_new_turn and (skills := await self._skill_list(told.get(SKILLS, ""))):
            items.append(_item(SKILLS, skills))
        items.append(_item(MODE, mode_text(self._mode())))
        return [item for item in items if told.get(item.source) != text_of(item.content)]

    async def _skill_list(self, told: str) -> str:
        found = skill_list(self._skills(), told)
        if found.left_out and not self._has_noticed_skills:
            self._has_noticed_skills = True
            await self._notice(
                f"The model is told of {len(self._skills()) - found.left_out} skills; the list has no room for "
                f"{found.left_out} more. They can be typed as slash commands."
            )
        return found.text

    async def _notes(
        self, told: Mapping[str, str], is_withheld: IsWithheld, *, is_new_turn: bool
    ) -> list[ContextUserMessage]:
        # After a reload only the context knows which deeper folders were touched.
        known_folders = [os.path.dirname(source.removeprefix(NOTES)) for source in told if source.startswith(NOTES)]
        touched, self._touched = sorted(self._touched.union(known_folders if is_new_turn else ())), set()
        self._looked_at |= set(touched)
        if not is_new_turn:
            known = sum(len(text) for source, text in told.items() if source.startswith(NOTES))
            reader = NoteReader(self._roots(), is_withheld, room=NOTES_BYTES - known)
            notes = await asyncio.to_thread(reader.of_folders, touched)
            notes = [note for note in notes if NOTES + note.path not in told]
        else:
            notes = await asyncio.to_thread(self._all_notes, touched, is_withheld)
        if any(note.is_cut for note in notes) and not self._has_noticed_cut:
            self._has_noticed_cut = True
            cut = next(note.path for note in notes if note.is_cut)
            await self._notice(
                f"The notes for agents are longer than {NOTES_BYTES // 1024} KiB in all: {visible_line(cut)} was cut, "
                "and the model can read the rest with a tool."
            )
        items = [_item(NOTES + note.path, note_text(note)) for note in notes]
        if is_new_turn:
            found = {NOTES + note.path for note in notes}
            gone = [source for source in told if source.startswith(NOTES) and source not in found]
            items += [_item(source, _gone(source.removeprefix(NOTES))) for source in gone]
        return items

    def _all_notes(self, touched: list[str], is_withheld: IsWithheld) -> list[ProjectNote]:
        is_free = is_unlimited(self._identity())
        own: list[ProjectNote] = []
        room = NOTES_BYTES
        if is_free and os.path.isdir(self._settings_folder):
            # The user's own folder, which no tool reads: nothing in it is withheld from what the user wrote there.
            user_reader = NoteReader(Roots([self._settings_folder]), lambda path: False)
            own, room = user_reader.of_workspace(above=False), user_reader.room
        reader = NoteReader(self._roots(), is_withheld, room=room)
        return [*own, *reader.of_workspace(above=is_free), *reader.of_folders(touched)]


def mode_text(mode: str) -> str:
    """Return what the model is told of a mode."""
    known = MODES.get(mode)
    text = f'The mode is now "{mode}": {known.description.lower() if known else "unknown"}.'
    return text + (_PLAN if mode == "plan" else "")


def last_of_each_source(items: Sequence[Item]) -> dict[str, str]:
    """Return the text of the newest item of each source."""
    return {
        item.source: text_of(item.content) for item in items if isinstance(item, ContextUserMessage) and item.source
    }


def _gone(path: str) -> str:
    return f"The notes in {visible_line(path)} are gone; they count no more."


def _item(source: str, text: str) -> ContextUserMessage:
    return ContextUserMessage(new_id("told"), [Text(f"{NOT_THE_USER} {text}")], source)
