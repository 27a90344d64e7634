"""The routes below `/api`, with the right that each wants.

| request | right | what |
|---|---|---|
| GET `activity` | reader | sessions that run or wait, at every agent |
| GET `folders?path=` | worker | folders that a session may be opened in |
| GET, POST `shares`, POST `shares/revoke` | worker | share links of the principal's sessions |
| GET, POST `webhooks`, POST `webhooks/remove`, `webhooks/try` | listener | webhooks of the principal |
| GET `agents`, `nodes`, `principals`, `limits` | operator | how the server does |
| GET, POST `tokens`, POST `tokens/revoke` | owner | tokens of every principal |
| GET `decisions?session=` | owner | who allowed what, of every principal |

`/metrics` has the measurements. The guard stands before all of it; `requests` has the rights.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

from dragoman.gateway.console_api.activity import activity_of
from dragoman.gateway.console_api.folders import FolderList
from dragoman.gateway.console_api.hooks import NewWebhook, WebhookId, Webhooks
from dragoman.gateway.console_api.requests import doing, listener, looking, operator, owner, reader, worker
from dragoman.gateway.console_api.server_view import agents_of, limits_of, nodes_of, principals_of
from dragoman.gateway.console_api.shares import NewShare, OldShare, ShareLinks
from dragoman.gateway.console_api.tokens import CheckLimits, NewToken, OldToken, Tokens
from dragoman.gateway.http_replies import Bodies, Handle, RouteEndpoint, Stop
from dragoman.gateway.hub import Hub
from dragoman.gateway.shared_state import SharedState
from dragoman.gateway.streaming import Receive, Send
from dragoman.gateway.token_types import TokenIdentity
from dragoman.gateway.webhooks import WebhookSender

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import Scope

PREFIX: Final = "/api"
_QUERY_FIELDS: Final = 8

# The newest decisions of a session, or of all that were worked on lately where none is named.
FindDecisions = Callable[[str], Awaitable[Sequence[Mapping[str, object]]]]


class ConsoleSettings(NamedTuple):
    """What the operator says about the console.

    `private`: paths that are the server's own, shown to no token. `sharing`: sessions may be shared by links.
    `webhook_origins`: where webhooks may go beside the public internet. `check_limits` checks those of a new token,
    `find_decisions` reads the decision log; without them there is none of it.
    """

    private: Sequence[str] = ()
    sharing: bool = True
    webhook_origins: Sequence[str] = ()
    check_limits: CheckLimits | None = None
    find_decisions: FindDecisions | None = None


class Console:
    """The routes of the console of one server. `sender` sends webhooks; None: there are none."""

    def __init__(
        self, hubs: Mapping[str, Hub], state: SharedState, settings: ConsoleSettings, sender: WebhookSender | None
    ) -> None:
        self._hubs = hubs
        self._state = state
        self._settings = settings
        self._sender = sender
        self._bodies = Bodies()
        first = next(iter(hubs.values()))
        self._server_limits = first.access.ceilings.server
        self._log = first.monitor.log
        self._folders = FolderList(first.access.ceilings, settings.private, os.getcwd())

    def routes(self) -> "list[BaseRoute]":
        """Return the routes. What a server does not have is not there: 404."""
        from starlette.routing import Route

        gets = {
            "activity": looking(reader, self._activity),
            "folders": looking(worker, self._list_folders),
            "agents": looking(operator, self._agents),
            "nodes": looking(operator, self._nodes),
            "principals": looking(operator, self._principals),
            "limits": looking(operator, self._limits),
        }
        posts: dict[str, Handle] = {}
        for add in (self._add_shares, self._add_webhooks, self._add_tokens, self._add_decisions):
            add(gets, posts)
        paths = dict.fromkeys([*gets, *posts])
        return [Route(f"{PREFIX}/{path}", _endpoint(gets.get(path), posts.get(path))) for path in paths]

    def _add_shares(self, gets: dict[str, Handle], posts: dict[str, Handle]) -> None:
        if self._settings.sharing and self._state.token_keeper is not None:
            shares = ShareLinks(self._state.token_keeper, self._hubs)
            gets["shares"] = looking(worker, lambda _, identity: shares.listed(identity))
            posts["shares"] = doing(worker, self._bodies, NewShare, shares.make)
            posts["shares/revoke"] = doing(worker, self._bodies, OldShare, shares.revoke)

    def _add_webhooks(self, gets: dict[str, Handle], posts: dict[str, Handle]) -> None:
        if self._sender is not None:
            webhooks = Webhooks(self._sender)
            gets["webhooks"] = looking(listener, lambda _, identity: webhooks.list(identity))
            posts["webhooks"] = doing(listener, self._bodies, NewWebhook, webhooks.make)
            posts["webhooks/remove"] = doing(listener, self._bodies, WebhookId, webhooks.remove)
            posts["webhooks/try"] = doing(listener, self._bodies, WebhookId, webhooks.try_out)

    def _add_tokens(self, gets: dict[str, Handle], posts: dict[str, Handle]) -> None:
        if self._state.token_keeper is not None and self._settings.check_limits is not None:
            tokens = Tokens(self._state.token_keeper, self._settings.check_limits, self._log)
            gets["tokens"] = looking(owner, lambda _, identity: tokens.list(identity))
            posts["tokens"] = doing(owner, self._bodies, NewToken, tokens.make)
            posts["tokens/revoke"] = doing(owner, self._bodies, OldToken, tokens.revoke)

    def _add_decisions(self, gets: dict[str, Handle], posts: dict[str, Handle]) -> None:
        find = self._settings.find_decisions
        if find is None:
            return

        async def decisions(scope: "Scope", identity: TokenIdentity) -> object:
            return {"decisions": await find(_asked(scope, "session")[:256])}

        gets["decisions"] = looking(owner, decisions)

    async def _activity(self, scope: "Scope", identity: TokenIdentity) -> object:
        return await activity_of(self._hubs, identity)

    async def _list_folders(self, scope: "Scope", identity: TokenIdentity) -> object:
        flags = {name: _asked(scope, name) == "1" for name in ("hidden", "files")}
        return await self._folders.list(_asked(scope, "path"), identity, **flags)

    async def _agents(self, scope: "Scope", identity: TokenIdentity) -> object:
        return {"agents": agents_of(self._hubs)}

    async def _nodes(self, scope: "Scope", identity: TokenIdentity) -> object:
        return await nodes_of(self._state.nodes)

    async def _principals(self, scope: "Scope", identity: TokenIdentity) -> object:
        return {"principals": principals_of(next(iter(self._hubs.values())).sessions.usage)}

    async def _limits(self, scope: "Scope", identity: TokenIdentity) -> object:
        return limits_of(self._server_limits)


def _endpoint(get: Handle | None, post: Handle | None) -> RouteEndpoint:
    handles = {method: handle for method, handle in (("GET", get), ("POST", post)) if handle is not None}

    async def handle(scope: "Scope", receive: Receive, send: Send) -> None:
        await handles[scope["method"]](scope, receive, send)

    return RouteEndpoint(handle, ", ".join(handles))


def _asked(scope: "Scope", name: str) -> str:
    try:
        query = parse_qs(scope.get("query_string", b"").decode("utf-8"), max_num_fields=_QUERY_FIELDS)
    except (ValueError, UnicodeDecodeError):
        raise Stop(400, "The query cannot be read.") from None
    return str(query.get(name, [""])[0])
