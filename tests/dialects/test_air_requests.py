"""What JetBrains AIR asks for: the files that a turn has changed, and another title for a session."""

import json
from typing import Any

import pytest

from dragoman.dialects.contract import Dialect, ErrorMessage, NotificationMessage, ResultMessage
from dragoman.dialects.v1.air_profile import TITLE_CHARACTERS
from dragoman.dialects.v1.file_reports import PATHS, REPORT_BYTES, UNCERTAINTY
from dragoman.errors import NOT_FOUND, PeerMistake, WireError
from dragoman.vocabulary import events, requests, tools
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.hello import AgentHello
from tests.dialects.joined_dialects import AGENT, agent_of, agent_with
from tests.dialects.test_air import NOT_DECLARED, declaring
from tests.dialects.test_v1_agent import HELLO, heard

REPORTS = declaring({"version": 1, "capabilities": ["agentFileChangeReport"]})
ASKED = {"version": 1, "requestId": "r-1"}
END = events.Idle(stop_reason="end_turn")


def prompt(agent: Dialect, asked: Any = ASKED, id: int = 5) -> Any:
    """A session below two folders, and a prompt in it that asks for a report."""
    opening = heard(agent, "session/new", {"cwd": "/w", "additionalDirectories": ["/more/"], "mcpServers": []})
    agent.encode_reply(1, opening, requests.SessionOpened("s"))
    meta = {"jetbrains": {"air": {"agentFileChangeReportRequest": asked}}}
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO, "_meta": meta}, id)
    agent.encode_reply(id, request, requests.PromptAccepted("u"))
    return request


def edited(name: str, *paths: str, status: str = "completed") -> events.ToolCallUpdate:
    changes: list[tools.FileChange | tools.UnknownChange] = [
        tools.FileChange("modify", path, old_text="a", new_text="b") for path in paths
    ]
    return events.ToolCallUpdate(name, title="Edit", kind="edit", status=status, content=[tools.Diff(changes)])


def ended(agent: Dialect, *sent: events.AnyEvent, end: events.Idle = END) -> Any:
    """The report of a turn of these events; None: there is none. The answer to the prompt comes behind it."""
    for event in sent:
        agent.encode_event("s", event)
    *before, answer = agent.encode_event("s", end)
    assert isinstance(answer, ResultMessage | ErrorMessage)
    return reported(before)


def reported(outs: Any) -> Any:
    if not outs:
        return None
    (out,) = outs
    assert isinstance(out, NotificationMessage)
    update = json.loads(out.params)["update"]
    assert update.keys() == {"sessionUpdate", "_meta"}
    assert update["sessionUpdate"] == "session_info_update"
    assert update["_meta"]["jetbrains"]["air"]["version"] == 1
    return update["_meta"]["jetbrains"]["air"]["agentFileChangeReport"]


def report(*paths: str, truncated: bool = False) -> dict[str, Any]:
    found = {**ASKED, "status": "reported", "paths": list(paths), "declaredComplete": False, "truncated": truncated}
    return found | {"uncertainty": UNCERTAINTY}


# -- which files a turn has changed ----------------------------------------------------------------------------------


@pytest.mark.requirement("ED11")
def test_the_files_of_a_turn_are_reported_before_its_prompt_is_answered() -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    moved = tools.Diff([tools.FileChange("move", "/w/new", "/w/old", old_text="", new_text="x")])
    deleted = events.ToolCallUpdate("d", title="Delete", kind="delete", locations=[tools.Location("/more/d")])
    assert ended(
        agent,
        edited("a", "/w/a", "/w/b", status="in_progress"),
        events.ToolCallUpdate("a", status="completed"),
        edited("again", "/w/a"),
        events.ToolCallUpdate("m", title="Move", kind="move", status="completed", content=[moved]),
        deleted,
        events.ToolCallUpdate("d", status="completed"),
    ) == report("/w/a", "/w/b", "/w/new", "/w/old", "/more/d")


@pytest.mark.requirement("ED11")
def test_a_call_that_changed_nothing_is_not_reported() -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    read = events.ToolCallUpdate("r", title="Read", kind="read", status="completed", locations=[tools.Location("/w/r")])
    failed = [
        edited("f", "/w/f", status="failed"),
        edited("c", "/w/c", status="cancelled"),
        edited("p", "/w/p", status="pending"),
    ]
    assert ended(agent, read, *failed) == report()


@pytest.mark.requirement("ED11")
@pytest.mark.parametrize("path", ["/etc/passwd", "/w", "/w/", "/wider/a", "/w/../etc", "/w/a\nb", "/w/" + "x" * 4096])
def test_a_path_that_may_not_be_reported_is_left_out_and_the_list_says_so(path: str) -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    assert ended(agent, edited("a", path, "/w/a")) == report("/w/a", truncated=True)


def test_a_folder_of_windows_holds_its_files() -> None:
    agent = agent_of(1, REPORTS)
    opening = heard(agent, "session/new", {"cwd": "C:\\w", "mcpServers": []})
    agent.encode_reply(1, opening, requests.SessionOpened("s"))
    meta = {"jetbrains": {"air": {"agentFileChangeReportRequest": ASKED}}}
    request = heard(agent, "session/prompt", {"sessionId": "s", "prompt": HELLO, "_meta": meta}, 5)
    agent.encode_reply(5, request, requests.PromptAccepted("u"))
    assert ended(agent, edited("a", "C:\\w\\a.py", "D:\\w\\b.py")) == report("C:\\w\\a.py", truncated=True)


@pytest.mark.requirement("ED11")
def test_a_report_is_bounded_in_paths_and_in_bytes() -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    many = ended(agent, edited("a", *(f"/w/{number}" for number in range(PATHS + 1))))
    assert (len(many["paths"]), many["truncated"]) == (PATHS, True)
    prompt(agent, ASKED | {"requestId": "r-2"})
    long = ended(agent, edited("b", *(f"/w/{number}{'x' * 4000}" for number in range(100))))
    assert 0 < len(long["paths"]) < 100
    assert (len(json.dumps(long)) <= REPORT_BYTES, long["truncated"]) == (True, True)


@pytest.mark.requirement("ED11")
@pytest.mark.parametrize(("reason", "why"), [("cancelled", "cancelled"), ("error", "providerError")])
def test_a_turn_that_was_cut_off_has_no_report_and_a_reason(reason: str, why: str) -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    found = ended(agent, edited("a", "/w/a"), end=events.Idle(stop_reason=reason))
    assert found == {**ASKED, "status": "unavailable", "reason": why}


def test_a_prompt_that_is_refused_has_no_report_and_a_reason() -> None:
    agent = agent_of(1, REPORTS)
    request = prompt(agent)
    *before, answer = agent.encode_failure(5, request, WireError(-32603, "no"))
    assert isinstance(answer, ErrorMessage)
    assert reported(before) == {**ASKED, "status": "unavailable", "reason": "notReported"}


@pytest.mark.requirement("ED11")
@pytest.mark.parametrize(
    "asked",
    [
        *[None, {}, [], "r-1", {"version": 1}, {"requestId": "r"}, ASKED | {"version": 2}, ASKED | {"more": 1}],
        *[ASKED | {"requestId": wrong} for wrong in ("", "a b", "x" * 129, "é", 1, None, "a\n")],
    ],
    ids=str,
)
def test_a_request_that_is_not_the_contracts_is_ignored(asked: Any) -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent, asked)
    assert ended(agent, edited("a", "/w/a")) is None


def test_a_report_that_was_asked_for_before_is_not_sent_again() -> None:
    agent = agent_of(1, REPORTS)
    prompt(agent)
    assert ended(agent) == report()
    prompt(agent)
    assert ended(agent) is None


@pytest.mark.requirement("ED4")
@pytest.mark.parametrize("air", NOT_DECLARED, ids=str)
def test_a_client_that_has_not_declared_it_is_sent_no_report(air: Any) -> None:
    agent = agent_of(1, declaring(air))
    prompt(agent)
    assert ended(agent, edited("a", "/w/a")) is None


# -- another title ---------------------------------------------------------------------------------------------------

RENAMES = [declaring({"version": 1, "capabilities": [name]}) for name in ("sessionIndex", "sessionRename")]


@pytest.mark.requirement("ED12")
@pytest.mark.parametrize("client", RENAMES)
@pytest.mark.parametrize(
    ("sent", "title"),
    [("A  new\nname ", "A new name"), ("x" * 300, "x" * (TITLE_CHARACTERS - 1) + "…"), ("x" * 256, "x" * 256)],
)
def test_a_session_is_renamed_and_the_answer_is_empty(client: Any, sent: str, title: str) -> None:
    agent = agent_of(1, client)
    request = heard(agent, "_session/rename", {"sessionId": "s", "title": sent}, 3)
    assert request == requests.SetTitle("s", title)
    assert agent.encode_reply(3, request, requests.TitleSet(title)) == [ResultMessage(3, b"{}")]
    # A title that was set by the schema's own request is answered as the schema has it.
    request = heard(agent, "session/set_title", {"sessionId": "s", "title": "t"}, 4)
    assert agent.encode_reply(4, request, requests.TitleSet("t")) == [ResultMessage(4, b'{"title":"t"}')]


@pytest.mark.requirement("ED12")
@pytest.mark.parametrize("params", [{"sessionId": "s", "title": " \n"}, {"sessionId": "s"}, {"title": "t"}])
def test_a_title_that_says_nothing_is_refused(params: Any) -> None:
    with pytest.raises(PeerMistake) as refused:
        heard(agent_of(1, RENAMES[0]), "_session/rename", params)
    assert refused.value.code == -32602


def test_a_rename_that_fails_is_answered_with_its_error() -> None:
    agent = agent_of(1, RENAMES[0])
    request = heard(agent, "_session/rename", {"sessionId": "gone", "title": "t"}, 3)
    error = WireError(NOT_FOUND, "Session not found")
    assert agent.encode_failure(3, request, error) == [ErrorMessage(3, error)]
    again = heard(agent, "session/set_title", {"sessionId": "s", "title": "t"}, 3)
    assert agent.encode_reply(3, again, requests.TitleSet("t")) == [ResultMessage(3, b'{"title":"t"}')]


@pytest.mark.requirement("ED4", "ED12")
@pytest.mark.parametrize(
    ("client", "agent"),
    [
        (declaring({"version": 1, "capabilities": ["sessionFailure"]}), AGENT),
        (declaring({}), AGENT),
        (RENAMES[0], agent_with()),
        (RENAMES[0], AgentHello(None, AGENT.capabilities, meta={"jetbrains": {}})),
    ],
    ids=["not declared", "malformed", "no titles", "an agent that speaks to AIR itself"],
)
def test_where_it_is_not_offered_the_method_is_any_other_extension(client: Any, agent: AgentHello) -> None:
    request = heard(agent_of(1, client, agent), "_session/rename", {"sessionId": "s", "title": "t"})
    assert isinstance(request, Extension)
