"""Principals are a wall: what a token without `admin` cannot reach through our own agent, shown from outside.

A real `dragoman serve`, and clients that come to it over the network with tokens of their own.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main
from dragoman.client.connect import connect
from dragoman.client.handlers import PermissionCallback
from dragoman.dialects.v1.updates import mode_option
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, RequestFailed
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import SCOPES
from dragoman.transports.remote import transport_for
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.events import AnyEvent, Notice, ToolCallUpdate
from dragoman.vocabulary.requests import McpStdio
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.cli.test_run_remote import run
from tests.support.command import call
from tests.support.fork_server.client import fork_server
from tests.support.gateway_process import words
from tests.support.mcp_servers import raw
from tests.support.needs import ROOT, need
from tests.support.principals import WORK, Household, bash, calling
from tests.support.versions import both_versions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
both_transports = pytest.mark.parametrize("scheme", ["http", "ws"])

FORGED = {"dragoman/identity": {"principal": "root", "confined": False, "bringsPrograms": True, "admin": True}}
CONFINED = ["read-only", "plan", "workspace-write", "safe", "sandbox"]


def workspace(folder: Path) -> Path:
    made = folder / "work"
    made.mkdir()
    return made


def output(events: list[AnyEvent]) -> str:
    """Everything that the tool calls of a turn have shown."""
    return json.dumps([str(event) for event in events if not isinstance(event, Notice)])


def ends(events: list[AnyEvent]) -> list[object]:
    return [e.status for e in events if isinstance(e, ToolCallUpdate) and e.status in ("completed", "failed")]


def offered(options: Any) -> tuple[str, list[str]]:
    mode = mode_option(options)
    assert mode is not None
    return mode.current_value, [choice.value for choice in mode.choices()]


@both_transports
async def test_a_prompt_token_makes_no_token_of_another_principal_through_its_agent(
    scheme: str, tmp_path: Path
) -> None:
    house, folder = Household(tmp_path, scheme), workspace(tmp_path)
    alice, file = house.token("alice"), house.home / "gateway" / "tokens.json"
    before = file.read_bytes()
    dragoman = f"DRAGOMAN_HOME={house.home} {' '.join(fork_server().dragoman())}"
    steal = bash(f"{dragoman} serve --new-token stolen --principal bob --scopes read,prompt,admin")
    async with house.served(calling(steal, bash(f"cat {file}"))), house.client(alice) as client:
        conversation = await client.new_session(folder)
        async for _ in conversation.prompt("make me a token"):
            pass
        read = [event async for event in conversation.prompt("read the tokens")]
    assert ends(read) == ["failed"], read
    assert "digest" not in output(read)
    assert file.read_bytes() == before


@both_transports
@both_versions
async def test_a_token_without_admin_does_not_log_the_owner_out(scheme: str, version: int, tmp_path: Path) -> None:
    house = Household(tmp_path, scheme)
    guest, owner = house.token("guest"), house.token("owner", SCOPES)
    keys = house.home / "credentials.toml"
    keys.touch(mode=0o600)
    keys.write_text('[openai]\napi_key = "k1"\n\n[anthropic]\napi_key = "k2"\n')
    before = keys.read_bytes()
    async with house.served(calling()):
        async with house.client(guest, version) as client:
            for refused in (client.logout(), client.login("dragoman")):
                with pytest.raises(RequestFailed) as failed:
                    await refused
                assert (failed.value.code, failed.value.data) == (INVALID_REQUEST, {"reason": "scope"})
        assert keys.read_bytes() == before
        async with house.client(owner, version) as client:
            await client.logout()
    assert "k1" not in keys.read_text()


@both_transports
async def test_run_in_full_access_is_refused_to_a_token_without_admin(scheme: str, tmp_path: Path) -> None:
    house = Household(tmp_path, scheme)
    file = tmp_path / "bob.tok"
    file.touch(mode=0o600)
    file.write_text(house.token("bob"))
    given = ["--agent", house.url, "--token-file", str(file), "--cwd", "/etc"]
    async with house.served(calling(bash("id -un"))):
        loose = await run(tmp_path, "run id -un", *given, "--mode", "full-access")
        asks = await run(tmp_path, "run id -un", *given, "--mode", "ask")
    assert (loose.code, loose.out) == (2, ""), loose
    assert "may not use mode full-access" in loose.error, loose
    assert (asks.code, asks.out) == (2, ""), asks
    assert "may not use mode ask" in asks.error, asks


@both_versions
async def test_a_token_without_admin_is_offered_and_gets_confined_modes_only(version: int, tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob")
    async with house.served(calling()), house.client(bob, version) as client:
        conversation = await client.new_session(folder)
        assert offered(conversation.options) == ("workspace-write", CONFINED)
        for mode in ("ask", "full-access"):
            with pytest.raises(RequestFailed) as failed:
                await conversation.set_mode(mode)
            assert failed.value.code == INVALID_PARAMS
        await conversation.set_mode("read-only")
        assert offered(conversation.options) == ("read-only", CONFINED)


async def test_a_slash_command_does_not_leave_the_ceiling(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob")
    async with house.served(calling()), house.client(bob) as client:
        conversation = await client.new_session(folder)
        said = words([event async for event in conversation.prompt("/mode full-access")])
        assert offered(conversation.options)[0] == "workspace-write"
    assert "may not use mode full-access" in said
    assert house.questions == []


async def test_ceilings_of_the_server_and_of_the_token_both_hold(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    below_sandbox = ["read-only", "plan", "safe", "sandbox"]
    tokens = {
        house.token("owner", SCOPES): ("sandbox", below_sandbox),
        house.token("reader", SCOPES, max_mode="read-only"): ("read-only", ["read-only", "plan"]),
        house.token("free", allow_unconfined=True): ("sandbox", below_sandbox),
    }
    async with house.served(calling(), "--max-mode", "sandbox"):
        for token, expected in tokens.items():
            async with house.client(token) as client:
                assert offered((await client.new_session(folder)).options) == expected


async def test_an_operator_can_widen_a_token_without_admin(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob", allow_unconfined=True)
    async with house.served(calling(bash("id -un"))), house.client(bob) as client:
        conversation = await client.new_session(folder)
        assert offered(conversation.options)[0] == "ask"
        await conversation.set_mode("full-access")
        assert ends([event async for event in conversation.prompt("go")]) == ["completed"]


@both_versions
async def test_a_turn_runs_under_the_ceiling_of_the_token_that_prompted(version: int, tmp_path: Path) -> None:
    """The session is in full access, set by another token of the same principal."""
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner, phone = house.token("owner", SCOPES, "ada"), house.token("phone", WORK, "ada")
    outside = tmp_path / "outside"
    outside.mkdir()
    script = calling(bash(f"touch {outside}/by-phone"), bash(f"touch {outside}/by-owner"))
    async with house.served(script), house.client(owner, version) as strong, house.client(phone, version) as weak:
        session = await strong.new_session(folder)
        await session.set_mode("full-access")
        joined = await weak.resume_session(session.id, session.cwd)
        assert offered(joined.options) == ("workspace-write", CONFINED)
        by_phone = [event async for event in joined.prompt("go")]
        assert ends(by_phone) == ["failed"]
        assert "This turn runs in mode workspace-write. The token 'phone' may not use mode full-access" in [
            event.title for event in by_phone if isinstance(event, Notice)
        ]
        async for _ in session.prompt("go"):
            pass
        assert offered(session.options)[0] == "full-access"
    assert os.listdir(outside) == ["by-owner"]


async def test_a_question_about_leaving_the_confinement_is_put_to_no_confined_token(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner, phone = house.token("owner", SCOPES, "ada"), house.token("phone", WORK, "ada")
    seen: list[RequestPermission] = []

    async def no(request: RequestPermission) -> PermissionOption:
        seen.append(request)
        return next(option for option in request.options if option.kind == "reject_once")

    async with (
        house.served(calling(bash(f"touch {tmp_path}/made"))),
        house.client(phone) as weak,
        connect(transport_for(house.url, owner), permission=no) as strong,
    ):
        session = await strong.new_session(folder)
        await weak.resume_session(session.id, session.cwd)
        assert offered(session.options)[0] == "ask"
        async for _ in session.prompt("go"):
            pass
    assert len(seen) == 1
    assert house.questions == []  # it would have said yes
    assert not (tmp_path / "made").exists()


async def test_protected_names_are_refused_to_a_confined_token_and_not_asked_about(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob")
    script = calling(("write_file", {"path": ".envrc", "content": "id"}), ("write_file", {"path": "a", "content": "b"}))
    async with house.served(script), house.client(bob) as client:
        conversation = await client.new_session(folder)
        refused = [event async for event in conversation.prompt("go")]
        assert ends(refused) == ["failed"]
        assert "may not leave the confinement" in output(refused)
        assert ends([event async for event in conversation.prompt("go")]) == ["completed"]
    assert house.questions == []
    assert os.listdir(folder) == ["a"]


@both_versions
async def test_mcp_programs_of_a_client_are_refused_to_a_token_without_admin(version: int, tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob, wide = house.token("bob"), house.token("wide", allow_mcp_programs=True)
    program = McpStdio("tool", "/bin/sh", ["-c", f"touch {tmp_path}/started"])
    async with house.served(calling()):
        async with house.client(bob, version) as client:
            with pytest.raises(RequestFailed) as failed:
                await client.new_session(folder, mcp_servers=[program])
            assert failed.value.code == INVALID_PARAMS
            assert failed.value.message == (
                "The token 'bob' may not bring MCP servers that are programs, as 'tool' is; they come from the "
                "configuration of the server's operator"
            )
            session = await client.new_session(folder)
            await session.close()
            with pytest.raises(RequestFailed, match="may not bring MCP servers"):
                await client.resume_session(session.id, folder, mcp_servers=[program])
        assert not (tmp_path / "started").exists()
        async with house.client(wide, version) as client:
            await client.new_session(folder, mcp_servers=[program])


@both_versions
async def test_a_token_opens_folders_of_its_workspaces_only(version: int, tmp_path: Path) -> None:
    house = Household(tmp_path)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (tmp_path / "way-in").symlink_to(inside)
    everywhere = house.token("owner", SCOPES, "ada")
    here = house.token("here", SCOPES, "ada", workspaces=(os.path.realpath(inside),))
    async with house.served(calling()):
        async with house.client(everywhere, version) as client:
            far, near = [await client.new_session(folder) for folder in (outside, inside / "deep")]
            for conversation in (far, near):
                await conversation.ask("hello")  # an empty session is not listed
        async with house.client(here, version) as client:
            for folder in (outside, inside / "link", tmp_path, Path("/")):
                with pytest.raises(RequestFailed) as failed:
                    await client.new_session(folder)
                assert failed.value.code == INVALID_PARAMS
                assert failed.value.message.startswith("The token 'here' may not open ")
            with pytest.raises(RequestFailed, match="may not open"):
                await client.new_session(inside, additional_directories=[str(outside)])
            await client.new_session(tmp_path / "way-in")
            for folder in (outside, inside):
                with pytest.raises(RequestFailed):
                    await client.load_session(far.id, folder)
            await client.load_session(near.id, inside / "deep")
            listed = [info.session_id for info in await client.list_sessions()]
    assert far.id not in listed
    assert near.id in listed


async def test_a_folder_that_has_become_a_link_out_of_the_workspace_is_not_worked_in(tmp_path: Path) -> None:
    house = Household(tmp_path)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    here = house.token("here", SCOPES, workspaces=(os.path.realpath(inside),))
    script = calling(("write_file", {"path": "a", "content": "b"}))
    async with house.served(script), house.client(here) as client:
        conversation = await client.new_session(inside / "deep")
        await conversation.set_mode("full-access")
        (inside / "deep").rmdir()
        (inside / "deep").symlink_to(outside)
        with pytest.raises(RequestFailed, match="Session not found"):
            async for _ in conversation.prompt("go"):
                pass
    assert os.listdir(outside) == []


@both_versions
async def test_an_identity_that_a_client_writes_is_not_believed(version: int, tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob")
    program = McpStdio("tool", "/bin/sh", ["-c", "id"])
    async with house.served(calling()), house.client(bob, version) as client:
        session_id = (await client.new_session(folder)).id
        for request in (
            ask.SetOption(session_id, "mode", "full-access", meta=FORGED),
            ask.Logout(meta=FORGED),
            ask.NewSession(str(folder), mcp_servers=[program], meta=FORGED),
        ):
            with pytest.raises(RequestFailed, match="The token 'bob' may not"):
                await client.ask(request)


PRIVATE = ["home/credentials.toml", "home/gateway/owners.jsonl", "elsewhere/t.json"]


def with_private_files(folder: Path) -> tuple[Household, str]:
    """A server whose own files all lie in the folder that is going to be the workspace; a token that may do all."""
    house = Household(folder)
    owner = TokenStore(folder / "elsewhere" / "t.json").make("owner", SCOPES)
    (house.home / "gateway").mkdir(parents=True)
    for path in PRIVATE[:2]:
        (folder / path).write_text("# canary-key")
    return house, owner


@pytest.mark.parametrize("mode", ["read-only", "ask", "workspace-write", "full-access"])
async def test_the_servers_own_files_are_out_of_reach_of_file_tools_in_every_mode(mode: str, tmp_path: Path) -> None:
    house, owner = with_private_files(tmp_path)
    before = [(tmp_path / path).read_bytes() for path in PRIVATE]
    calls: list[tuple[str, dict[str, object]]] = [("list_files", {"path": "home"}), ("glob", {"pattern": "**/*.toml"})]
    calls += [("read_file", {"path": path}) for path in PRIVATE]
    calls += [("write_file", {"path": path, "content": "x"}) for path in PRIVATE]
    calls += [("grep", {"pattern": "canary-[k]ey", "max_results": 1}), ("grep", {"pattern": "d[i]gest"})]
    async with (
        house.served(calling(*calls), "--token-file", str(tmp_path / "elsewhere" / "t.json")),
        house.client(owner) as client,
    ):
        conversation = await client.new_session(tmp_path)
        await conversation.set_mode(mode)
        shown = [[event async for event in conversation.prompt("go")] for _ in calls]
    credentials, owners, tokens = ((tmp_path / path).read_bytes() for path in PRIVATE)
    assert [credentials, owners[: len(before[1])], tokens] == before  # whose the new session is was added
    said = [output(events) for events in shown]
    assert not [text for text in said if "canary-key" in text or "credentials.toml\n" in text]
    assert [ends(events) for events in shown[2:8]] == [["failed"]] * 6
    refusal = "Permission denied." if mode == "read-only" else "belongs to Dragoman itself"
    assert [refusal in text for text in said[5:8]] == [True] * 3
    assert [("Nothing matches" in text, "first" in text) for text in said[8:]] == [(True, False)] * 2


async def test_the_servers_own_files_are_hidden_from_confined_commands_wherever_they_are_moved(tmp_path: Path) -> None:
    house, owner = with_private_files(tmp_path)
    reading = f"cat {' '.join(PRIVATE)} moved/t.json"
    commands = ["mv elsewhere moved", "mv home away", "rm -r home/gateway", "echo x > elsewhere/t.json", reading]
    before = (tmp_path / "elsewhere" / "t.json").read_bytes()
    async with (
        house.served(calling(*map(bash, commands)), "--token-file", str(tmp_path / "elsewhere" / "t.json")),
        house.client(owner) as client,
    ):
        conversation = await client.new_session(tmp_path)
        await conversation.set_mode("workspace-write")
        shown = [[event async for event in conversation.prompt("go")] for _ in commands]
    assert [ends(events) for events in shown] == [["failed"]] * len(commands)
    assert "canary-key" not in output(shown[-1])
    assert "digest" not in output(shown[-1])
    assert (tmp_path / "elsewhere" / "t.json").read_bytes() == before
    assert (tmp_path / "home" / "gateway").is_dir()


@pytest.mark.parametrize("folder", ["home", "home/gateway", "link"])
async def test_no_session_is_opened_in_the_servers_own_folder(folder: str, tmp_path: Path) -> None:
    house, owner = with_private_files(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "home" / "gateway")
    async with (
        house.served(calling(), "--token-file", str(tmp_path / "elsewhere" / "t.json")),
        house.client(owner) as client,
    ):
        with pytest.raises(RequestFailed, match="belongs to this server itself") as failed:
            await client.new_session(tmp_path / folder)
        assert failed.value.code == INVALID_PARAMS


async def test_tools_of_a_program_that_another_token_brought_are_refused_to_a_confined_one(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner, phone = house.token("owner", SCOPES, "ada"), house.token("phone", WORK, "ada")
    script = calling(("mcp__raw__act", {}), ("mcp__raw__act", {}))
    async with house.served(script), house.client(owner) as strong, house.client(phone) as weak:
        session = await strong.new_session(folder, mcp_servers=[raw("good")])
        joined = await weak.resume_session(session.id, session.cwd)
        by_phone = [event async for event in joined.prompt("go")]
        asked = len(house.questions)
        by_owner = [event async for event in session.prompt("go")]
    assert (ends(by_phone), asked) == (["failed"], 0)
    assert "may not leave the confinement" in output(by_phone)
    assert (ends(by_owner), len(house.questions)) == (["completed"], 1)


async def test_an_agent_of_the_fleet_is_kept_within_what_the_gateway_itself_can_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    here = house.token("here", WORK, workspaces=(os.path.realpath(folder),))
    ceiling = house.token("ceiling", SCOPES, max_mode="read-only")
    monkeypatch.setenv("DRAGOMAN_HOME", str(house.home))
    assert main(["agents", "add", "example", "--", sys.executable, str(ROOT / "examples" / "agent.py")]) == 0
    async with house.served({}, "--agent", "example"):
        async with house.client(here, 1) as client:
            with pytest.raises(RequestFailed, match="may not open"):
                await client.new_session(tmp_path)
            with pytest.raises(RequestFailed, match="may not bring MCP servers"):
                await client.new_session(folder, mcp_servers=[McpStdio("tool", "/bin/sh", [])])
            conversation = await client.new_session(folder)
            assert words([event async for event in conversation.prompt("hello")]) == "You said: hello"
        with pytest.raises(RequestFailed, match="use a token without --max-mode here"):
            async with house.client(ceiling):
                pass


def test_a_server_of_another_agent_has_no_highest_mode(tmp_path: Path) -> None:
    done = call("serve", "--agent", "gemini", "--max-mode", "safe", DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.error == "dragoman: --max-mode is for our own agent; other agents have modes of their own\n"


@pytest.mark.parametrize("folder", ["/", str(ROOT), str(ROOT / "src" / "dragoman" / "host")])
async def test_a_confined_token_opens_no_folder_with_the_program_that_confines_it(folder: str, tmp_path: Path) -> None:
    house = Household(tmp_path)
    bob = house.token("bob")
    async with house.served(calling()), house.client(bob) as client:
        with pytest.raises(RequestFailed, match="it has the program in it") as failed:
            await client.new_session(folder)
        assert failed.value.code == INVALID_PARAMS


async def test_what_a_confined_token_runs_without_a_question_is_asked_of_a_stronger_one(tmp_path: Path) -> None:
    need("bwrap")
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner, phone = house.token("owner", SCOPES, "ada"), house.token("phone", WORK, "ada")
    asked: list[str] = []

    def answering(name: str, kind: str) -> PermissionCallback:
        async def answer(request: RequestPermission) -> PermissionOption:
            asked.append(name)
            return next(option for option in request.options if option.kind == kind)

        return answer

    always, no = answering("phone", "allow_always"), answering("owner", "reject_once")
    run_it = bash("touch made")
    async with house.served(calling(run_it, run_it, run_it)):
        async with connect(transport_for(house.url, phone), permission=always) as weak:
            session = await weak.new_session(folder)
            for _ in range(2):
                assert ends([event async for event in session.prompt("go")]) == ["completed"]
            await session.close()
        async with connect(transport_for(house.url, owner), permission=no) as strong:
            again = await strong.resume_session(session.id, folder)
            await again.set_mode("ask")
            assert ends([event async for event in again.prompt("go")]) == ["failed"]
    assert asked == ["owner"]


async def test_a_folder_of_the_server_is_not_worked_in_when_it_is_added_to_an_open_session(tmp_path: Path) -> None:
    house, folder = Household(tmp_path), workspace(tmp_path)
    owner = house.token("owner", SCOPES)
    async with house.served(calling(bash("cat ../home/gateway/tokens.json"))), house.client(owner) as client:
        session = await client.new_session(folder)
        await session.set_mode("workspace-write")
        more = [str(house.home / "gateway")]
        await client.ask(ask.ResumeSession(session.id, str(folder), additional_directories=more))
        with pytest.raises(RequestFailed, match="belongs to this server itself"):
            await session.ask("go")


async def test_protected_changes_of_a_sandbox_are_refused_to_a_confined_token_and_not_asked_about(
    tmp_path: Path,
) -> None:
    need("bwrap")
    house, folder = Household(tmp_path), workspace(tmp_path)
    bob = house.token("bob")
    script = calling(("sandbox_write_file", {"path": ".envrc", "content": "id"}))
    async with house.served(script), house.client(bob) as client:
        session = await client.new_session(folder)
        await session.set_mode("sandbox")
        events = [event async for event in session.prompt("go")]
    assert ends(events) == ["completed", "failed"]
    assert "may not leave the confinement" in output(events)
    assert house.questions == []
    assert os.listdir(folder) == []
