"""The documentation is built as a reader gets it, and what it shows can be read by what it is shown for."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml  # type: ignore[import-untyped]

from dragoman.cli.main import command_line
from dragoman.cli.settings import KEYS, read_settings
from dragoman.client.known_agents import KNOWN
from dragoman.client.registry_file import RegistryFileFound, read_file
from dragoman.coder.managed_file import parse_managed
from dragoman.coder.mcp.config import from_config
from dragoman.coder.models.endpoints import configured, find_address
from dragoman.coder.models.script import parse
from dragoman.coder.modes import MODES
from tests.docs.snippets import Snippet, commands_in, file_named, is_balanced, lines_of, snippets
from tests.support.needs import ROOT
from tools.performance import filled
from tools.reference.settings import ENVIRONMENT, RUN_EXITS

# Programs that are not ours: what they are given is theirs to judge, and they are not started here.
OTHERS = {
    "jq",
    "apt",
    "aws",
    "gcloud",
    "cd",
    "createdb",
    "chmod",
    "chown",
    "export",
    "git",
    "iac-code",
    "llama-server",
    "mkdir",
    "openssl",
    "npx",
    "ollama",
    "pip",
    "printf",
    "sha256sum",
    "ssh-keygen",
    "uv",
    "vllm",
}
# Where a page gets things from: a script, a picture, a font, a style.
_FETCHED = re.compile(r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["'](?:https?:)?//[^"']*""")
_STYLED = re.compile(
    r"""<link\b[^>]*\brel=["'](?:stylesheet|preload|preconnect|icon)["'][^>]*href=["'](?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    # Nothing can be fetched: every proxy is a closed door.
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **closed, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site_and_nothing_of_it_is_from_elsewhere(site: Path) -> None:
    written = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(site) for page in site.rglob("*.html")}
    assert written <= built
    fetched = [
        f"{page.name}: {found[0]}"
        for page in site.rglob("*.html")
        for pattern in (_FETCHED, _STYLED)
        for found in pattern.finditer(page.read_text(encoding="utf-8"))
    ]
    assert fetched == []


def test_the_reference_imports_what_can_be_imported_and_names_fixtures_as_fixtures(site: Path) -> None:
    shown = re.sub(r"<[^>]+>", "", (site / "reference" / "testing.html").read_text())
    imported = re.findall(r"from dragoman\.testing import (\w+)", shown)
    fixtures = re.findall(r"A pytest fixture: async def test_it\((\w+)\)", shown)
    assert imported == ["pair", "ScriptedAgent", "ScriptedClient"]
    assert fixtures == ["acp_pair", "scripted_agent", "scripted_client"]


def test_the_reference_has_every_command_option_setting_and_tool(site: Path) -> None:
    shown = {page.name: re.sub(r"<[^>]+>", "", page.read_text()) for page in (site / "reference").glob("*.html")}
    for command in ("acp", "run", "chat", "serve", "connect", "sessions", "doctor"):
        assert f"usage: dragoman {command}" in shown["commands.html"]
    assert "usage: dragoman sessions export" in shown["commands.html"]
    for name in KEYS:
        assert name in shown["settings.html"]
    for name in MODES:
        assert name in shown["tools.html"]
    assert "read_file(path, start_line?, end_line?)" in shown["tools.html"]
    assert "async def ask_permission" in shown["agents.html"]
    assert "AgentMessageChunk" in shown["events.html"]
    assert "FRAME_BYTES" in shown["limits.html"]


def test_every_variable_of_ours_is_described() -> None:
    ours = {f"DRAGOMAN_{name.upper()}" for name in KEYS} | {"DRAGOMAN_KEY"} | set(ENVIRONMENT)
    read = set()
    for file in (ROOT / "src").rglob("*.py"):
        read.update(re.findall(r'"(DRAGOMAN_[A-Z_]+)"', file.read_text(encoding="utf-8")))
    assert read - ours == set()


# --- snippets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("snippet", snippets("sh"), ids=str)
def test_a_command_is_one_that_there_is(snippet: Snippet) -> None:
    for line in lines_of(snippet.text):
        for words in commands_in(line):
            check_command(words)


def check_command(words: list[str]) -> None:
    match words:
        case ["dragoman", *rest]:
            arguments = command_line(rest[0]).parse_args(rest)  # leaves with SystemExit, and says why
            given = getattr(arguments, "command_given", None)
            if given:
                check_command(given)
        case ["python" | "python3", file, *_]:
            assert (ROOT / file).is_file() or file == "my_agent.py"
        case ["./dev", name, *_]:
            assert f"\n  {name} " in dev_help()
        case ["opencode" | "gemini", *_]:
            assert words in [entry.command_line() for entry in KNOWN.values()]
        case [program, *_]:
            assert program in OTHERS


@functools.cache
def dev_help() -> str:
    return subprocess.run(["./dev", "--help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("snippet", snippets("python"), ids=str)
def test_python_is_that_of_the_file_it_names_or_at_least_python(snippet: Snippet) -> None:
    ast.parse(snippet.text)
    named = re.match(r"# (examples/\S+)\n", snippet.text)
    if named is not None:
        assert (ROOT / named[1]).read_text(encoding="utf-8") == snippet.text.partition("\n")[2]


@pytest.mark.parametrize("snippet", snippets("json"), ids=str)
def test_json_can_be_read_by_whom_it_is_for(snippet: Snippet, tmp_path: Path) -> None:
    document = json.loads(snippet.text)
    if snippet.title == "acp.json":
        file = file_named(tmp_path, "acp.json", snippet.text)
        assert read_file(RegistryFileFound(file, file.read_bytes())).entries
    elif snippet.title == "script.json":
        assert len(parse(document).turns) == len(document["turns"])


@pytest.mark.parametrize("snippet", snippets("toml"), ids=str)
def test_settings_can_be_read(snippet: Snippet, tmp_path: Path) -> None:
    if snippet.title.endswith("managed.toml"):
        assert parse_managed(snippet.text.encode(), snippet.title).written()
        return
    settings = read_settings({}, str(file_named(tmp_path, "config.toml", snippet.text)))
    assert tomllib.loads(snippet.text)
    assert len(from_config(settings.tables["mcp"], {"TICKETS_TOKEN": "t"})) == len(settings.tables["mcp"])
    for name in configured(settings.tables):
        assert find_address(name, environment={}, config=settings.tables).url


@pytest.mark.parametrize("snippet", snippets("yaml"), ids=str)
def test_a_job_can_be_read_and_its_commands_are_ones_that_there_are(snippet: Snippet) -> None:
    jobs = yaml.safe_load(snippet.text)["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for words in [words for step in steps for line in lines_of(step) for words in commands_in(line)]:
        if words[0] not in ("echo", "sudo"):
            check_command(words)


def test_brackets_are_told_from_text() -> None:
    assert is_balanced('f({ "a)", "b" }) -- )', comment="--")
    assert is_balanced('(setq x \'("a")) ; (', comment=";", characters=True)
    for wrong in ("f({)}", "f(", ")", '"a'):
        assert not is_balanced(wrong, comment="--")


def test_a_line_is_taken_apart_where_the_shell_would() -> None:
    line = 'git diff | dragoman run --stream-json "Review this:" - > review.jsonl && ./dev run'
    assert commands_in(line) == [
        ["git", "diff"],
        ["dragoman", "run", "--stream-json", "Review this:", "-"],
        ["./dev", "run"],
    ]
    assert lines_of("# nothing\ndragoman chat   # a conversation\n") == ["dragoman chat"]


# --- tables written by hand -----------------------------------------------------------------------------------------


def test_hand_written_tables_have_what_the_code_has() -> None:
    def page(name: str) -> str:
        return (ROOT / "docs" / name).read_text(encoding="utf-8")

    for mode in MODES:
        assert f"`{mode}`" in page("concepts/permissions.md")
    for name in KNOWN:
        assert f"`{name}`" in page("how-to/other-agents.md")
    codes = {code for code, _ in RUN_EXITS}
    assert set(re.findall(r"^\| (\d+) \|", page("how-to/scripts.md"), re.MULTILINE)) == codes - {"1"}


def test_the_benchmark_writes_between_its_marks() -> None:
    page = "before\n<!-- bench: how -->\nold\n<!-- /bench -->\nafter\n"
    once = filled(page, ["--quick"], "ours 1\n")
    assert once == filled(once, ["--quick"], "ours 1\n")
    assert once.startswith("before\n<!-- bench: how -->\n\n`./dev bench --quick` said:\n\n```text\nours 1\n```\n")
    assert once.endswith("<!-- /bench -->\nafter\n")
    assert "old" not in once


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda file: file.name)
def test_a_picture_needs_nothing_from_elsewhere(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    held = re.findall(r'href="data:image/webp;base64,[A-Za-z0-9+/=]+"', text)
    assert len(re.findall(r"""(?:href|src|url)\s*[=(]""", text)) == len(held)
    # What the browser shows is held as pictures, of which there are several; the terminal's letters can be read.
    shown = re.sub(r"<[^>]+>", "", text).replace("\n", " ")
    is_of_browser = picture.name == "recording.svg"
    assert (len(held) > 1, "The test passes: end of the recording." in shown) == (is_of_browser, not is_of_browser)
