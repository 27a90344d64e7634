"""The names of `dragoman` itself: all there, each from where it is used, and none paid for before."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Unpack, get_origin

import pytest

import dragoman
from dragoman.client.settings import ConnectSettings
from dragoman.store.contract import SessionMeta
from dragoman.testing import AgentSettings
from dragoman.transports.memory import memory_pair
from tests.support.needs import ROOT
from tests.support.public_surface import MEMBERS_FILE, members

# Of ours, what `import dragoman` loads; and of what others wrote, nothing.
AT_ONCE = {"dragoman", "dragoman.version"}


def loaded(program: str) -> set[str]:
    """The modules of a fresh interpreter after a program, beside those it starts with."""
    told = "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    whole = f"import sys; before = set(sys.modules)\n{program}\n{told}"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", dragoman.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(dragoman, name) is not None
    assert name in dir(dragoman)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'conect'"):
        dragoman.conect  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Decider", "PermissionHandler"),
        ("Fleet", "AgentRegistry"),
        ("Patience", "Timeouts"),
        ("Policy", "PermissionPolicy"),
        ("Rule", "PermissionRule"),
    ],
)
def test_a_former_name_works_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"dragoman.{old} is called dragoman.{new} now") as caught:
        found = getattr(dragoman, old)
    assert found is getattr(dragoman, new)
    assert [warning.filename for warning in caught] == [__file__]
    assert old not in dir(dragoman)


def test_the_former_name_of_a_parameter_works_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="patience= is called timeouts= now"):
        dragoman.connect("agent", patience=dragoman.Timeouts(startup=1))
    permissions = dragoman.PermissionHandler(dragoman.PermissionPolicy(), [tmp_path])
    with pytest.warns(DeprecationWarning, match="decider= is called permissions= now"):
        dragoman.Workspace([tmp_path], environment={}, decider=permissions)


@pytest.mark.anyio
async def test_the_former_name_of_the_trace_of_a_bridge_works_with_a_warning() -> None:
    (editor, _), (agent, _) = memory_pair(1), memory_pair(1)
    with pytest.warns(DeprecationWarning, match="trace_back= is called trace_agent= now"):
        dragoman.Bridge(editor, agent, trace_back=lambda direction, frame: None)


@pytest.mark.anyio
async def test_the_former_way_to_start_a_program_works_with_a_warning() -> None:
    from dragoman.transports.spawn import spawner

    with pytest.warns(DeprecationWarning, match="is called ChildTransport.spawn") as caught:
        start = spawner(["true"], cwd=None, env={})
    assert caught[0].filename == __file__
    transport = start()
    assert isinstance(transport, dragoman.ChildTransport)
    await transport.close()


def test_importing_the_package_loads_nothing_else() -> None:
    found = loaded("import dragoman")
    assert {name for name in found if name.startswith("dragoman")} == AT_ONCE
    assert not found & {"asyncio", "msgspec", "inspect", "importlib.metadata", "socket", "subprocess"}


@pytest.mark.parametrize(
    ("names", "without"),
    [
        ("Agent, Session, Prompt, SqliteStore", "dragoman.client"),
        ("Select, Choice, Toggle, PlanEntry", "asyncio"),
        ("connect, Client, Conversation, Turn, Answer, Timeouts", "dragoman.agent"),
        ("Workspace, PermissionHandler, PermissionPolicy, PermissionRule, AgentRegistry", "dragoman.agent"),
        ("events, errors, RequestPermission, PermissionOption", "asyncio"),
    ],
)
def test_a_program_does_not_load_what_it_does_not_use(names: str, without: str) -> None:
    found = loaded(f"from dragoman import {names}")
    assert not [name for name in found if name == without or name.startswith(f"{without}.")]
    assert not {name.partition(".")[0] for name in found} & {"rich", "prompt_toolkit", "httpx2", "websockets", "mcp"}


CLIENT = """
import asyncio, os, sys
from dragoman import PermissionHandler, PermissionPolicy, PermissionRule, RequestPermission
from dragoman import Turn, Workspace, connect, errors, events

async def main(command, folder):
    permissions = PermissionHandler(PermissionPolicy("read", (PermissionRule("allow", "edit"),)), [folder])
    async with Workspace([folder], environment=os.environ, permissions=permissions) as workspace:
        async with connect(command, permission=permissions, **workspace.callbacks()) as client:
            session = await client.new_session(folder)
            turn: Turn = session.prompt("hello there")
            async for event in turn:
                match event:
                    case events.AgentMessageChunk():
                        print(event.text, end="")
                    case events.Idle():
                        print(f" ({turn.stop_reason})")
            try:
                await client.load_session("nobody", folder)
            except errors.RequestFailed as error:
                print(type(error).__name__)

asyncio.run(main(sys.argv[2:], sys.argv[1]))
"""


def test_a_client_needs_no_other_module(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLIENT, str(tmp_path), sys.executable, str(ROOT / "examples" / "agent.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("You said: hello there (end_turn)\nRequestFailed\n", "")


def keywords(function: Callable[..., object]) -> dict[str, str]:
    """The keyword parameters of a function with their types, as they are written."""
    found = inspect.signature(function).parameters.values()
    return {one.name: str(one.annotation) for one in found if one.kind is inspect.Parameter.KEYWORD_ONLY}


def test_connect_sync_and_the_functions_that_pass_settings_on_name_every_setting_of_connect() -> None:
    assert keywords(dragoman.connect_sync) == keywords(dragoman.connect)
    assert {name: str(kind) for name, kind in ConnectSettings.__annotations__.items()} == keywords(dragoman.connect)


def test_a_scripted_agent_names_every_setting_of_an_agent() -> None:
    assert set(AgentSettings.__annotations__) == set(keywords(dragoman.Agent))


@pytest.mark.parametrize("name", sorted(set(dragoman.__all__) - {"__version__", "errors", "events"}))
def test_completion_shows_every_parameter(name: str) -> None:
    """`**settings` are typed, so an editor knows what they may be."""
    found = getattr(dragoman, name)
    methods = [] if not inspect.isclass(found) else [m for n, m in inspect.getmembers(found, inspect.isfunction)]
    untyped = [
        method.__qualname__
        for method in [found, *methods]
        if method.__module__.startswith("dragoman")
        for one in inspect.signature(method).parameters.values()
        if one.kind is inspect.Parameter.VAR_KEYWORD and get_origin(one.annotation) is not Unpack
    ]
    assert untyped == []


def test_the_members_of_the_public_classes_are_those_that_are_listed() -> None:
    """A change of the surface is seen in a diff. If it is meant, `python -m tests.support.public_surface` lists it."""
    listed = MEMBERS_FILE.read_text(encoding="utf-8").splitlines()
    assert (sorted(set(members()) - set(listed)), sorted(set(listed) - set(members()))) == ([], [])


@pytest.mark.anyio
async def test_the_former_names_of_the_methods_of_a_store_work_with_a_warning(tmp_path: Path) -> None:
    store = dragoman.SqliteStore(tmp_path)
    try:
        log = await store.create(SessionMeta("sess-1", "/a"))
        await log.release()
        with pytest.warns(DeprecationWarning, match="SqliteStore.look is called SqliteStore.read_meta now") as looked:
            assert await store.look("sess-1") == await store.read_meta("sess-1")
        with pytest.warns(DeprecationWarning, match="SqliteStore.names is called SqliteStore.ids now"):
            assert await store.names("sess") == ["sess-1"]
        assert [warning.filename for warning in looked] == [__file__]
    finally:
        await store.close()
