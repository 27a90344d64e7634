"""The administrator's file: what it may say, whose it has to be, and that no mistake in it is passed over."""

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from dragoman import limits
from dragoman.coder.hook_files import Hook
from dragoman.coder.managed_file import ManagedFileFailed, parse_managed, read_managed
from dragoman.coder.managed_settings import NOTHING_MANAGED, TABLES, ManagedSettings, RulePattern
from dragoman.vocabulary.requests import McpAcp, McpHttp, McpStdio

WHOLE = """
[modes]
allowed = ["ask", "sandbox"]
highest = "ask"
default = "sandbox"
[rules]
deny = [{ command = "curl *" }, { path = "secrets/**" }]
ask = [{ command = "git push" }]
allow = [{ command = "make test" }]
only_managed = true
[models]
allowed = ["anthropic/*"]
addresses = ["https://api.anthropic.com"]
base_urls = { anthropic = "https://api.anthropic.com" }
fallback = false
[mcp]
names = ["corp-*"]
commands = ["npx -y @corp/*"]
urls = []
denied_names = ["corp-old"]
denied_commands = ["npx -y @corp/old *"]
denied_urls = ["https://old.corp.com"]
[hooks]
user = false
project = false
only_managed = true
[[hooks.managed.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = "/usr/local/bin/audit" }]
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
[language_servers]
names = ["pyright"]
commands = ["/usr/bin/gopls *"]
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
    assert os.path.dirname(file) in str(caught.value)  # where that is what is wrong, the folder alone
    return str(caught.value)


def test_every_key_is_read_and_shown_by_its_whole_name() -> None:
    found = parsed(WHOLE)
    assert found.rules.deny == (RulePattern(command="curl *"), RulePattern(path="secrets/**"))
    assert found.spending.turn == 1.0
    every = {f"{table}.{key.name}" for table in TABLES for key in fields(getattr(found, table))}
    assert set(found.written()) == every - {"web.fetch"}  # that is written as it would be without the file
    assert NOTHING_MANAGED.written() == {}


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
        ("[mcp]\ndenied_commands = ['']", "has '' at mcp.denied_commands, which is no command line"),
        ("[mcp]\ndenied_urls = ['x']", "has 'x' at mcp.denied_urls, which has to begin with http"),
        ("[modes]\ndefault = 'asks'", "names the unknown mode 'asks'"),
        ("[modes]\nhighest = 'safe'\ndefault = 'ask'", "has 'ask' at modes.default, which it does not allow"),
        ("[models.base_urls]\nopenai = 'x'", "has 'x' at models.base_urls.openai, which has to begin with http"),
        (
            "[models]\naddresses = ['https://a.com']\nbase_urls = { openai = 'https://b.com/v1' }",
            "has 'https://b.com/v1' at models.base_urls.openai, which models.addresses does not allow",
        ),
        ("[hooks.managed]\nPreTool = []", "has the unknown key hooks.managed.PreTool; there are PreToolUse,"),
        ("[[hooks.managed.Stop]]\nmatcher = 'x'", "has a hook that would not run: hooks.managed: Stop: each of its"),
        (
            "[[hooks.managed.PreToolUse]]\nmatcher = '('\nhooks = [{ command = 'x' }]",
            "the matcher ( is no pattern",
        ),
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
    for folder in (os.path.dirname(file), str(tmp_path)):
        before = os.stat(folder).st_mode
        os.chmod(folder, 0o777)
        with pytest.raises(ManagedFileFailed, match=f"{re.escape(folder)} can be written by others"):
            read_managed(file, os.getuid())
        os.chmod(folder, before)
    assert read_managed(file, os.getuid()).file == file


def test_a_folder_that_others_can_write_is_refused_without_a_file_too(tmp_path: Path) -> None:
    """One who can write there could have taken the file away."""
    file = written(tmp_path, "")
    os.unlink(file)
    assert read_managed(file, os.getuid()) is NOTHING_MANAGED
    os.chmod(os.path.dirname(file), 0o777)
    assert "can be written by others" in failure(file)


def test_a_file_that_is_too_long_or_no_file_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "#" * (limits.CONFIG_BYTES + 1))
    assert f"{file} cannot be read (it is too long)" in failure(file)
    os.unlink(file)
    os.mkfifo(file)
    assert f"{file} cannot be read (this is no regular file)" in failure(file)


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


def test_servers_are_bounded_by_their_names_and_what_is_denied() -> None:
    mcp = parsed(
        "[mcp]\nnames = ['corp-*']\ndenied_names = ['corp-old']\ndenied_commands = ['docker *']\n"
        "denied_urls = ['https://old.corp.com']"
    ).mcp
    assert mcp.allows(McpStdio("corp-a", "npx")) and mcp.allows(McpAcp("corp-a", "1"))
    assert not mcp.allows(McpStdio("other", "npx")) and not mcp.allows(McpStdio("corp-old", "npx"))
    assert not mcp.allows(McpStdio("corp-a", "docker", ["run", "x"]))
    assert not mcp.allows(McpHttp("corp-a", "https://old.corp.com/mcp"))
    assert mcp.allows(McpHttp("corp-a", "https://new.corp.com/mcp"))


def test_modes_that_only_read_may_always_be_used() -> None:
    modes = parsed("[modes]\nallowed = ['full-access', 'sandbox']\nhighest = 'ask'").modes
    named = ("read-only", "plan", "safe", "sandbox", "workspace-write", "ask", "full-access", "no mode")
    assert [mode for mode in named if modes.permits(mode)] == ["read-only", "plan", "sandbox"]
    assert all(NOTHING_MANAGED.modes.permits(mode) for mode in named[:-1])


def test_the_hooks_of_the_file_are_offered_as_those_of_other_files_are() -> None:
    settings = parsed(WHOLE)
    (hook,) = settings.hook_list()
    assert (hook.event, hook.matcher, hook.command) == ("PreToolUse", "Bash", "/usr/local/bin/audit")
    assert (hook.origin, hook.file, isinstance(hook, Hook)) == ("managed", "managed.toml", True)
    assert [settings.hooks.allows(origin) for origin in ("managed", "user", "project")] == [True, False, False]
    some = parsed("[hooks]\nproject = false").hooks
    assert [some.allows(origin) for origin in ("managed", "user", "project")] == [True, True, False]


def test_the_page_for_administrators_has_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "administrators.md").read_text()
    keys = [f"`{table}.{key.name}`" for table in TABLES for key in fields(getattr(NOTHING_MANAGED, table))]
    assert [key for key in keys if key not in page] == []


def test_the_example_of_the_page_is_a_file_that_can_be_used() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "administrators.md").read_text()
    found = parsed(page.partition('managed.toml"\n')[2].partition("```")[0])
    assert {key.partition(".")[0] for key in found.written()} == {
        "modes",
        "rules",
        "models",
        "mcp",
        "hooks",
        "spending",
    }
