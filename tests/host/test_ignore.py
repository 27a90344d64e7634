"""Rules of a tree, held against git itself: what git says is ignored, a search leaves out, and nothing else.

ripgrep reads them, but for those above the folder that is searched, so every tree is searched from its top and from the
folders in it. Where ripgrep differs from git, the test says so.
"""

import asyncio
import random
import re
import subprocess
from pathlib import Path

import pytest

from dragoman.host.paths import Place
from dragoman.host.search import glob
from tests.support.needs import need, need_ripgrep

SEED = 7

PATHS = [
    *("a", "b", "ab", "abc", "a.log", "keep.log", "x.pyc", "#hash", "!bang", "spa ce", "trail ", "[x]", "a*b", "A"),
    *("build/out", "build/keep", "build/deep/out", "src/build/out", "src/a", "src/a.log", "src/b/a", "src/b/keep.log"),
    *("docs/a.md", "docs/deep/b.md", "docs/deep/er/c.md", "foo/bar", "foo/x/bar", "foo/x/y/bar", "x/foo/bar"),
    *("node_modules/p/index.js", "pkg/node_modules/p/index.js", ".hidden", ".config/a", "back\\slash", "z-1", "z_2"),
]


@pytest.mark.parametrize(
    "rules",
    [
        "*.log\n!keep.log\n",
        "build\n",
        "build/\n!build/keep\n",
        "build/*\n!build/keep\n",
        "/build\n",
        "src/build/\n",
        "a\n!/a\n",
        "**/a\n",
        "foo/**\n",
        "foo/**/bar\n",
        "**/bar\n!x/**\n",
        "/**/bar\n",
        "foo/*/bar\n",
        "*\n!*/\n!*.md\n",
        "docs/**/*.md\n",
        "node_modules\n",
        "/node_modules/\n",
        "\\#hash\n\\!bang\n",
        "#hash\n!bang\n",
        "spa\\ ce\ntrail\\ \n",
        "trail \n",
        "\\[x\\]\n",
        "[[]x]\n",
        "a\\*b\n",
        "a?c\n",
        "[a-b]\n",
        "[!a]\n",
        "[^a-b]\n",
        "[[:nonsense:]]\n",
        "[a\n",
        "[z-a]\n",
        "z[-_]?\n",
        "a\\\n",
        "back\\\\slash\n",
        "a.log\r\nb\r\n",
        "\ufeffa.log\n",
        "a.log",
        "a**c\n",
        "***\n",
        "**/\n",
        "/\n",
        "//a\n",
        "!\n",
        "\n\n  \n",
        "src//a\n",
        "src/\\b/a\n",
        "src\\/a\n",
        "sr[c/]a\n",
        "foo/**/\n",
        "foo/x/**\n!foo/x/y/**\n",
        ".*\n!.config\n",
        "*.*\n",
    ],
)
def test_one_file_of_rules_means_what_git_means(repository: Path, rules: str) -> None:
    (repository / ".gitignore").write_text(rules, newline="")
    assert ours(repository) == kept_by_git(repository)


@pytest.mark.parametrize(
    ("rules", "found_more"),
    [
        ("trail\\  \n", {"trail "}),  # a space after an escaped one
        ("[[:upper:]]\n", {"A"}),  # classes by name
        ("[[:digit:][:punct:]]*\n", {"!bang", "#hash", ".config/a", ".gitignore", ".hidden", "[x]"}),
        ("z[a-z\\-_]*\n", {"z-1"}),  # an escaped hyphen in a class
    ],
)
def test_what_ripgrep_finds_although_git_ignores_it(repository: Path, rules: str, found_more: set[str]) -> None:
    (repository / ".gitignore").write_text(rules, newline="")
    kept = kept_by_git(repository)
    assert ours(repository) == kept | found_more
    assert kept.isdisjoint(found_more)


def test_what_ripgrep_leaves_out_although_git_keeps_it(repository: Path) -> None:
    (repository / ".gitignore").write_text("foo[!a]x\n")  # a class that excludes matches a slash too
    assert kept_by_git(repository) - ours(repository) == {"foo/x/bar", "foo/x/y/bar"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree in which a test writes `.gitignore`, and nothing else."""
    root = tmp_path_factory.mktemp("repository")
    make(root, PATHS)
    run_git(root, "init", "-q")
    return root


@pytest.mark.parametrize("trees", [10, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.timeout(240)])])
def test_random_rules_in_nested_files_mean_what_git_means(tmp_path: Path, trees: int) -> None:
    chance = random.Random(SEED)
    for number in range(trees):
        root = tmp_path / str(number)
        make(root, [random_path(chance) for _ in range(60)])
        folders = [root, *sorted(folder for folder in root.rglob("*") if folder.is_dir())]
        written = {}
        for folder in chance.sample(folders, min(3, len(folders))):
            written[str(folder)] = "\n".join(random_rule(chance) for _ in range(chance.randint(1, 6))) + "\n"
            (folder / ".gitignore").write_text(written[str(folder)])
        expected = git(root, exclude=random_rule(chance) + "\n")
        assert ours(root) == expected, written
        folders_kept = sorted({path.rpartition("/")[0] for path in expected if "/" in path})
        for inner in chance.sample(folders_kept, min(1, len(folders_kept))):
            assert ours(root, inner) == {path for path in expected if path.startswith(f"{inner}/")}, (inner, written)


def test_git_info_exclude_counts_and_gitignore_is_stronger(tmp_path: Path) -> None:
    make(tmp_path, ["a.log", "b.log", "c"])
    (tmp_path / ".gitignore").write_text("!a.log\n")
    expected = git(tmp_path, exclude="*.log\nc\n")
    assert ours(tmp_path) == expected == {".gitignore", "a.log"}


def test_the_rules_of_a_repository_end_where_the_one_that_is_searched_begins(tmp_path: Path) -> None:
    """Only for the folder that is searched: below it, ripgrep holds the rules of the outer one to be valid."""
    make(tmp_path, ["a.log", "inner/a.log", "inner/b.tmp", "inner/.git/config", "inner/deep/a.log"])
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "inner/.gitignore").write_text("*.tmp\n")
    assert ours(tmp_path, "inner") == {"inner/.gitignore", "inner/a.log", "inner/deep/a.log"}
    assert ours(tmp_path, "inner/deep") == {"inner/deep/a.log"}
    assert ours(tmp_path) == {".gitignore", "inner/.gitignore"}


def test_ignore_files_count_without_git_and_overrule_it(tmp_path: Path) -> None:
    make(tmp_path, ["a.log", "b.log", "deep/a.log", "c"])
    (tmp_path / ".ignore").write_text("!a.log\nc\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "deep/.gitignore").write_text("a.log\n")
    assert ours(tmp_path) == {".gitignore", ".ignore", "a.log", "deep/.gitignore", "deep/a.log"}


def test_rules_above_the_folder_count_up_to_the_root(tmp_path: Path) -> None:
    make(tmp_path, ["src/a.log", "src/b", "src/gen/c", "src/deep/gen"])
    (tmp_path / ".gitignore").write_text("*.log\n/src/gen\n")
    assert ours(tmp_path, "src") == {"src/b", "src/deep/gen"}
    assert ours(tmp_path / "src") == {"a.log", "b", "gen/c", "deep/gen"}


def test_a_folder_that_was_named_is_searched_even_if_it_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, ["build/out.txt"])
    (tmp_path / ".gitignore").write_text("build/\n")
    assert ours(tmp_path) == {".gitignore"}
    assert ours(tmp_path, "build") == {"build/out.txt"}


def test_a_link_is_no_file_of_rules(tmp_path: Path) -> None:
    make(tmp_path, ["a"])
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert ours(tmp_path) == {"a", "rules"}


def make(root: Path, paths: list[str]) -> None:
    for each in paths:
        file = root / each
        if file.is_dir() or any(parent.is_file() for parent in file.parents):
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")


def ours(root: Path, folder: str = "") -> set[str]:
    """The files a search finds, from the root, when it begins in one of its folders."""
    found = asyncio.run(glob("**", Place(str(root), tuple(filter(None, folder.split("/")))), ripgrep=need_ripgrep()))
    return {str(Path(each).relative_to(root)) for each in found.paths}


def git(root: Path, exclude: str | None = None) -> set[str]:
    """The files git does not ignore."""
    run_git(root, "init", "-q")
    if exclude is not None:
        (root / ".git/info").mkdir(exist_ok=True)
        (root / ".git/info/exclude").write_text(exclude)
    return kept_by_git(root)


def kept_by_git(root: Path) -> set[str]:
    files = [str(file.relative_to(root)) for file in root.rglob("*") if file.is_file() and not is_gits(file, root)]
    ignored = run_git(root, "check-ignore", "--no-index", "-z", "--stdin", given="\0".join(files))
    return set(files) - set(ignored.split("\0"))


def run_git(root: Path, *words: str, given: str = "") -> str:
    """What it says; it leaves with 1 where it has nothing to say."""
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(root), "LC_ALL": "C"}
    command = [need("git"), "-C", str(root), *words]
    done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def is_gits(file: Path, root: Path) -> bool:
    return ".git" in file.relative_to(root).parts


def random_path(chance: random.Random) -> str:
    names = ["".join(chance.choices("ab.-", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))]
    return "/".join(name if name.strip(".") else f"a{name}" for name in names)


def random_rule(chance: random.Random) -> str:
    pieces = ["a", "b", ".", "-", "*", "**", "?", "/", "/", "[ab]", "[a-b.]", "\\a", "**/", "/**", "ab"]
    while True:
        rule = "".join(chance.choices(pieces, k=chance.randint(1, 5)))
        # In `a**/b` git takes the stars for whole folders, against its own manual (it has cut off the `a` before).
        is_git_strange = "/" in rule and re.search(r"[^/*]\*\*|\*\*[^/*]", rule)
        # Three stars and two slashes in a row, which git takes for two stars and for nothing, are others to ripgrep.
        if not is_git_strange and "***" not in rule and "//" not in rule:
            end = "/" if chance.random() < 0.2 and rule[-1] != "/" else ""
            return ("!" if chance.random() < 0.3 else "") + rule + end
