"""Rewinding what others than the agent's own calls have changed: helpers, servers, background commands, and `/undo`."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import raw
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash, call
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RW15")
async def test_what_helpers_have_changed_comes_back(tmp_path: Path) -> None:
    works = [bash("echo helper > file; echo helper > new"), {"say": "My report."}]
    script = {"agents": {"agent": {"turns": [{"steps": works}]}}}
    task = call("agent", description="write", prompt="write")
    async with desk(tmp_path, [task, {"say": "done"}], script=script) as it:
        await it.say("let a helper write")
        assert tree(it.folder) == {"file": "- helper\n", "new": "- helper\n"}, it.model.results
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW15")
async def test_what_a_command_writes_that_still_runs_is_left_alone_after_a_rewind(tmp_path: Path) -> None:
    ordered = shlex.quote(str(tmp_path / "order"))
    server = bash(f"echo x > file; until [ -e {ordered} ]; do sleep 0.02; done; echo later > file", background=True)
    async with desk(tmp_path, [server, {"say": "done"}]) as it:
        await it.say("serve")
        await until(lambda: (it.folder / "file").read_text() == "x\n", "the command has written")
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}
        (tmp_path / "order").touch()
        await until(lambda: (it.folder / "file").read_text() == "later\n", "the command has written again")
        shown = await it.rewind(scope="files", undo=True)
        assert it.names(shown) == {("file", "change", "changed since")}
        assert tree(it.folder) == {"file": "- later\n"}


@pytest.mark.requirement("RW15")
@pytest.mark.parametrize("prompt", ["look at @docs:docs://guide", "/mcp__docs__hello", "@docs:docs://none"])
async def test_what_a_server_changes_that_the_prompt_itself_names_comes_back(tmp_path: Path, prompt: str) -> None:
    docs = raw("library", str(tmp_path / "project" / "file"), name="docs")
    async with desk(tmp_path, [{"say": "done"}], mcp_servers=[docs]) as it:
        await it.say(prompt)
        assert tree(it.folder) == {"file": "- one\nread by the server\n"}
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


WRITES: list[list[Any]] = [[call("write_file", path="file", content=f"{word}\n"), {"say": word}] for word in ("a", "b")]


@pytest.mark.requirement("RW15")
async def test_what_a_rewind_has_put_back_is_not_undone_again(tmp_path: Path) -> None:
    async with desk(tmp_path, *WRITES) as it:
        await it.say("write a", "write b")
        await it.rewind(scope="files")
        await it.say("/undo")
        assert tree(it.folder) == {"file": "- a\n"}


@pytest.mark.requirement("RW15")
async def test_an_undo_is_itself_rewound(tmp_path: Path) -> None:
    async with desk(tmp_path, *WRITES) as it:
        await it.say("write a", "write b", "/undo")
        assert tree(it.folder) == {"file": "- a\n"}
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- b\n"}


@pytest.mark.requirement("RW15")
async def test_after_an_undo_its_prompt_is_rewound_without_trouble(tmp_path: Path) -> None:
    async with desk(tmp_path, *WRITES) as it:
        await it.say("write a", "write b", "/undo")
        done = await it.rewind((await it.ids())[1], scope="both")
        assert ([file for file in done.files if file.trouble], done.prompts) == ([], 2)
        assert tree(it.folder) == {"file": "- a\n"}
        assert await it.shown() == ["write a", "a"]
