"""The judges of the rows of clients: the greeting, sessions, prompts, and what must not end a client."""

from collections.abc import Callable
from typing import Any, Final

from dragoman.conformance.clients.runs import ClientRun
from dragoman.conformance.verdicts import NotTested, RowFailed
from dragoman.errors import METHOD_NOT_FOUND

Judge = Callable[[ClientRun], None]
JUDGES: Final[dict[str, Judge]] = {}


def judge(*ids: str) -> Callable[[Judge], Judge]:
    """Register a function as the judge of these rows."""

    def register(function: Judge) -> Judge:
        for id in ids:
            if id in JUDGES:
                raise ValueError(f"{id} has two judges")
            JUDGES[id] = function
        return function

    return register


# -- every frame -------------------------------------------------------------------------------------------------------


@judge("ACP-CLIENT-529")
def frames_are_as_the_schema_says(run: ClientRun) -> None:
    for agent in run.agents:
        if faults := agent.connection.recording.faults("client"):
            raise RowFailed(faults[0].fault, faults[:1])


@judge("ACP-CLIENT-559")
def lines_are_messages(run: ClientRun) -> None:
    for agent in run.agents:
        if agent.connection.noise:
            raise RowFailed(f"a line is {agent.connection.noise[0].fault}", agent.connection.noise[:1])


@judge("ACP-CLIENT-541")
def requests_have_ids_of_their_own(run: ClientRun) -> None:
    for agent in run.agents:
        seen: set[tuple[str, Any]] = set()
        for message, frame in agent.connection.received:
            if "method" in message and "id" in message:
                key = (type(message["id"]).__name__, message["id"])
                if key in seen:
                    raise RowFailed(f"two requests have the id {message['id']!r}", [frame])
                seen.add(key)


# -- the greeting ------------------------------------------------------------------------------------------------------


@judge("ACP-CLIENT-501")
def greeting_comes_first(run: ClientRun) -> None:
    for agent in run.agents:
        first = next(iter(agent.connection.received), None)
        if first is not None and first.message.get("method") != "initialize":
            raise RowFailed("the first message of the connection is not initialize", [first.frame])


@judge("ACP-CLIENT-502")
def greeting_names_a_version(run: ClientRun) -> None:
    for params, frame in run.params("initialize"):
        version = params.get("protocolVersion")
        if not isinstance(version, int) or isinstance(version, bool):
            raise RowFailed(f"the version {version!r} is no integer", [frame])


@judge("ACP-CLIENT-503", "ACP-CLIENT-504")
def client_gives_its_name(run: ClientRun) -> None:
    for params, frame in run.params("initialize"):
        info = params.get("clientInfo" if run.version == 1 else "info") or params.get("info")
        if not isinstance(info, dict) or not info.get("name") or not info.get("version"):
            raise RowFailed("the client does not give its name and version", [frame])


@judge("ACP-CLIENT-505")
def capabilities_are_objects(run: ClientRun) -> None:
    for params, frame in run.params("initialize"):
        if wrong := _booleans(params.get("capabilities")):
            raise RowFailed(f"the capability {wrong} is a boolean", [frame])


def _booleans(value: Any, path: str = "") -> str:
    if isinstance(value, bool):
        return path
    if isinstance(value, dict):
        found = (_booleans(one, f"{path}.{key}".strip(".")) for key, one in value.items() if key != "_meta")
        return next((one for one in found if one), "")
    return ""


@judge("ACP-CLIENT-506")
def nothing_is_asked_before_the_greeting_is_answered(run: ClientRun) -> None:
    for agent in run.agents:
        answered = next((one.at for one in agent.connection.recording.frames if one.sender == "check"), None)
        for message, frame in agent.connection.received:
            early = answered is None or frame.at < answered
            if early and message.get("method") not in ("initialize", None):
                raise RowFailed(f"{message['method']} comes before initialize was answered", [frame])


@judge("ACP-CLIENT-507")
def greeting_comes_once(run: ClientRun) -> None:
    for agent in run.agents:
        found = [one.frame for one in agent.connection.received if one.message.get("method") == "initialize"]
        if len(found) > 1:
            raise RowFailed("initialize is sent twice on one connection", found)


@judge("ACP-CLIENT-514")
def unsupported_version_is_not_used(run: ClientRun) -> None:
    if found := run.calls("session/new", "session/load", "session/resume", "session/prompt"):
        raise RowFailed("the client goes on in a version that does not exist", [found[0].frame])


@judge("ACP-CLIENT-587")
def bare_greeting_is_enough(run: ClientRun) -> None:
    if not run.agent.prompts:
        raise RowFailed("the client sends no prompt to an agent that says only what it must of itself")


# -- sessions ----------------------------------------------------------------------------------------------------------


def _opened(run: ClientRun) -> list[Any]:
    opened = run.params("session/new", "session/load", "session/resume")
    if not opened:
        raise NotTested("the client opened no session", "give the client a command line that sends a prompt")
    return opened


@judge("ACP-CLIENT-508")
def folder_is_absolute(run: ClientRun) -> None:
    for params, frame in _opened(run):
        if not str(params.get("cwd", "")).startswith("/"):
            raise RowFailed(f"the folder {params.get('cwd')!r} is not absolute", [frame])


@judge("ACP-CLIENT-509")
def servers_are_a_list(run: ClientRun) -> None:
    for params, frame in _opened(run):
        if not isinstance(params.get("mcpServers"), list):
            raise RowFailed("mcpServers is no list", [frame])


@judge("ACP-CLIENT-510")
def prompt_has_content(run: ClientRun) -> None:
    if not isinstance(run.turn.blocks, list) or not run.turn.blocks:
        raise RowFailed("a prompt has no content")


@judge("ACP-CLIENT-523")
def prompt_names_an_open_session(run: ClientRun) -> None:
    for agent in run.agents:
        for prompt in agent.prompts:
            if prompt.session not in agent.sessions:
                raise RowFailed(f"the prompt names session {prompt.session!r}, which was not opened")


@judge("ACP-CLIENT-531")
def prompts_come_one_by_one(run: ClientRun) -> None:
    agent, turn = run.agent, run.turn
    for prompt in agent.prompts[1:]:
        if prompt.session == turn.session and (agent.ended_at is None or prompt.at <= agent.ended_at):
            raise RowFailed("a second prompt is sent before the first is answered")


@judge("ACP-CLIENT-516")
def unadvertised_methods_are_not_called(run: ClientRun) -> None:
    methods = ("session/load", "session/list", "session/resume", "session/close", "session/delete", "session/set_mode")
    asked = methods if run.version == 1 else ("session/delete",)
    if found := run.calls(*asked):
        raise RowFailed(f"{found[0].message['method']} is called, and was not advertised", [found[0].frame])


@judge("ACP-CLIENT-518")
def unadvertised_content_is_not_sent(run: ClientRun) -> None:
    blocks = run.turn.blocks
    for block in blocks if isinstance(blocks, list) else []:
        if block.get("type") not in ("text", "resource_link"):
            raise RowFailed(f"a block of type {block.get('type')!r} is sent, and was not advertised")


@judge("ACP-CLIENT-577")
def refused_session_is_not_prompted(run: ClientRun) -> None:
    _opened(run)
    if run.agent.prompts:
        raise RowFailed("the client prompts although no session was opened")


@judge("ACP-CLIENT-578")
def refused_session_ends_the_run(run: ClientRun) -> None:
    _opened(run)
    run.expect_end()
    if run.is_hung:
        raise RowFailed("the client waits for ever although no session can be opened")


@judge("ACP-CLIENT-581")
def login_was_offered(run: ClientRun) -> None:
    found = run.params("authenticate", "auth/login")
    if not found:
        raise NotTested("the client did not log in", "use --manual and log in")
    for params, frame in found:
        if params.get("methodId") != "check-login":
            raise RowFailed(f"the login {params.get('methodId')!r} was not offered", [frame])


@judge("ACP-CLIENT-582")
def locked_agent_is_not_asked_for_ever(run: ClientRun) -> None:
    asked = sum(agent.refused_sessions for agent in run.agents)
    if asked > 3:
        raise RowFailed(f"session/new is tried {asked} times at an agent that wants a login")


@judge("ACP-CLIENT-583")
def session_is_opened_after_the_login(run: ClientRun) -> None:
    if not run.calls("authenticate", "auth/login"):
        raise NotTested("the client did not log in", "use --manual and log in")
    if not any(agent.sessions for agent in run.agents):
        raise RowFailed("the client logs in, and does not open its session")


@judge("ACP-CLIENT-512")
def agent_is_ended_with_the_client(run: ClientRun) -> None:
    run.expect_end()
    if run.is_hung:
        raise NotTested("the client does not end after its turn", "see ACP-CLIENT-801")
    if run.left_open:
        raise RowFailed("the agent that does not end by itself lives after the client has ended")


@judge("ACP-CLIENT-801")
def connection_is_closed_at_the_end(run: ClientRun) -> None:
    run.expect_end()
    if run.is_hung:
        raise RowFailed("the client does not end after its turn")
    if run.left_open:
        raise RowFailed("the connection to the agent is open after the client has ended")


# -- what must not end a client ----------------------------------------------------------------------------------------

_AFTER: Final = {
    "ACP-CLIENT-551": "an update of an unknown kind",
    "ACP-CLIENT-552": "fields that it does not know",
    "ACP-CLIENT-553": "content of an unknown type",
    "ACP-CLIENT-554": "notifications that it does not know",
    "ACP-CLIENT-560": "a response to no request",
    "ACP-CLIENT-561": "a line that is no JSON",
    "ACP-CLIENT-563": "two messages in one write",
    "ACP-CLIENT-564": "a message of 1 MiB",
    "ACP-CLIENT-565": "two thousand updates at once",
    "ACP-CLIENT-566": "blank lines",
    "ACP-CLIENT-568": "an update of a session that it does not know",
    "ACP-CLIENT-569": "an array",
    "ACP-CLIENT-570": "an update of a tool call that was never announced",
    "ACP-CLIENT-571": "fields that are null",
    "ACP-CLIENT-762": "every kind of update of the schema",
    "ACP-CLIENT-764": "an unknown state",
}


def _survives(what: str) -> Judge:
    return lambda run: run.expect_alive(what)


for _id, _what in _AFTER.items():
    judge(_id)(_survives(_what))


@judge("ACP-CLIENT-562")
def torn_message_is_put_together(run: ClientRun) -> None:
    run.expect_alive("a message that came in pieces")
    for message, frame in run.agent.connection.received:
        if "method" not in message and frame.fault:
            raise RowFailed("the id of a request that came in pieces does not come back as it was", [frame])


@judge("ACP-CLIENT-588")
def foreign_options_are_survived(run: ClientRun) -> None:
    if not run.agent.prompts:
        raise RowFailed("a session with an option of an unknown type is not prompted")
    run.expect_alive("options of an unknown type")


@judge("ACP-CLIENT-586")
def early_update_is_survived(run: ClientRun) -> None:
    if not run.agent.prompts:
        raise RowFailed("an update before the session's answer leads to no prompt")


@judge("ACP-CLIENT-567")
def late_update_is_survived(run: ClientRun) -> None:
    run.expect_prompt()
    if run.exit_code not in (0, None) or (run.agent.connection.is_lost and run.agent.lost_in_turn):
        raise RowFailed("an update after the end of the turn ends the client")


@judge("ACP-CLIENT-555")
def notifications_are_not_answered(run: ClientRun) -> None:
    for message, frame in run.agent.connection.received:
        if "method" not in message and frame.fault:
            raise RowFailed("a notification is answered", [frame])
        if "method" not in message and message.get("id") is None:
            raise RowFailed("a notification is answered", [frame])


@judge("ACP-CLIENT-556")
def unknown_requests_have_no_result(run: ClientRun) -> None:
    answer = run.answer("unknown")
    if "error" not in answer:
        raise RowFailed("a method that does not exist is answered with a result")


@judge("ACP-CLIENT-557")
def unknown_requests_have_their_code(run: ClientRun) -> None:
    error = run.answer("unknown").get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if code != METHOD_NOT_FOUND:
        raise RowFailed(f"a method that does not exist is answered with error {code}")


@judge("ACP-CLIENT-558")
def extension_requests_are_answered(run: ClientRun) -> None:
    run.answer("extension")


# -- ends of a turn ----------------------------------------------------------------------------------------------------


@judge("ACP-CLIENT-573", "ACP-CLIENT-574", "ACP-CLIENT-575")
def turn_is_over_for_the_client(run: ClientRun) -> None:
    run.expect_prompt()
    run.expect_end()
    if run.is_hung:
        raise RowFailed("the client waits for ever")


@judge("ACP-CLIENT-576")
def failed_turn_is_reported(run: ClientRun) -> None:
    run.expect_prompt()
    run.expect_end()
    if run.exit_code == 0:
        raise RowFailed("the client ends with 0 although its agent died in the turn")


@judge("ACP-CLIENT-763")
def turn_ends_when_the_session_is_idle(run: ClientRun) -> None:
    run.expect_prompt()
    if run.agent.answers.get("before_end") is None:
        raise RowFailed("the client leaves when its prompt was accepted, before the session is idle")
