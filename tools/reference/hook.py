"""The reference pages of the documentation, made from the code when the documentation is built.

`mkdocs.yml` names this file as a hook. Nothing it makes is kept in the repository, so nothing of it can be out of date.
"""

from typing import TYPE_CHECKING

from tools.reference.check_rows import check_rows_page
from tools.reference.coder import tools_page
from tools.reference.commands import commands_page
from tools.reference.limits import limits_page
from tools.reference.python import AGENTS, CLIENTS, TESTING, errors_page, events_page, python_page
from tools.reference.settings import settings_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """MkDocs calls this when it has found the pages that are written by hand."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Every page: its path below `docs/`, and its text."""
    return {
        "reference/agents.md": python_page("Python: agents", "What `from dragoman import Agent` brings.", AGENTS),
        "reference/clients.md": python_page(
            "Python: clients", "What `from dragoman import connect, connect_sync` brings.", CLIENTS
        ),
        "reference/events.md": events_page(),
        "reference/errors.md": errors_page(),
        "reference/testing.md": python_page("Python: dragoman.testing", "For tests of your own.", TESTING),
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "reference/tools.md": tools_page(),
        "reference/limits.md": limits_page(),
        "reference/check-rows.md": check_rows_page(),
    }
