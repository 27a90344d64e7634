"""One list of protected names, at any depth; and folders that git takes for repositories, whatever they are called."""

import itertools
from pathlib import Path

import pytest

from dragoman.host.protected_names import is_protected, is_protected_write

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
    *("hie.yaml", ".bsp/build.json", "buildServer.json", ".lsp/config.edn", ".ropeproject/config.py", ".merlin"),
    *("rust-analyzer.toml", "rust-toolchain.toml", ".emacs.desktop", ".joyride/scripts/workspace_activate.cljs"),
    *(".golangci.yml", ".rubocop_todo.yml", ".lintstagedrc.json", "prek.toml", ".config/mise.toml", ".tekton/ci.yaml"),
    *(".jedi/project.json", ".factorypath", ".formatter.exs", ".erlang", ".codesandbox/tasks.json", ".github/hooks/x"),
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

    monkeypatch.setattr("dragoman.host.protected_names.os.scandir", unreadable)
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


SCRIPT = ("tools", "run.sh")
NAMING = {
    "include": "[include]\n\tpath = ../tools/run.sh\n",
    "conditional include": '[includeIf "gitdir:**"]\n\tpath = ../tools/run.sh\n',
    "attributes": "[core]\n\tattributesFile = tools/run.sh\n",
    "quotes": '[core]\n\thooksPath = to"ol"s\n',
    "two lines": "[core]\n\thooksPath = \\\ntools\n",
    "a comment before": "# comment \\\n[core]\n\thooksPath = tools\n",
    "a comment behind": "[core]\n\thooksPath = tools ; ours\n",
    "a mark before": "\ufeff[core]\n\thooksPath = tools\n",
    "monitor": "[core]\n\tfsmonitor = ./tools/run.sh\n",
    "filter": '[filter "x"]\n\tclean = sh tools/run.sh %f\n',
    "module": '[filter "x"]\n\tclean = python3 -m tools.run\n',
    "alias": "[alias]\n\tst = !tools/run.sh\n",
    "not there yet": "[diff]\n\texternal = tools/run.sh\n",
}


@pytest.mark.parametrize("kind", NAMING)
def test_a_file_that_the_configuration_of_git_names_is_protected(tmp_path: Path, kind: str) -> None:
    root = tmp_path.resolve()
    (root / ".git").mkdir()
    (root / "tools").mkdir()
    (root / ".git" / "config").write_text(NAMING[kind])
    script = ("tools", "run.py") if kind == "module" else SCRIPT
    if kind != "not there yet":
        root.joinpath(*script).write_text("")
    assert is_protected_write(str(root), script)
    assert is_protected_write(str(root / "tools"), script[1:])  # a workspace inside of the repository
    assert not is_protected_write(str(root), ("src", "file"))


def test_a_relative_hooks_folder_of_the_users_own_configuration_is_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[include]\n\tpath = more\n")
    (tmp_path / "home" / "more").write_text("[core]\n\thooksPath = tools/hooks\n")
    root = tmp_path.resolve() / "work"
    (root / ".git").mkdir(parents=True)
    assert is_protected_write(str(root), ("tools", "hooks", "pre-commit"))
    assert not is_protected_write(str(root), ("tools", "other"))


def test_what_links_in_something_protected_lead_to_is_protected(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for folder in (".git/hooks", ".vscode/deep", "shared/cargo", ".gradle"):
        (root / folder).mkdir(parents=True)
    (root / ".git" / "hooks" / "pre-commit").symlink_to("../../tools/check.sh")
    (root / ".vscode" / "deep" / "tasks.json").symlink_to("../../conf/tasks.json")
    (root / ".vscode" / "all").symlink_to("..")
    (root / ".cargo").symlink_to("shared/cargo")
    (root / ".gradle" / "init.d").symlink_to("../conf/gradle")
    (root / ".gradle" / "cache").symlink_to("../free")
    for path in ("tools/check.sh", "conf/tasks.json", "shared/cargo/config.toml", "conf/gradle/x.gradle"):
        assert is_protected_write(str(root), path.split("/")), path
    for path in ("tools/other.sh", "shared/cargo/registry", "free/x", "src/file"):
        assert not is_protected_write(str(root), path.split("/")), path
