"""Keep generated tables out of the documentation's search: every second word of it stands in them.

`mkdocs.yml` names this file as a hook.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

TABLES = ("compatibility.md", "losses.md", "matrix.md")


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """MkDocs calls this for each page."""
    if page.file.src_uri in TABLES:
        page.meta["search"] = {"exclude": True}
    return markdown
