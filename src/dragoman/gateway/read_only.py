"""What a token that may only read may ask: a list of everything that is allowed, and nothing else is. Pure.

Opening a session starts what its request names: MCP servers, folders, instructions, and whatever an agent finds in
`_meta`. So nothing that such a client wrote reaches an agent but the name of a session and where to begin in it; the
rest is what a client that may prompt has said, or is left out.
"""

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import INVALID_REQUEST, RequestFailed
from dragoman.gateway.token_types import TokenIdentity
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.hello import ClientCapabilities, ClientHello, Implementation


def may_read(token_identity: TokenIdentity) -> bool:
    """Return whether a token may see sessions: it has the scope `read` or `prompt`."""
    return token_identity.may("read") or token_identity.may("prompt")


def to_read(request: Request) -> Request:
    """Return the request with only the fields that a read-only client may set.

    Raise `RequestFailed` for a request that such a client may not send.
    """
    match request:
        case ask.ListSessions(cwd, cursor, archived):
            return ask.ListSessions(cwd, cursor, archived)
        # Without MCP servers and further folders, and with a replay only from the start: those start or open things.
        case ask.ResumeSession(session_id, cwd):
            start = ask.ReplayFromStart() if request.replay_from else UNSET
            return ask.ResumeSession(session_id, cwd, mcp_servers=[], replay_from=start)
        case ask.GetSessionStatus(session_id):
            return ask.GetSessionStatus(session_id)
        case ask.GetAuthStatus():
            return ask.GetAuthStatus()
        case _:
            raise RequestFailed(INVALID_REQUEST, "This token may only read", {"reason": "scope"})


def to_read_shared(request: Request) -> Request:
    """Return the request as `to_read` does, for a share link, which reaches one session and nothing of its server.

    Raise `RequestFailed` for a list of sessions, and for what says who is logged in.
    """
    match to_read(request):
        case ask.ResumeSession() | ask.GetSessionStatus() as allowed:
            return allowed
        case _:
            raise RequestFailed(INVALID_REQUEST, "This link shows one session and nothing else", {"reason": "scope"})


def with_first_opening(request: ask.ResumeSession, opening: ask.ResumeSession | None, cwd: str) -> ask.ResumeSession:
    """Return a reader's request with the settings of the opening before it, or else with the session's own folder."""
    if opening is not None:
        # Of the reader's request only where to begin; the rest is what a client that may prompt has asked for before.
        return replace(opening, session_id=request.session_id, replay_from=request.replay_from)
    # A folder of the reader's choice would make the agent read the instructions in it.
    return replace(request, cwd=cwd or request.cwd)


def hello_to_read(hello: ClientHello) -> ClientHello:
    """Return the hello of a read-only client: only capabilities to show things, none to serve an agent's requests."""
    can, info = hello.capabilities, hello.info
    # Only what says how to show things. Files and terminals are left out: they are questions that a reader may not
    # answer.
    shown = ClientCapabilities(
        boolean_options=can.boolean_options,
        compaction=can.compaction,
        notices=can.notices,
        plans=can.plans,
        subagents=can.subagents,
    )
    return ClientHello(shown, None if info is None else Implementation(info.name, info.version))
