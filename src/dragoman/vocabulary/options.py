"""Own session options (model, mode, …), slash commands and plans.

Nothing is checked when a value is made: what a peer sends is made here too, whatever values it has. The values
of an author are checked where they are handed to an agent or a session (`agent/checks`).
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from dragoman.vocabulary.word import Unknown, Word


class Choice(Word, frozen=True, gc=False, tag_field="form", tag="choice"):
    """One value of a select option."""

    value: str
    name: str
    description: str | None | UnsetType = UNSET


class ChoiceGroup(Word, frozen=True, gc=False, tag_field="form", tag="group"):
    """Values shown under one heading."""

    group_id: str
    name: str
    options: list[Choice]


class Select(Word, frozen=True, gc=False, tag_field="type", tag="select"):
    """One of several values. Category `mode` is what older clients call a session mode."""

    config_id: str
    name: str
    current_value: str
    options: list[Choice | ChoiceGroup]
    description: str | None | UnsetType = UNSET
    category: str | None | UnsetType = UNSET

    def choices(self) -> list[Choice]:
        """Return every choice in order, those of groups included."""
        if ChoiceGroup not in map(type, self.options):
            return self.options.copy()  # type: ignore[return-value]
        flat: list[Choice] = []
        for entry in self.options:
            if isinstance(entry, ChoiceGroup):
                flat.extend(entry.options)
            else:
                flat.append(entry)
        return flat


class Toggle(Word, frozen=True, gc=False, tag_field="type", tag="boolean"):
    """On or off."""

    config_id: str
    name: str
    current_value: bool
    description: str | None | UnsetType = UNSET
    category: str | None | UnsetType = UNSET


class UnknownOption(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """An option of a type this release does not know; `config_id` is in the fields."""


Option = Select | Toggle | UnknownOption
MODE_CATEGORY = "mode"


def category_of(option: Option) -> str | None:
    """Return the category of an option; None if it has none, or is of a type that is not known here."""
    return (option.category or None) if isinstance(option, Select | Toggle) else None


class CommandInput(Word, frozen=True, gc=False, tag_field="type", tag="text"):
    """A command accepts text; the hint describes it."""

    hint: str


class UnknownInput(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """Command input of a type this release does not know."""


class Command(Word, frozen=True, gc=False, tag_field="type", tag="command"):
    """A slash command."""

    name: str
    description: str
    input: CommandInput | UnknownInput | None | UnsetType = UNSET


class UnknownCommand(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """A command of a type this release does not know."""


AnyCommand = Command | UnknownCommand

PlanPriority = Literal["high", "medium", "low"]
PlanStatus = Literal["pending", "in_progress", "completed", "cancelled"]


class PlanEntry(Word, frozen=True, gc=False):
    """One step of a plan."""

    content: str
    priority: str = "medium"
    status: str = "pending"


class PlanItems(Word, frozen=True, gc=False, tag_field="type", tag="items"):
    """A plan as steps."""

    plan_id: str
    entries: list[PlanEntry]


class PlanFile(Word, frozen=True, gc=False, tag_field="type", tag="file"):
    """A plan in a file."""

    plan_id: str
    uri: str


class PlanMarkdown(Word, frozen=True, gc=False, tag_field="type", tag="markdown"):
    """A plan as text."""

    plan_id: str
    content: str


class UnknownPlan(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """A plan of a type this release does not know."""


Plan = PlanItems | PlanFile | PlanMarkdown | UnknownPlan
# The id of a plan where the wire has only one, without an id.
MAIN_PLAN = "main"
