"""What a request can mean, one value for each kind of wish."""

from typing import NamedTuple


class Read(NamedTuple):
    """Show a file, or some of its lines."""

    path: str
    start: int | None = None
    end: int | None = None


class ListFilesIntent(NamedTuple):
    """Show what is in a folder; empty: the working folder."""

    path: str = ""


class FindFiles(NamedTuple):
    """Find files by name."""

    pattern: str
    path: str = ""


class Where(NamedTuple):
    """Which files something is about; nothing given: all of them."""

    path: str = ""
    glob: str = ""


class Search(NamedTuple):
    """Find lines. `pattern` is a regular expression, `what` what the user called it."""

    pattern: str
    what: str
    where: Where = Where()
    ignore_case: bool = False


class Run(NamedTuple):
    """Run a command."""

    command: str


class RunTests(NamedTuple):
    """Run the tests, or one of them."""

    name: str = ""


class Create(NamedTuple):
    """Write a file; one that exists only if the user said so."""

    path: str
    content: str
    overwrite: bool = False


class Append(NamedTuple):
    """Add lines at the end of a file, or at its beginning."""

    path: str
    text: str
    at_top: bool = False


class Replace(NamedTuple):
    """Replace text in a file."""

    old: str
    new: str
    where: Where
    everything: bool = False


class Rename(NamedTuple):
    """Replace a name, where it stands as a whole word."""

    old: str
    new: str
    where: Where


class MakePlan(NamedTuple):
    """Show a plan for something."""

    goal: str


class Explain(NamedTuple):
    """Outline a file, a name, or the project (empty)."""

    subject: str
    path: str = ""


class Fix(NamedTuple):
    """Find why a test fails; with `edit`, repair it."""

    name: str = ""
    edit: bool = True


class Fetch(NamedTuple):
    """Show a page of the web."""

    url: str


class Ask(NamedTuple):
    """Put a question to the user."""

    question: str
    options: tuple[str, ...] = ()


class Sum(NamedTuple):
    """Say what this conversation was about."""


class Hello(NamedTuple):
    """A greeting, or thanks."""

    thanks: bool = False


class Help(NamedTuple):
    """What can you do, who are you."""


class UnknownIntent(NamedTuple):
    """Nothing that the rules know. `hint` says what would be needed."""

    hint: str = ""


Intent = (
    Read
    | ListFilesIntent
    | FindFiles
    | Search
    | Run
    | RunTests
    | Create
    | Append
    | Replace
    | Rename
    | MakePlan
    | Explain
    | Fix
    | Fetch
    | Ask
    | Sum
    | Hello
    | Help
    | UnknownIntent
)


class AnyIntent(NamedTuple):
    """One wish, and the words for it."""

    intent: Intent
    words: str
