"""Slash commands and skills that stand in Markdown files: those of the user, and those of a project.

A command is `commands/NAME.md`, a skill is `skills/NAME/SKILL.md`. Both can be typed as `/NAME`; the model is told of
skills, and reads one when it needs it (`skill_list`). Where two have one name, ours come first, then the user's, then
the project's, nearest first; of one place a skill comes before a command. What is hidden so is said in sentences.

What stands in the files is read here and changes no permission: `allowed-tools` allows nothing.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dragoman.host.markdown_files import (
    PROJECT_FOLDERS,
    MarkdownFile,
    is_yes,
    own_markdown,
    project_markdown,
    split_front_matter,
)
from dragoman.host.paths import is_inside
from dragoman.host.text import visible_line

# In menus and in the list for the model. A line is read at a glance, and each is part of every request.
DESCRIPTION_CHARACTERS: Final = 400
_HINT_CHARACTERS: Final = 100
# Of all places together. A longer menu is not looked through.
MOST_COMMANDS: Final = 500


class PromptFile(NamedTuple):
    """A command or a skill. `is_typed`: it is offered as a slash command; `is_listed`: the model is told of it.

    `folder` is the real path of a skill's folder; empty: it is a command.
    """

    name: str
    description: str
    hint: str
    file: MarkdownFile
    folder: str = ""
    is_typed: bool = True
    is_listed: bool = False

    @property
    def about(self) -> str:
        """What menus say of it: a project's is marked as that."""
        what = f"{'skill' if self.folder else 'command'} of the project"
        return f"{self.description} ({what})" if self.file.project else self.description


class PromptFiles(NamedTuple):
    """The files that count: by the word that is typed, and the skills for the model. `hidden` says what does not."""

    commands: Mapping[str, PromptFile] = {}
    skills: Sequence[PromptFile] = ()
    hidden: Sequence[str] = ()


def read_prompt_files(
    commands: str,
    skills: str,
    projects: Sequence[str] = (),
    taken: Collection[str] = (),
    *,
    with_commands: bool = True,
    with_skills: bool = True,
) -> PromptFiles:
    """Return what is in the user's folders and in projects, nearest first. Blocks.

    `taken` are names of our own commands. `with_commands` and `with_skills`: those of projects count.
    """
    own = chain(
        _files(own_markdown(skills, skills=True), skills) if skills else (),
        _files(own_markdown(commands)) if commands else (),
    )
    theirs = (
        one
        for project in projects
        for one in chain(
            _files(project_markdown(project, "skills"), project) if with_skills else (),
            _files(project_markdown(project, "commands")) if with_commands else (),
        )
    )
    return _by_name(chain(own, theirs), taken)


def _by_name(files: Iterable[PromptFile], taken: Collection[str]) -> PromptFiles:
    found: dict[str, PromptFile] = {}
    skills: dict[str, PromptFile] = {}
    hidden: list[str] = []
    for one in files:
        if len(found) + len(skills) >= MOST_COMMANDS:
            hidden.append(f"There are more than {MOST_COMMANDS} commands and skills; the others are not used.")
            break
        if one.is_listed:
            skills.setdefault(one.name, one)
        if not one.is_typed:
            continue
        if one.name in taken:
            hidden.append(f"/{one.name} is a command of Dragoman; {visible_line(one.file.path)} is not used for it.")
        elif one.name in found:
            first = visible_line(found[one.name].file.path)
            hidden.append(f"/{one.name} is {first}; {visible_line(one.file.path)} has the same name and is not used.")
        else:
            found[one.name] = one
    return PromptFiles(found, tuple(skills.values()), tuple(hidden))


def _files(files: Iterable[MarkdownFile], skills: str = "") -> Iterator[PromptFile]:
    """Yield what is in these files; `skills` is the folder that they are skills of, or its project."""
    for file in files:
        fields, body = split_front_matter(file.text)
        about = " ".join(filter(None, (fields.get("description", ""), fields.get("when_to_use", ""))))
        yield PromptFile(
            file.name,
            _line(about or _first_line(body) or file.name, DESCRIPTION_CHARACTERS),
            _line(fields.get("argument-hint", ""), _HINT_CHARACTERS),
            file,
            os.path.realpath(os.path.join(skills, os.path.dirname(file.place) or file.name)) if skills else "",
            is_yes(fields.get("user-invocable", ""), True),
            bool(skills) and not is_yes(fields.get("disable-model-invocation", ""), False),
        )


def _first_line(body: str) -> str:
    return next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")


def _line(text: str, characters: int) -> str:
    """Return a text of a file as one line that shows what it is, and no more of it than that."""
    line = " ".join(text.split())
    return visible_line(line[:characters]) + ("…" if len(line) > characters else "")


def lent_paths(skills: Iterable[PromptFile], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the real paths of skills that tools may read beyond the roots: folders, and files that links lead to.

    Of a project only what lies in its own folders of skills; never a folder with one of `kept` in it.
    """
    found: list[str] = []
    for one in skills:
        file = one.file
        homes = [os.path.join(file.project, folder, "skills") for folder in PROJECT_FOLDERS] if file.project else []
        if homes and not any(is_inside(one.folder, home) for home in homes):
            continue
        if not any(is_inside(path, one.folder) for path in kept):
            found.append(one.folder)
        if not is_inside(file.path, one.folder) and not file.project:
            found.append(file.path)
    return tuple(dict.fromkeys(found))
