"""The colours of a conversation. What they say is always said in words as well."""

from typing import Final, NamedTuple

from dragoman.cli.errors import CommandError


class Theme(NamedTuple):
    """Styles of rich by the form of a text. `faint`: our own sentences; `code`: how blocks of code are coloured."""

    faint: str = "bright_black"
    tool: str = "bold cyan"
    failed: str = "red"
    plan: str = "cyan"
    notice: str = "yellow"
    thought: str = "italic bright_black"
    added: str = "green"
    removed: str = "red"
    place: str = "cyan"
    code: str = "ansi_dark"
    is_colourless: bool = False

    def style(self, form: str, text: str = "") -> str:
        """Return the style of a text of this form; of a line of a diff, by the sign that it begins with."""
        match form:
            case "diff":
                return {"+": self.added, "-": self.removed, "@": self.place}.get(text[:1], "")
            case "tool" | "failed" | "plan" | "notice" | "thought":
                return str(getattr(self, form))
            case "output" | "break":
                return self.faint
            case _:
                return ""


THEMES: Final = {
    "dark": Theme(),
    "light": Theme(
        faint="grey42",
        tool="bold blue",
        plan="blue",
        notice="dark_orange3",
        thought="italic grey42",
        added="dark_green",
        removed="dark_red",
        place="blue",
        code="ansi_light",
    ),
    # Nothing faint: for eyes, and for terminals, that do not show grey.
    "contrast": Theme(faint="", tool="bold", plan="bold", notice="bold yellow", thought="italic", place="bold"),
    "none": Theme(is_colourless=True),
}


def find_theme(name: str) -> Theme:
    """Return the theme of that name. Raise `CommandError` if there is none."""
    theme = THEMES.get(name)
    if theme is None:
        raise CommandError(f"theme: there is no {name!r}; choose one of {', '.join(THEMES)}")
    return theme
