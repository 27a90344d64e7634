"""A whole check of a client: what stands before the rows, what applies, and what the report says."""

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.conformance.clients.peer_subject import PeerClientSubject
from dragoman.conformance.clients.run import check_client
from dragoman.conformance.clients.subject import CommandClient, filled
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.rows import load_rows
from dragoman.conformance.run import CheckPlan
from dragoman.conformance.verdicts import Verdict

pytestmark = pytest.mark.anyio
LIMITS = CheckLimits(answer=0.3, turn=0.6, quiet=0.01, exit=0.1)


def plan(*ids: str, version: int = 1) -> CheckPlan:
    return CheckPlan([row for row in load_rows("client") if row.id in ids], [version])


async def test_rows_about_what_is_not_lent_apply_only_where_it_is_not() -> None:
    ids = ("ACP-CLIENT-701", "ACP-CLIENT-711")
    verdicts = {}
    for lends in (True, False):
        report = await check_client(PeerClientSubject(1, lends=lends), plan(*ids), LIMITS)
        verdicts[lends] = [(one.verdict, one.is_unadvertised) for one in report.results]
        assert report.conforms()
    passed, not_asked = (Verdict.PASS, False), (Verdict.NOT_TESTED, True)
    assert verdicts == {True: [passed, not_asked], False: [not_asked, passed]}


async def test_a_version_that_the_client_does_not_ask_for_stands_before_the_rows() -> None:
    report = await check_client(PeerClientSubject(1), plan("ACP-CLIENT-501", version=2), LIMITS)
    assert report.obstacle == "the client asks for version 1, not for 2"
    assert not report.could_test()


async def test_a_client_that_does_not_start_our_agent_could_not_be_tested() -> None:
    client = CommandClient([sys.executable, "-c", "print('no agent here')", "{agent}"], {})
    report = await check_client(client, plan("ACP-CLIENT-501"), LIMITS._replace(turn=5.0))
    assert report.obstacle == "the client has not started our agent; it last printed: no agent here"


async def test_our_agent_passes_for_another_where_the_scenario_is_not_about_that() -> None:
    said: Mapping[str, Any] = {"protocolVersion": 1, "agentInfo": {"name": "gemini", "version": "1"}}
    report = await check_client(
        PeerClientSubject(1), plan("ACP-CLIENT-501", "ACP-CLIENT-587"), LIMITS, passes_for={1: said}
    )
    first, bare = ("\n".join(frame.text() for frame in one.exchange) for one in report.results[::-1])
    assert '"gemini"' in (first + bare)
    assert [one.verdict for one in report.results] == [Verdict.PASS, Verdict.PASS]


def test_the_command_of_our_agent_stands_where_the_client_wants_it() -> None:
    agent = ["python", "/a b/relay.py", "socket"]
    command = ["client", "--agent={agent}", "{argv}", "{url}"]
    quoted = "--agent=python '/a b/relay.py' socket"
    assert filled(command, agent, "ws://x") == ["client", quoted, *agent, "ws://x"]
