"""The administrator's file: what it may say, whose it has to be, and that no mistake in it is passed over."""

import os
from pathlib import Path

import pytest

from dragoman.coder.managed_file import ManagedFileFailed, parse_managed, read_managed
from dragoman.coder.managed_settings import NOTHING_MANAGED, ManagedSettings, RulePattern
from dragoman.vocabulary.requests import McpAcp, McpHttp, McpStdio

WHOLE = """
[modes]
allowed = ["ask", "sandbox"]
highest = "ask"
[rules]
deny = [{ command = "curl *" }, { path = "secrets/**" }]
ask = [{ command = "git push" }]
allow = [{ command = "make test" }]
only_managed = true
[models]
allowed = ["anthropic/*"]
addresses = ["https://api.anthropic.com"]
fallback = false
[mcp]
commands = ["npx -y @corp/*"]
urls = []
[hooks]
user = false
project = false
[[hooks.managed.PreToolUse]]
matcher = "Bash"
[projects]
commands = false
skills = false
[spending]
turn = 1
session = 5.5
day = 20
[web]
fetch = true
hosts = ["*.example.com"]
"""


def parsed(text: str) -> ManagedSettings:
    return parse_managed(text.encode(), "managed.toml")


def written(folder: Path, text: str) -> str:
    path = folder / "dragoman" / "managed.toml"
    path.parent.mkdir(mode=0o755)
    path.write_text(text)
    path.chmod(0o644)
    return str(path)


def failure(file: str, owner: int | None = None) -> str:
    with pytest.raises(ManagedFileFailed) as caught:
        read_managed(file, os.getuid() if owner is None else owner)
    assert file in str(caught.value) or os.path.dirname(file) in str(caught.value)
    return str(caught.value)


def test_every_key_is_read_and_shown_by_its_whole_name() -> None:
    found = parsed(WHOLE)
    assert found.rules.deny == (RulePattern(command="curl *"), RulePattern(path="secrets/**"))
    assert found.spending.turn == 1.0
    keys = set(found.written())
    tables = {key.partition(".")[0] for key in keys}
    assert tables == {"modes", "rules", "models", "mcp", "hooks", "projects", "spending", "web"}
    assert keys >= {"modes.highest", "rules.only_managed", "mcp.urls", "hooks.managed", "spending.day"}
    assert "web.fetch" not in keys


def test_without_a_file_nothing_is_managed(tmp_path: Path) -> None:
    assert read_managed(str(tmp_path / "none" / "managed.toml"), os.getuid()) is NOTHING_MANAGED
    assert read_managed(str(tmp_path / "managed.toml"), os.getuid()) is NOTHING_MANAGED


def test_a_file_of_the_owner_counts(tmp_path: Path) -> None:
    found = read_managed(written(tmp_path, '[modes]\nhighest = "ask"\n'), os.getuid())
    assert (found.modes.highest, found.file) == ("ask", str(tmp_path / "dragoman" / "managed.toml"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[mode]\nhighest = 'ask'", "has the unknown key 'mode'; there are modes, rules,"),
        ("[modes]\nhigest = 'ask'", "has the unknown key modes.higest; there are allowed, highest"),
        (
            "[rules]\ndeny = [{ comand = 'rm' }]",
            "has a mistake at rules.deny[0]: object contains unknown field 'comand'",
        ),
        ("[modes]\nhighest = 'asks'", "names the unknown mode 'asks'; there are read-only,"),
        ("[modes]\nallowed = 'ask'", "has a mistake at modes.allowed: expected a list, got text"),
        ("[hooks]\nuser = 'no'", "has a mistake at hooks.user: expected true or false, got text"),
        ("[rules]\ndeny = [{ command = 'a; b' }]", "has a rule that cannot be used: 'a; b' is more than one command"),
        ("[rules]\ndeny = [{}]", "has a rule that cannot be used: a rule names a kind, a path or a command"),
        ("[spending]\nday = -1", "has -1.0 at spending.day; write dollars, 0 or more"),
        ("[spending]\nday = inf", "has inf at spending.day"),
        ("[mcp]\nurls = ['example.com']", "has 'example.com' at mcp.urls, which has to begin with http"),
        ("[mcp]\ncommands = ['']", "has '' at mcp.commands, which is no command line"),
        ("web = false", "has no table for web: write [web]"),
        ("file = 'x'", "has the unknown key 'file'"),
        ("[modes", "is no TOML: "),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in failure(written(tmp_path, text))


def test_a_file_that_others_could_have_written_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    assert "belongs to user" in failure(file, os.getuid() + 1)
    for mode in (0o664, 0o646):
        os.chmod(file, mode)
        assert f"{file} can be written by others than its owner: chmod go-w it" in failure(file)
    os.chmod(file, 0o644)
    os.chmod(os.path.dirname(file), 0o777)
    assert f"{os.path.dirname(file)} can be written by others" in failure(file)


def test_a_link_and_a_folder_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    os.rename(file, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", file)
    assert f"{file} is a link" in failure(file)
    os.unlink(file)
    os.mkdir(file)
    assert "is a directory" in failure(file)
    os.rmdir(file)
    os.rename(os.path.dirname(file), tmp_path / "real")
    os.symlink(tmp_path / "real", os.path.dirname(file))
    assert "is no folder; a link is not followed" in failure(file)


def test_servers_are_bounded_by_their_words_and_their_addresses() -> None:
    mcp = parsed("[mcp]\ncommands = ['npx -y @corp/*', 'uvx tool *']\nurls = ['https://*.corp.com/mcp/*']").mcp

    def starts(*words: str) -> bool:
        return mcp.allows(McpStdio("a", words[0], list(words[1:])))

    def reaches(url: str) -> bool:
        return mcp.allows(McpHttp("a", url))

    assert starts("npx", "-y", "@corp/x") and starts("uvx", "tool") and starts("uvx", "tool", "a", "b")
    assert not starts("npx", "-y", "@corp/x", "--call", "rm")
    assert not starts("/tmp/npx", "-y", "@corp/x")
    assert reaches("https://a.corp.com/mcp/one")
    assert not reaches("https://evil.com/.corp.com/mcp/one")
    assert not reaches("https://a@b.corp.com/mcp/one")
    assert not reaches("http://a.corp.com/mcp/one")
    assert not mcp.allows(McpAcp("a", "1"))
    assert NOTHING_MANAGED.mcp.allows(McpAcp("a", "1"))


def test_models_and_addresses_are_bounded() -> None:
    models = parsed("[models]\nallowed = ['anthropic/*']\naddresses = ['https://llm.corp.com:8443']").models
    assert models.allows("anthropic/claude-sonnet-5") and models.allows("demo")
    assert not models.allows("openai/gpt-5") and not models.allows("script")
    assert models.allows_address("https://llm.corp.com:8443/v1")
    assert not models.allows_address("https://llm.corp.com/v1")
    assert not models.allows_address("https://llm.corp.com:8443.evil.com/v1")
