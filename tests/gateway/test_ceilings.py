"""What a token may reach, as the gateway tells its agent; and what it judges itself, for every agent."""

import os
from pathlib import Path

import pytest

from dragoman.errors import RequestFailed
from dragoman.gateway.anonymous import ANONYMOUS
from dragoman.gateway.ceilings import AgentModes, Ceilings
from dragoman.gateway.token_types import SCOPES, TokenIdentity, TokenLimits
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.identity import IDENTITY, LOCAL, Identity, Needs, identity_in, with_identity, without_ours
from dragoman.vocabulary.requests import McpHttp, McpStdio, UnknownMcp
from tests.support.gateway import counting, gateway, raw_http

BOB = TokenIdentity("bob", "robert", ("read", "prompt"), digest="1")
ADMIN = TokenIdentity("root", "robert", SCOPES, digest="2")


def test_the_limits_of_server_and_token_are_both_told() -> None:
    server = Ceilings(TokenLimits("ask", ("/srv",)))
    token = BOB._replace(limits=TokenLimits("safe", ("/srv/bob",)))
    assert server.identity(token) == Identity("robert", "bob", ("ask", "safe"), (("/srv",), ("/srv/bob",)))
    free = Identity("robert", "root", ("ask",), (("/srv",),), confined=False, brings_programs=True, admin=True)
    assert server.identity(ADMIN) == free


def test_each_widening_lifts_one_limit_and_none_is_admin() -> None:
    unconfined = Ceilings().identity(BOB._replace(limits=TokenLimits(allow_unconfined=True)))
    assert (unconfined.confined, unconfined.brings_programs, unconfined.admin) == (False, False, False)
    programs = Ceilings().identity(BOB._replace(limits=TokenLimits(allow_mcp_programs=True)))
    assert (programs.confined, programs.brings_programs, programs.admin) == (True, True, False)


def test_a_program_of_the_servers_own_user_is_not_confined_and_no_admin() -> None:
    assert Ceilings().identity(ANONYMOUS) == Identity(confined=False, brings_programs=True)


@pytest.mark.parametrize("request_", [ask.Login("any"), ask.Logout()])
def test_logging_in_and_out_needs_admin_whatever_the_agent(request_: ask.Login | ask.Logout) -> None:
    ceilings = Ceilings()
    with pytest.raises(RequestFailed, match="that needs the scope admin"):
        ceilings.check(request_, ceilings.identity(BOB))
    ceilings.check(request_, ceilings.identity(ADMIN))


def test_servers_that_could_be_programs_are_refused_and_addresses_are_not() -> None:
    ceilings = Ceilings()
    identity = ceilings.identity(BOB)
    ceilings.check(ask.NewSession("/", mcp_servers=[McpHttp("web", "https://example.org")]), identity)
    for server in (McpStdio("tool", "/bin/sh"), UnknownMcp("pipe", {"type": "pipe"})):
        for request in (
            ask.NewSession("/", mcp_servers=[server]),
            ask.ResumeSession("s", "/", mcp_servers=[server]),
            ask.ForkSession("s", "/", mcp_servers=[server]),
        ):
            with pytest.raises(RequestFailed, match="may not bring MCP servers"):
                ceilings.check(request, identity)


@pytest.mark.parametrize("folder", [".", "~", "work", "", "/work\0"])
def test_a_folder_that_means_something_else_to_an_agent_is_not_opened(folder: str) -> None:
    """The server may run in the token's workspace, and its agent somewhere else."""
    ceilings = Ceilings()
    identity = ceilings.identity(BOB._replace(limits=TokenLimits(workspaces=(os.getcwd(),))))
    for request in (ask.NewSession(folder), ask.ForkSession("s", os.getcwd(), additional_directories=[folder])):
        with pytest.raises(RequestFailed, match="is no absolute path of a folder"):
            ceilings.check(request, identity)


def test_a_connection_is_found_again_only_by_a_token_that_may_do_as_much() -> None:
    wide = BOB._replace(limits=TokenLimits(allow_unconfined=True))
    narrow = BOB._replace(limits=TokenLimits("safe"))
    assert [ADMIN.covers(other) for other in (ADMIN, BOB, wide, narrow)] == [True] * 4
    assert [BOB.covers(other) for other in (ADMIN, BOB, wide, narrow)] == [False, True, False, False]
    assert [narrow.covers(other) for other in (ADMIN, BOB, wide, narrow)] == [False, False, False, True]
    assert not ADMIN._replace(limits=TokenLimits("safe")).covers(ADMIN)


def test_what_only_a_gateway_may_say_is_taken_out_of_whatever_a_client_sends() -> None:
    planted = {IDENTITY: {"admin": True}, "mine": 1}
    assert without_ours(ask.Logout(meta=planted)) == ask.Logout(meta={"mine": 1})
    assert without_ours(Extension("_x", {"a": 1, "_meta": planted})) == Extension("_x", {"a": 1, "_meta": {"mine": 1}})
    untouched = ask.Logout(meta={"mine": 1})
    assert without_ours(untouched) is untouched


@pytest.mark.parametrize("said", [None, 1, "x", {"admin": "yes"}, {"workspaces": "/"}])
def test_an_identity_that_is_missing_or_cannot_be_read_may_do_the_least(said: object) -> None:
    assert identity_in(ask.Logout(meta={IDENTITY: said})) == identity_in(ask.Logout()) == Identity()
    assert identity_in(with_identity(ask.Logout(meta={IDENTITY: said}), LOCAL)) == LOCAL


def test_two_who_prompt_in_one_turn_are_within_the_limits_of_both() -> None:
    one = Identity("ada", "laptop", ("ask",), (("/a",),), confined=False, brings_programs=True, admin=True)
    other = Identity("ada", "phone", ("safe",), (("/b",),))
    assert one.joined(other) == Identity("ada", "laptop", ("ask", "safe"), (("/a",), ("/b",)))
    assert one.joined(one) is one


@pytest.mark.parametrize(
    ("folder", "is_inside"), [("/srv/a", True), ("/srv/a/b", True), ("/srv/ab", False), ("/srv", False), ("/", False)]
)
def test_a_folder_is_inside_by_whole_names(folder: str, is_inside: bool) -> None:
    assert Identity(workspaces=(("/etc", "/srv/a/"),)).may_open(folder) is is_inside


def test_without_our_agent_a_question_is_put_to_all_who_may_prompt() -> None:
    assert Ceilings().may_answer(Identity(), Needs("full-access", leave=True))


def test_the_page_is_offered_a_folder_that_the_token_may_open() -> None:
    server = Ceilings(TokenLimits(workspaces=("/srv",)))
    assert server.first_folder("/srv/app", BOB) == "/srv/app"
    assert server.first_folder("/elsewhere", BOB) == "/srv"
    assert server.first_folder("/srv/app", BOB._replace(limits=TokenLimits(workspaces=("/srv/bob",)))) == "/srv/bob"


@pytest.mark.anyio
async def test_a_session_is_opened_again_by_the_right_of_the_client_that_opened_it(tmp_path: Path) -> None:
    """And an agent that is not ours is told nothing of that."""
    modes = AgentModes(lambda identity: [], lambda mode, identity: mode, lambda identity, needs: True)
    told: list[tuple[str | None, bool]] = []
    for ceilings in (Ceilings(modes=modes), Ceilings()):
        folder = tmp_path / str(len(told))
        folder.mkdir()
        async with gateway(counting(1), folder, ceilings=ceilings) as served, raw_http(served) as raw:
            opening = served.hub.sessions[await raw.session()].resume_request
            assert opening is not None
            told.append((identity_in(opening).token, bool(opening.meta)))
    assert told == [("default", True), (None, False)]
