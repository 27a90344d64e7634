"""A file or a folder that the pages for developers name exists."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")
# Parts of the package that are one file, and what a page names without its folder.
PARTS = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}


def named_paths(text: str) -> list[str]:
    """Return the backticked paths of a page that begin in the package or in the repository."""
    return [name for name in PATH.findall(text) if name.split("/")[0] in PARTS | FOLDERS]


def exists(name: str) -> bool:
    return any((base / ending).exists() for base in (PACKAGE, ROOT) for ending in (name, f"{name}.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert [name for name in named_paths(page.read_text(encoding="utf-8")) if not exists(name)] == []


def test_a_file_that_is_not_there_is_found_out() -> None:
    assert named_paths("see `link/link.py`, `link/gone.py` and `session/prompt`") == ["link/link.py", "link/gone.py"]
    assert [exists("link/link.py"), exists("link/link"), exists("link/gone.py")] == [True, True, False]


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in folder.glob("*.md") if page.name != "index.md")


def class_members() -> dict[str, set[str]]:
    """Return the names that the body of each class of the package defines or sets, and those of its bases."""
    found: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = found.setdefault(node.name, set())
                bases.setdefault(node.name, set()).update(b.id for b in node.bases if isinstance(b, ast.Name))
                for inner in ast.walk(node):
                    if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        names.add(inner.name)
                    elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        names.add(inner.id)
                    elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        names.add(inner.attr)
    for name, above in bases.items():
        for base in above & found.keys():
            found[name] |= found[base]
    return found


MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)[^`]*`")


def test_every_method_that_a_page_names_exists() -> None:
    members = class_members()
    missing = [
        f"{page.name}: {name}.{attribute}"
        for page in PAGES
        for name, attribute in MEMBER.findall(page.read_text(encoding="utf-8"))
        if attribute not in members.get(name, set())
    ]
    assert missing == []
