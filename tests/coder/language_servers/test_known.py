"""Which language servers are looked for, and where."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.language_servers.known import ServerSpec, find_servers, read_specs
from dragoman.errors import UsageError


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return str(file)


def names(found: Any) -> list[str]:
    return [one.spec.name for one in found]


@pytest.mark.requirement("LSP2")
def test_a_program_of_the_workspace_is_never_found(tmp_path: Path) -> None:
    work, tools = tmp_path / "work", tmp_path / "tools"
    inside = program(work / "node_modules" / ".bin", "pyright-langserver")
    program(tools, "gopls")
    (tools / "pyright-langserver").symlink_to(inside)
    path = f"{work}/node_modules/.bin:.:{tools}"
    specs = [spec for spec in read_specs({}) if spec.name in ("pyright", "gopls")]
    assert names(find_servers(specs, path, [str(work)])) == ["gopls"]
    assert names(find_servers(specs, path, [str(tmp_path / "other")])) == ["pyright", "gopls"]


def test_of_two_that_do_the_same_the_first_is_used(tmp_path: Path) -> None:
    for name in ("pyright-langserver", "basedpyright-langserver"):
        program(tmp_path / "bin", name)
    specs = [spec for spec in read_specs({}) if "pyright" in spec.name]
    assert names(find_servers(specs, f"{tmp_path}/bin", ["/work"])) == ["basedpyright"]


def test_a_table_adds_a_server_changes_one_and_turns_one_off(tmp_path: Path) -> None:
    own = program(tmp_path / "opt", "my-server")
    tables: dict[str, dict[str, Any]] = {
        "mine": {"command": [own, "--stdio"], "files": ["*.my"], "language": "my"},
        "ruff": {"enabled": False},
        "gopls": {"command": ["gopls", "serve"]},
    }
    specs = {spec.name: spec for spec in read_specs(tables)}
    assert "ruff" not in specs
    assert specs["gopls"] == ServerSpec("gopls", ("gopls", "serve"), ("*.go",))
    (found,) = find_servers([specs["mine"]], "", ["/work"])
    assert found.argv == [own, "--stdio"]
    assert specs["mine"].is_for("/w/a.my") and specs["mine"].language_of("/w/a.my") == "my"
    assert specs["pyright"].language_of("/w/a.pyi") == "python"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({}, r"language_servers\.mine\.command has to be a list of texts"),
        ({"command": "prog", "files": ["*"]}, "command has to be a list"),
        ({"command": ["prog"]}, r"files has to be a list of texts: \[\"\*\.py\"\]"),
        ({"command": ["prog"], "files": ["*"], "enabled": 1}, "enabled has to be true or false"),
        ({"command": ["prog"], "files": ["*"], "colour": 1}, "colour is not known; there are command"),
        ({"command": ["prog"], "files": ["*"], "language": 1}, "language has to be a text"),
    ],
)
def test_a_table_that_is_wrong_is_refused_by_its_key(table: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_specs({"mine": table})
