"""One list of protected names, at any depth; and folders that git takes for repositories, whatever they are called."""

import itertools
from pathlib import Path

import pytest

from dragoman.host.protected import is_protected, is_protected_write

EXECUTED_WHEN_LOOKED_AT = [
    *(".helix/languages.toml", ".nvim.lua", "my.code-workspace", "my.sublime-project", ".cargo/config.toml"),
    *(".cargo/config", ".gdbinit", ".lldbinit", ".pdbrc", ".mise.toml", "mise.toml", ".tool-versions", ".clangd"),
    *(".irbrc", ".Rprofile", ".config/fish/config.fish", ".config/autostart/x.desktop", ".config/systemd/user/x"),
    *(".local/bin/ls", ".github/workflows/ci.yml", ".gitlab-ci.yml", "AGENTS.md", "CLAUDE.md", "GEMINI.md"),
    *(
        ".eslintrc.js",
        "eslint.config.mjs",
        ".prettierrc",
        ".pylintrc",
        ".envrc",
        ".bashrc",
        ".git/config",
        "Jenkinsfile",
    ),
    *(".CARGO/Config.TOML", ".github/WORKFLOWS/x", "X.Code-Workspace", ".gi\u200dt/config", ".git::$data/config"),
]
RUN_ON_PURPOSE = [
    *("Makefile", "conftest.py", "package.json", "pyproject.toml", "build.rs", "src/main.py", ".github/FUNDING.yml"),
    *(".cargo/registry", ".config/app.json", "config.toml", "HEAD", "objects/x", "refs/x", ".gitignore", ".env"),
]


@pytest.mark.parametrize("below", ["", "sub/deeper/"], ids=["root", "nested"])
def test_what_is_executed_by_looking_is_protected_at_any_depth(below: str) -> None:
    unprotected = [path for path in EXECUTED_WHEN_LOOKED_AT if not is_protected((below + path).split("/"))]
    assert unprotected == []


def test_what_is_run_on_purpose_is_not_protected(tmp_path: Path) -> None:
    assert [path for path in RUN_ON_PURPOSE if is_protected_write(str(tmp_path), path.split("/"))] == []


GIT_FOLDER = ["HEAD", "config", "objects/pack/x", "refs/heads/y"]


@pytest.mark.parametrize("folder", ["", "docs/", "docs/deep/"], ids=["root", "sub folder", "deep"])
def test_no_order_of_free_writes_makes_a_git_folder(tmp_path: Path, folder: str) -> None:
    for number, order in enumerate(itertools.permutations([*GIT_FOLDER, "commondir"])):
        root = tmp_path / str(number)
        (root / folder).mkdir(parents=True)
        for path in order:
            if not is_protected_write(str(root), (folder + path).split("/")):
                (root / folder / path).parent.mkdir(parents=True, exist_ok=True)
                (root / folder / path).write_text("x")
        names = {path.name for path in (root / folder).iterdir()}
        assert "HEAD" not in names or names.isdisjoint({"objects", "refs", "commondir"}), order


@pytest.mark.parametrize("path", ["config", "hooks/post-checkout", "config.worktree", "modules/a/config", "new"])
@pytest.mark.parametrize("folder", ["x.git", "docs", "docs/deep"])
def test_everything_in_a_git_folder_is_protected(tmp_path: Path, folder: str, path: str) -> None:
    (tmp_path / folder / "objects").mkdir(parents=True)
    (tmp_path / folder / "HEAD").write_text("ref: refs/heads/main\n")
    assert is_protected_write(str(tmp_path), f"{folder}/{path}".split("/"))
    assert not is_protected_write(str(tmp_path), ("beside", "file"))


def test_a_spelling_that_some_file_system_takes_for_head_counts(tmp_path: Path) -> None:
    (tmp_path / "Objects").mkdir()
    assert is_protected_write(str(tmp_path), ("head",))


def test_a_folder_that_cannot_be_read_is_not_written_without_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("dragoman.host.protected.os.scandir", unreadable)
    assert is_protected_write(str(tmp_path), ("file",))


def test_what_a_link_with_a_protected_name_leads_to_is_protected(tmp_path: Path) -> None:
    (tmp_path / "docs" / "vscode").mkdir(parents=True)
    (tmp_path / "CLAUDE.md").symlink_to("docs/guide.md")
    (tmp_path / "docs" / ".vscode").symlink_to("vscode")
    root = str(tmp_path.resolve())
    assert is_protected_write(root, ("docs", "guide.md"))
    assert is_protected_write(root, ("docs", "vscode", "tasks.json"))
    assert not is_protected_write(root, ("docs", "other.md"))


@pytest.mark.parametrize("config", ["[core]\n\thooksPath = tools/hooks\n", '[core] HooksPath="tools/hooks"\n'])
def test_hooks_among_the_files_of_a_repository_are_protected(tmp_path: Path, config: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(config)
    root = str(tmp_path.resolve())
    assert is_protected_write(root, ("tools", "hooks", "pre-commit"))
    assert not is_protected_write(root, ("tools", "other"))
