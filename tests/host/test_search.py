"""Looking through a workspace with ripgrep: what is found, in which order, and that nothing is left behind."""

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import WorldError
from dragoman.host import ripgrep as rg
from dragoman.host import search
from dragoman.host.guardian import Guardian
from dragoman.host.paths import PathRefused, Place, Roots
from dragoman.host.process_tree import living
from dragoman.host.ripgrep import Records, SearchFailed, find_ripgrep
from dragoman.host.run_to_end import run_to_end
from dragoman.host.search import FolderEntry, Match, glob, grep, list_files
from dragoman.host.wildcards import PatternRefused
from tests.support.needs import need_ripgrep
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

BOMB = "(a+)+$"
BOMB_TEXT = "a" * 60 + "!\n"


@pytest.fixture
def ripgrep() -> str:
    return need_ripgrep()


def make(root: Path, files: dict[str, str | bytes]) -> Place:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return Roots([str(root)]).place(".")


OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Children that this process had before: what tests share, such as a fork server."""
    OTHERS.clear()
    OTHERS.update(children())


def children() -> list[int]:
    """What this test has started, and still runs."""
    return [process.pid for process in living() if process.parent == os.getpid() and process.pid not in OTHERS]


# --- grep

TREE: dict[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n/src/gen.py\n!keep.log\n",
    ".github/ci.yml": "value: 1\n",
    ".git/config": "value: git\n",
    "a.txt": "value one\nVALUE two\nother\n",
    "b.log": "value in a log\n",
    "keep.log": "value kept\n",
    "build/out.txt": "value built\n",
    "src/a.py": "def value():\n    return 1\n\nvalue()\n",
    "src/b.py": "x = 'wert'\n",
    "src/gen.py": "value = 'generated'\n",
    "src/deep/gen.py": "value = 'not generated'\n",
    "src/deep/.ignore": "secret.txt\n",
    "src/deep/secret.txt": "value secret\n",
    "src/deep/dos.txt": "one\r\nvalue\r\n",
    "src/deep/umlaut.txt": "Größe: value\nfoo{bar\n",
    "src/deep/latin.txt": b"value \xe4\xff\n",
    "src/bin.dat": b"value\0value\n",
    "src/empty": "",
    "src/no newline": "a value",
    "src/-dash.txt": "--value\n",
    "src/utf16.txt": "value\n".encode("utf-16"),
}

CASES: list[tuple[str, str, str | None, bool, list[tuple[str, int, str]]]] = [
    ("def", ".", None, False, [("src/a.py", 1, "def value():")]),
    ("value", "a.txt", None, False, [("a.txt", 1, "value one")]),
    ("value", "a.txt", None, True, [("a.txt", 1, "value one"), ("a.txt", 2, "VALUE two")]),
    ("value", ".", "*.txt", False, [
        ("a.txt", 1, "value one"),
        ("src/-dash.txt", 1, "--value"),
        ("src/deep/dos.txt", 2, "value"),
        ("src/deep/latin.txt", 1, "value ��"),
        ("src/deep/umlaut.txt", 1, "Größe: value"),
    ]),
    ("value", ".", "*.{yml,log}", False, [(".github/ci.yml", 1, "value: 1"), ("keep.log", 1, "value kept")]),
    ("value", ".", "src/*.py", False, [("src/a.py", 1, "def value():"), ("src/a.py", 4, "value()")]),
    ("value", ".", "**/gen.py", False, [("src/deep/gen.py", 1, "value = 'not generated'")]),
    ("value", "src", "deep/*.py", False, [("src/deep/gen.py", 1, "value = 'not generated'")]),
    ("value", "src/deep", "*.py", False, [("src/deep/gen.py", 1, "value = 'not generated'")]),
    ("value", "src", "[ag]*.py", False, [
        ("src/a.py", 1, "def value():"), ("src/a.py", 4, "value()"), ("src/deep/gen.py", 1, "value = 'not generated'"),
    ]),
    ("value", "b.log", None, False, [("b.log", 1, "value in a log")]),
    ("value", "build", None, False, [("build/out.txt", 1, "value built")]),
    ("value$", "src/deep/dos.txt", None, False, [("src/deep/dos.txt", 2, "value")]),
    ("Gr.ße", ".", None, False, [("src/deep/umlaut.txt", 1, "Größe: value")]),
    ("größe", ".", None, True, [("src/deep/umlaut.txt", 1, "Größe: value")]),
    (r"\w+: value", "src/deep", None, False, [("src/deep/umlaut.txt", 1, "Größe: value")]),
    ("--value", ".", None, False, [("src/-dash.txt", 1, "--value")]),
    ("-e", ".", None, False, []),
    (r"val(?=ue\(\))", "src", None, False, [("src/a.py", 1, "def value():"), ("src/a.py", 4, "value()")]),
    ("foo{bar", ".", None, False, [("src/deep/umlaut.txt", 2, "foo{bar")]),
    ("^$", "src", None, False, [("src/a.py", 3, "")]),
    (r"return\s+1", ".", None, False, [("src/a.py", 2, "    return 1")]),
    ("a value", ".", None, False, [("src/no newline", 1, "a value")]),
    ("nowhere", ".", None, False, []),
    ("^def", "src", None, False, [("src/a.py", 1, "def value():")]),
    ("return 1$|wert", "src", None, False, [("src/a.py", 2, "    return 1"), ("src/b.py", 1, "x = 'wert'")]),
    (r"(?<!a )value", "src/no newline", None, False, []),
    (r"(\w)\1", "src/deep", None, False, [("src/deep/umlaut.txt", 2, "foo{bar")]),
    ("(?i)E: VALUE$", "src/deep", None, False, [("src/deep/umlaut.txt", 1, "Größe: value")]),
    ("[[:digit:]]", "src/a.py", None, False, [("src/a.py", 2, "    return 1")]),
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that only look."""
    root = tmp_path_factory.mktemp("tree")
    make(root, TREE)
    return root


@pytest.mark.parametrize(("pattern", "path", "files", "ignore_case", "expected"), CASES)
async def test_lines_are_found(
    tree: Path,
    ripgrep: str,
    pattern: str,
    path: str,
    files: str | None,
    ignore_case: bool,
    expected: list[tuple[str, int, str]],
) -> None:
    place = Roots([str(tree)]).place(path)
    found = await grep(pattern, place, glob=files, case_insensitive=ignore_case, ripgrep=ripgrep)
    assert found.matches == [Match(str(tree / name), line, text) for name, line, text in expected]
    assert found.cut == ""


async def test_rules_above_the_folder_count(tmp_path: Path, ripgrep: str) -> None:
    files: dict[str, str | bytes] = {
        f"pkg/a/{name}": "value\n" for name in ("x.log", "keep.log", "gen/y", "z/out", "w")
    }
    make(tmp_path, files | {".gitignore": "*.log\nout\n/pkg/a/gen\n", "pkg/a/.gitignore": "!keep.log\n"})
    found = await grep("value", Roots([str(tmp_path)]).place("pkg/a"), ripgrep=ripgrep)
    assert [match.path for match in found.matches] == [str(tmp_path / "pkg/a" / name) for name in ("keep.log", "w")]


async def test_a_rule_that_brings_back_from_above_counts(tmp_path: Path, ripgrep: str) -> None:
    make(tmp_path, {".gitignore": "*.log\n!/pkg/keep.log\n", "pkg/a.log": "value\n", "pkg/keep.log": "value\n"})
    found = await grep("value", Roots([str(tmp_path)]).place("pkg"), ripgrep=ripgrep)
    assert [match.path for match in found.matches] == [str(tmp_path / "pkg/keep.log")]


@pytest.mark.requirement("G11")
async def test_no_link_is_followed(tmp_path: Path, ripgrep: str) -> None:
    make(tmp_path / "outside", {"secret": "value\n"})
    place = make(tmp_path / "root", {"inside": "value\n"})
    (tmp_path / "root/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "root/file").symlink_to(tmp_path / "outside/secret")
    (tmp_path / "root/loop").symlink_to(".")
    found = await grep("value", place, ripgrep=ripgrep)
    assert [match.path for match in found.matches] == [str(tmp_path / "root/inside")]
    assert (await glob("**", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / "root/inside")]
    assert (await glob("folder/*", place, ripgrep=need_ripgrep())).paths == []
    entries = (await list_files(place)).entries
    assert entries == [
        FolderEntry("file", "link"),
        FolderEntry("folder", "link"),
        FolderEntry("inside", "file"),
        FolderEntry("loop", "link"),
    ]


async def test_results_are_cut_and_it_is_said(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {f"{number:03}": "value\nvalue\n" for number in range(20)})
    found = await grep("value", place, max_results=5, ripgrep=ripgrep)
    assert [(Path(match.path).name, match.line) for match in found.matches] == [
        *(("000", 1), ("000", 2), ("001", 1), ("001", 2), ("002", 1))
    ]
    assert "first 5 matches" in found.cut


async def test_a_flood_of_matches_is_cut_in_order(
    tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rg, "GATHERED", 100)
    place = make(tmp_path, {f"{number:03}/f": "value\n" * 50 for number in range(30)})
    found = await grep("value", place, max_results=60, ripgrep=ripgrep)
    assert [match.path for match in found.matches] == [str(tmp_path / "000/f")] * 50 + [str(tmp_path / "001/f")] * 10
    assert "first 60 matches" in found.cut


async def test_a_long_line_is_shown_around_its_match(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"min.js": "ä" * 300_000 + "needle" + "ö" * 300_000 + "\nneedle\n"})
    first, second = (await grep("needle", place, ripgrep=ripgrep)).matches
    assert (first.line, second.line, second.text) == (1, 2, "needle")
    assert "needle" in first.text and first.text[:2] == "…ä" and first.text[-2:] == "ö…"
    assert len(first.text) <= search.LINE_CHARACTERS + 2


async def test_names_that_are_no_text_or_hold_a_newline_are_shown(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"new\nline": "value\n"})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"value\n")
    found = await grep("value", place, ripgrep=ripgrep)
    assert [match.path for match in found.matches] == [str(tmp_path / "new\nline"), str(tmp_path / "\ufffd")]
    assert (await glob("*", place, ripgrep=need_ripgrep())).paths == [match.path for match in found.matches]


async def test_a_file_that_turns_out_to_be_binary_late_disturbs_nothing(tmp_path: Path, ripgrep: str) -> None:
    late = b"value\n" + b"x\n" * 100_000 + b"\0" + b"value\n"
    place = make(tmp_path, {"a": late, "b": "value\n"})
    found = await grep("value", place, ripgrep=ripgrep)
    assert [(Path(match.path).name, match.line) for match in found.matches] == [("a", 1), ("b", 1)]


async def test_a_file_over_the_limit_is_left_out(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"big": b"value\n" * (3 * 1024 * 1024), "small": "value\n"})
    assert [Path(match.path).name for match in (await grep("value", place, ripgrep=ripgrep)).matches] == ["small"]


@pytest.mark.parametrize("pattern", ["(", "", "a\0b", "x" * 5000, "a\nb"])
async def test_a_bad_pattern_is_refused_with_a_sentence(tmp_path: Path, ripgrep: str, pattern: str) -> None:
    place = make(tmp_path, {"a": "x\n"})
    with pytest.raises(WorldError, match=r"pattern.*\."):
        await grep(pattern, place, ripgrep=ripgrep)


async def test_what_is_not_there_is_refused(tmp_path: Path, ripgrep: str) -> None:
    roots = Roots([str(tmp_path)])
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "fifo"):
        with pytest.raises(PathRefused):
            await grep("a", roots.place(name), ripgrep=ripgrep)


@pytest.mark.requirement("D12")
async def test_a_regex_bomb_ends_soon(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"a": BOMB_TEXT})
    start = time.monotonic()
    assert (await grep(BOMB, place, ripgrep=ripgrep)).matches == []
    # Look-around is for PCRE2, which counts its steps.
    assert (await grep(f"^(?={BOMB})", place, ripgrep=ripgrep)).matches == []
    with pytest.raises(SearchFailed, match="too long"):
        await grep(f"^(?={BOMB})", Roots([str(tmp_path)]).place("a"), ripgrep=ripgrep)
    assert time.monotonic() - start < 20.0
    assert children() == []


async def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    """The stand-in for ripgrep never ends."""
    sleeper = stand_in(tmp_path, "sleep 100 & sleep 100\n")
    place = make(tmp_path / "root", {"a": "value\n"})
    for asked in (grep("value", place, ripgrep=sleeper), glob("**", place, ripgrep=sleeper)):
        task = asyncio.ensure_future(asked)
        await until(children, "the search has started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == []


async def test_a_search_that_takes_too_long_gives_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rg, "SEARCH_SECONDS", 0.3)
    slow = stand_in(tmp_path, "printf './a\\0001:1:0:\\n'\nsleep 100\n")
    place = make(tmp_path / "root", {"a": "value\n"})
    found = await grep("value", place, ripgrep=slow)
    assert found.matches == [Match(str(tmp_path / "root/a"), 1, "value")]
    assert "stopped after" in found.cut
    assert children() == []


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"])
async def test_a_pipe_in_place_of_rules_holds_up_no_search(tmp_path: Path, ripgrep: str, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    (tmp_path / "a").write_text("word")
    async with asyncio.timeout(10):
        found = await grep("word", Roots([str(tmp_path)]).place("."), ripgrep=ripgrep)
    assert found.matches == [Match(str(tmp_path / "a"), 1, "word")]


async def test_without_a_ripgrep_that_starts_it_is_said_what_to_install(tmp_path: Path) -> None:
    place = make(tmp_path, {"a": "value\n"})
    for program, words in ((None, "not installed"), (str(tmp_path / "none"), "does not start")):
        for asked in (grep("value", place, ripgrep=program), glob("**", place, ripgrep=program)):
            with pytest.raises(SearchFailed, match=rf"{words}.*pip install 'dragoman\[agent\]'.*, or .*\."):
                await asked
    assert [entry.name for entry in (await list_files(place)).entries] == ["a"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [("ripgrep 13.0.0", "is ripgrep 13, which is too old"), ("rig 1.1", "is no ripgrep that answers")],
)
async def test_a_ripgrep_that_is_too_old_is_not_used(tmp_path: Path, answer: str, words: str) -> None:
    place = make(tmp_path / "root", {"a": "value\n"})
    old = stand_in(tmp_path, "exit 1\n", version=answer)
    with pytest.raises(SearchFailed, match=rf"rg {words}.*pip install 'dragoman\[agent\]'.*ripgrep 14 or newer"):
        await grep("value", place, ripgrep=old)


async def test_an_ignore_file_without_an_end_does_not_take_all_memory(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"a": "value\n", "sub/b": "value\n"})
    (tmp_path / "sub/.gitignore").symlink_to("/dev/zero")
    with pytest.raises(SearchFailed, match="ended before it was done"):
        await grep("value", place, ripgrep=ripgrep)


async def test_a_configuration_of_the_user_changes_nothing(
    tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    found = await grep("value", make(tmp_path / "root", {"a": "value\nother\n"}), ripgrep=ripgrep)
    assert [match.text for match in found.matches] == ["value"]


async def test_both_runs_of_a_search_share_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in gives too much at once when it is not asked for order, and nothing but a wait when it is."""
    monkeypatch.setattr(rg, "GATHERED", 1)
    given: list[float] = []

    async def run_and_note(*arguments: Any, seconds: float, **more: Any) -> Any:
        given.append(seconds)
        return await run_to_end(*arguments, seconds=seconds, **more)

    monkeypatch.setattr(rg, "run_to_end", run_and_note)
    program = stand_in(tmp_path, "printf './a\\0001:1:0:\\n'\n")
    await grep("value", make(tmp_path / "root", {"a": "value\n"}), ripgrep=program)
    _, first, second = given
    assert first <= rg.SEARCH_SECONDS
    assert second < first


async def test_an_escaped_line_break_is_told_to_match_nothing(tmp_path: Path, ripgrep: str) -> None:
    place = make(tmp_path, {"a": "one\ntwo\n"})
    found = await grep(r"one\ntwo", place, ripgrep=ripgrep)
    assert (found.matches, found.cut) == ([], r"A match lies within one line, so \n matches nothing.")


@pytest.mark.requirement("G11")
async def test_a_folder_swapped_for_a_link_meanwhile_tells_nothing(tmp_path: Path) -> None:
    """The stand-in says what a ripgrep would that went through the link."""
    make(tmp_path / "outside", {"secret": "value\n"})
    place = make(tmp_path / "root", {"a": "value\n"})
    (tmp_path / "root/b").symlink_to(tmp_path / "outside")
    (tmp_path / "root/c").symlink_to(tmp_path / "outside/secret")
    fooled = stand_in(
        tmp_path,
        'case "$*" in\n'
        "*--files*) printf './a\\000./b/secret\\000./c\\000' ;;\n"
        "*) printf './a\\0001:1:0:\\n./b/secret\\0001:1:0:\\n./c\\0001:1:0:\\n' ;;\nesac\n",
    )
    assert (await glob("**", place, ripgrep=fooled)).paths == [str(tmp_path / "root/a")]
    assert (await grep("value", place, ripgrep=fooled)).matches == [Match(str(tmp_path / "root/a"), 1, "value")]


async def test_what_is_left_out_is_not_counted_among_the_first(
    tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rg, "GATHERED", 100)
    place = make(tmp_path, {".env": "value\n" * 500, "a/hidden": "value\n" * 500, "z": "value\n" * 3})
    found = await grep(
        "value", place, max_results=3, ripgrep=ripgrep, credentials_of="/nowhere", without=[str(tmp_path / "a")]
    )
    assert [(Path(match.path).name, match.line) for match in found.matches] == [("z", 1), ("z", 2), ("z", 3)]
    assert found.cut == ""


async def test_the_guardian_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(rg, "_checked", {need_ripgrep()})

    class Listening(Guardian):
        def _send(self, line: str) -> None:
            told.append(line[0])

    await grep("value", make(tmp_path, {"a": "value\n"}), ripgrep=need_ripgrep(), guardian=Listening())
    assert told == ["?", "+", "-"]  # announced, named, and left


def stand_in(folder: Path, script: str, *, version: str = "ripgrep 15.0.0") -> str:
    """A program in the place of ripgrep: it answers for its version, and else runs the lines of a shell."""
    program = folder / "rg"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit\n{script}')
    program.chmod(0o755)
    return str(program)


# --- which ripgrep


def fake(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "rg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_a_ripgrep_of_the_workspace_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "work/.venv/bin/python"))
    for folder in ("work", "work/.venv/bin", "work/node_modules/.bin"):
        fake(tmp_path / folder)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "rg").symlink_to(tmp_path / "work/rg")
    (tmp_path / "to-work").symlink_to(tmp_path / "work")
    outside = fake(tmp_path / "outside")
    monkeypatch.chdir(tmp_path / "work")
    roots = Roots([str(tmp_path / "work")])
    inside = [".", "", str(tmp_path / "work"), str(tmp_path / "work/node_modules/.bin"), str(linked)]
    inside.append(str(tmp_path / "to-work"))
    assert find_ripgrep(os.pathsep.join(inside), roots) is None
    assert find_ripgrep(os.pathsep.join([*inside, str(outside.parent)]), roots) == str(outside)


def test_the_ripgrep_beside_our_python_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = fake(tmp_path / "venv/bin")
    other = fake(tmp_path / "other")
    monkeypatch.setattr(sys, "executable", str(own.parent / "python"))
    assert find_ripgrep(str(other.parent), Roots([str(tmp_path / "work")])) == str(own)


def lines() -> Records:
    return Records(lambda _: True, has_lines=True)


def test_names_are_read_whatever_the_pieces() -> None:
    data = b"./a\0./b\nc/d\0./\xff\0"
    for size in range(1, len(data)):
        records = Records(lambda path: path != "a", has_lines=False)
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert [hit.path for piece in pieces for hit in records.feed(piece)] == ["b\nc/d", "\udcff"]


def test_records_are_read_whatever_the_pieces() -> None:
    data = (
        b"./a\0001:2:3:[Omitted long matching line]\n"
        b'./b: WARNING: stopped searching binary file after match (found "\\0" byte around offset 9)\n'
        b"./c\nd\00010:20:30:x\n"
    )
    whole = lines().feed(data)
    assert [tuple(found) for found in whole] == [("a", 1, 2, 3), ("c\nd", 10, 20, 30)]
    for size in range(1, len(data)):
        records = lines()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert [found for piece in pieces for found in records.feed(piece)] == whole


# --- glob


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.txt", ".", ["a.txt"]),
        ("**/*.py", ".", ["src/a.py", "src/b.py", "src/deep/gen.py"]),
        ("src/*.py", ".", ["src/a.py", "src/b.py"]),
        ("./src/*.py", ".", ["src/a.py", "src/b.py"]),
        ("*.py", "src", ["src/a.py", "src/b.py"]),
        ("**/{a,gen}.py", ".", ["src/a.py", "src/deep/gen.py"]),
        ("src/**/[gb]*.p?", ".", ["src/b.py", "src/deep/gen.py"]),
        (
            "src/deep/",
            ".",
            ["src/deep/" + name for name in (".ignore", "dos.txt", "gen.py", "latin.txt", "umlaut.txt")],
        ),
        ("**/*.log", ".", ["keep.log"]),
        ("build/*", ".", ["build/out.txt"]),
        ("missing/*", ".", []),
        ("a.txt", ".", ["a.txt"]),
        ("a.txt/b", ".", []),
    ],
)
async def test_glob_finds_files_by_path(tree: Path, pattern: str, path: str, expected: list[str]) -> None:
    found = await glob(pattern, Roots([str(tree)]).place(path), ripgrep=need_ripgrep())
    assert found.paths == [str(tree / name) for name in expected]
    assert found.cut == ""


async def test_an_absolute_pattern_is_taken_if_it_leads_there(tmp_path: Path) -> None:
    place = make(tmp_path, {"a.c": ""})
    assert (await glob(f"{tmp_path}/*.c", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / "a.c")]
    for pattern in ("/etc/*", "../*", "a/../../*", "{a,/etc}/*"):
        with pytest.raises(PatternRefused):
            await glob(pattern, place, ripgrep=need_ripgrep())


@pytest.mark.requirement("D12")
async def test_a_glob_of_ten_thousand_braces_is_refused_at_once(tmp_path: Path) -> None:
    place = make(tmp_path, {"a": ""})
    start = time.process_time()
    for pattern in ("{a,b}" * 10_000, "{a,b}" * 20, "{" * 10_000):
        with pytest.raises(PatternRefused):
            await glob(pattern, place, ripgrep=need_ripgrep())
        with pytest.raises(PatternRefused):
            await grep("a", place, glob=pattern, ripgrep=need_ripgrep())
    assert time.process_time() - start < 1.0


async def test_glob_is_cut_in_order_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "GLOB_RESULTS", 3)
    place = make(tmp_path, {f"{number}/f": "" for number in range(9)})
    found = await glob("**", place, ripgrep=need_ripgrep())
    assert found.paths == [str(tmp_path / f"{number}/f") for number in range(3)]
    assert "first 3 files" in found.cut


async def test_files_come_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [".hidden", "B", "a", "b/a", "b/z", "b-c", "b.c", "c/d/e"]
    place = make(tmp_path, dict.fromkeys(names, ""))
    for most in (rg.GATHERED, 1):
        monkeypatch.setattr(rg, "GATHERED", most)
        assert (await glob("**", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / name) for name in names]


async def test_git_and_what_is_no_file_are_passed_by(tmp_path: Path) -> None:
    place = make(tmp_path, {".git/config": "", "sub/.git/config": "", "a": ""})
    os.mkfifo(tmp_path / "fifo")
    assert (await glob("**", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / "a")]


async def test_large_files_are_listed(tmp_path: Path) -> None:
    place = make(tmp_path, {"big": b"x" * (rg.FILE_BYTES + 1)})
    assert (await glob("*", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / "big")]


async def test_a_folder_that_cannot_be_read_is_passed_by(tmp_path: Path) -> None:
    place = make(tmp_path, {"a": "value\n", "b/c": "value\n", "d": "value\n"})
    (tmp_path / "b").chmod(0)
    try:
        if os.access(tmp_path / "b", os.R_OK):
            (tmp_path / "b/c").unlink()  # the superuser reads everything
        assert (await glob("**", place, ripgrep=need_ripgrep())).paths == [str(tmp_path / "a"), str(tmp_path / "d")]
        found = await grep("value", place, ripgrep=need_ripgrep())
        assert ([Path(match.path).name for match in found.matches], found.cut) == (["a", "d"], "")
    finally:
        (tmp_path / "b").chmod(0o755)


async def test_a_glob_that_takes_too_long_gives_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rg, "SEARCH_SECONDS", 0.3)
    slow = stand_in(tmp_path, "printf './a\\000'\nsleep 100\n")
    found = await glob("**", make(tmp_path / "root", {"a": ""}), ripgrep=slow)
    assert found.paths == [str(tmp_path / "root/a")]
    assert "stopped after" in found.cut
    assert children() == []


# --- list_files


async def test_a_folder_is_listed_by_name(tmp_path: Path) -> None:
    place = make(tmp_path, {"b": "", "a/c": "", ".hidden": ""})
    os.mkfifo(tmp_path / "fifo")
    listing = await list_files(place)
    assert listing.entries == [
        FolderEntry(".hidden", "file"),
        FolderEntry("a", "folder"),
        FolderEntry("b", "file"),
        FolderEntry("fifo", "other"),
    ]
    assert listing.cut == ""


async def test_a_long_folder_is_cut_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LISTED_ENTRIES", 3)
    listing = await list_files(make(tmp_path, dict.fromkeys("fedcba", "")))
    assert [entry.name for entry in listing.entries] == ["a", "b", "c"]
    assert "first 3" in listing.cut


async def test_only_a_folder_can_be_listed(tmp_path: Path) -> None:
    roots = Roots([str(tmp_path)])
    make(tmp_path, {"a": ""})
    for name in ("a", "missing"):
        with pytest.raises(PathRefused):
            await list_files(roots.place(name))


# --- the process that is run to its end


async def test_a_process_that_printed_enough_is_ended() -> None:
    output = bytearray()

    def on_output(data: bytes) -> bool:
        output.extend(data)
        return len(output) < 1000

    argv = [shutil.which("yes") or "yes"]
    result = await run_to_end(argv, cwd="/", env={}, input=b"", on_output=on_output, seconds=10, memory=rg.MEMORY_BYTES)
    assert output.startswith(b"y\ny\n")
    assert not result.timed_out
    assert children() == []


async def test_a_process_has_its_exit_code_also_where_a_child_holds_its_pipe() -> None:
    output: list[bytes] = []

    def on_output(data: bytes) -> bool:
        output.append(data)
        return True

    argv = ["/bin/sh", "-c", "cat; sleep 100 & echo trouble >&2; exit 3"]
    result = await run_to_end(
        argv, cwd="/", env={}, input=b"hello", on_output=on_output, seconds=10, memory=rg.MEMORY_BYTES
    )
    assert (b"".join(output), result.exit_code, result.stderr_tail, result.timed_out) == (
        b"hello",
        3,
        "trouble\n",
        False,
    )
    assert children() == []


async def test_a_process_that_is_run_to_its_end_has_a_bound_on_its_memory() -> None:
    output: list[bytes] = []

    def on_output(data: bytes) -> bool:
        output.append(data)
        return True

    argv = ["/bin/sh", "-c", "read line; ulimit -d"]  # it reads on when it was given its limit and its input
    await run_to_end(argv, cwd="/", env={}, input=b"go\n", on_output=on_output, seconds=10, memory=64 << 20)
    assert b"".join(output) == b"65536\n"
