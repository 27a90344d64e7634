"""What several servers in front of the same sessions would have to share: an interface for each kind of it.

What may be on another machine is asked for by an asynchronous method. Here it is embedded: in memory and in files of
this server. After an `await` code has to look again at what it knew before, also where the embedded kind never waits.

Whose session it is has to be known in steps of the loop that cannot wait (`SessionAccess`). So a server has a view of
its own of the directory, which answers at once: `load` brings it up to date before a request is judged, and `persist`
makes a claim hold everywhere before a client learns the id.

What happens for each message or each chunk of a stream is noted by a method that does not wait; other servers are told
of it at intervals, or when it matters to them.

| kind | interface | embedded in |
|---|---|---|
| tokens | `SharedTokens`, and to change them `TokenKeeper` | `token_store` |
| logins of browsers | `SharedLogins` | `login_store` |
| logins of people with an OpenID issuer | `SharedGrants` | `issuer_grants` |
| rates | `SharedRates` | `rate_limiter` |
| connections and how far their streams are | `SharedPositions` | `connection_positions` |
| webhooks of principals | `SharedWebhooks` | `webhook_file` |
| the servers themselves | `SharedNodes` | – |
| sessions and their owners | `SharedDirectory` | `session_directory` |
| prompts that may be sent twice | `SharedOperations` | `prompt_ledger` |
| questions that wait for an answer | `SharedQuestions` | `question_list` |

The first seven are of a server (`SharedState`), the others of one agent of it (`SharedAgentState`).

A failure of the machine that holds the state is `Unsure` for tokens, logins and grants: it makes none of them invalid.
An answer to a question does not count then, and a prompt with an operation id is refused: nothing is done twice.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from dragoman.gateway.token_types import Scope, SessionShare, Token, TokenLimits
from dragoman.gateway.webhook import Webhook
from dragoman.vocabulary.requests import PromptRequest, SteerTurn

if TYPE_CHECKING:
    from dragoman.gateway.prompt_ledger import PromptOperation


class LoginHalves(NamedTuple):
    """Both halves of a new login, which are given out here and can never be read again."""

    cookie: str
    page_key: str


class SharedTokens(Protocol):
    """The tokens of all servers."""

    # All of them, and the guard compares: to ask for one would be a look at another machine for each wrong token.
    async def valid(self) -> Sequence[Token]:
        """Return the tokens that are valid now. Raise `Unsure` where that cannot be known."""


class TokenKeeper(Protocol):
    """The tokens as an administrator has them: listed, made and revoked. `token_store` and `cluster` have one each."""

    async def all(self) -> Sequence[Token]:
        """Return every token, also those that have expired. Raise `Unsure` or `StoreFailed`."""

    async def make(
        self,
        name: str,
        scopes: Sequence[Scope],
        principal: str = "",
        *,
        limits: TokenLimits | None = None,
        expires: float = 0,
        share: SessionShare | None = None,
    ) -> str:
        """Make a token and return it: it can never be read again. Raise `UsageError` for a name that is in use or
        cannot be one, `Unsure` or `StoreFailed`."""

    async def revoke(self, name: str) -> bool:
        """Remove a token, and the share links that were made with it; return whether there was one."""


class SharedLogins(Protocol):
    """The logins of browsers at all servers; a login is named by the digest of its cookie."""

    async def make(self, token_digest: str) -> LoginHalves:
        """Make a login for a token that was shown, and return its two halves."""

    async def token_digest(self, digest: str, page_key: str) -> str | None:
        """Return the digest of the token that a login stands for; None where the halves do not belong together, or are
        not valid any more. Counts as a use."""

    async def touch(self, digest: str) -> None:
        """Note a use of a login; one that is over stays over."""

    async def is_valid(self, digest: str) -> bool:
        """Return whether a login is valid now. Does not count as a use."""

    async def end(self, digest: str) -> None:
        """End a login, at every server."""

    async def save(self) -> None:
        """Wait until what has changed up to now outlives a crash."""

    async def save_at_intervals(self) -> None:
        """Save the last use of each login at intervals, for as long as the server runs."""


class SharedGrants(Protocol):
    """What people of an OpenID issuer may do now, by the digest of what they have shown. Logins with the page count at
    every server; a bearer token is looked at by each server for itself."""

    # Without waiting: a flood of wrong tokens must cost no look at another machine.
    def find_bearer(self, digest: str) -> Token | None:
        """Return the grant of a bearer token that this server has looked at, if it is valid now."""

    async def find(self, digest: str) -> Token | None:
        """Return the grant of a digest, if it is valid now. Raise `Unsure` where that cannot be known."""

    async def add(self, token: Token, key_id: str | None = None, *, is_login: bool = False) -> None:
        """Keep a grant until it ends; `key_id` is the issuer's key that a bearer token was signed with."""

    def forget_other_keys(self, key_ids: Collection[object]) -> None:
        """Drop the grants of bearer tokens that were signed with a key which the issuer has taken back."""

    async def secret(self) -> bytes:
        """Return the key that seals the state of a login: a browser may come back to another server."""


class SharedWebhooks(Protocol):
    """The webhooks of each principal, at all servers. Methods raise `OSError`, `UsageError` or `StoreFailed` where they
    cannot be had."""

    async def of(self, principal: str) -> Sequence[Webhook]:
        """Return the webhooks of a principal."""

    async def add(self, principal: str, webhook: Webhook) -> bool:
        """Add a webhook; return False if the principal has as many as it may have."""

    async def remove(self, principal: str, webhook_id: str) -> bool:
        """Remove a webhook; return whether there was one."""


class NodeState(NamedTuple):
    """A server of a cluster, as an administrator sees it."""

    name: str
    url: str
    is_alive: bool
    is_draining: bool
    sessions: int
    lease_seconds: float | None  # None: it was given back


class SharedNodes(Protocol):
    """The servers that share the sessions."""

    async def nodes(self) -> Sequence[NodeState]:
        """Return them, by name. Raise `StoreFailed`."""


class SharedRates(Protocol):
    """How often each key may do one kind of thing, counted over all servers."""

    async def acquire(self, key: str) -> bool:
        """Take one, and return whether there was one."""

    async def delay(self, key: str) -> float:
        """Take one and return the seconds the caller has to wait for it; 0 if there was one. Does not wait for it."""


class ConnectionPosition(NamedTuple):
    """How far a connection is: what its client has sent, and the newest message of each of its streams, by session; ""
    is the connection's own."""

    connection_id: str
    principal: str
    received: int
    newest: Mapping[str, int]


class FoundConnection(NamedTuple):
    """A connection as it was noted last, and the server that has it. `is_alive`: that server answers now."""

    position: ConnectionPosition
    node: str = ""
    node_url: str = ""
    is_alive: bool = True


class SharedPositions(Protocol):
    """The connections at all servers: a client that comes back to another one can be told where its streams are."""

    # A callback and no number: streams move with every message, and who asks for them is another server, seldom.
    def add(self, connection_id: str, position: Callable[[], ConnectionPosition]) -> None:
        """Note a new connection. `position` is asked at intervals, and never for a message."""

    def remove(self, connection_id: str) -> None:
        """Note that a connection is over."""

    async def find(self, connection_id: str, principal: str) -> FoundConnection | None:
        """Return a connection of this principal; None: it is over, or never was."""

    async def save(self) -> None:
        """Tell the other servers how far the connections are now."""

    async def save_at_intervals(self) -> None:
        """Save at intervals, for as long as the server runs."""


class SharedDirectory(Protocol):
    """The sessions of one agent, at all servers: whose they are, what the agent calls them, where they were made."""

    async def load(self, session_ids: Iterable[str] = (), *, agent_ids: Iterable[str] = ()) -> None:
        """Bring the view up to date about these sessions, and those that the agent calls so."""

    # Behind `claim`, which cannot wait: until this has returned True the session may turn out to be that of another.
    async def persist(self, session_id: str) -> bool:
        """Make a claim hold at every server, and over restarts; return False if another principal has the session.
        Raise `OSError` where it cannot be written."""

    def owner(self, session_id: str) -> str | None:
        """Return the session's principal; None if the session was not made through a gateway."""

    def agent_id(self, session_id: str) -> str:
        """Return its agent's id for it."""

    def cwd(self, session_id: str) -> str:
        """Return the folder it was made in; empty where that is not known."""

    def sessions_named(self, agent_id: str) -> list[str]:
        """Return the sessions to which the agent has given this id, the newest last."""

    def is_ambiguous(self, session_id: str) -> bool:
        """Return whether the agent has given this session's id to a session of another principal too."""

    def claim(self, session_id: str, principal: str, agent_id: str = "", cwd: str = "") -> bool:
        """Make this principal the owner of a session in the view; return False if another one is, and stays so."""


class SharedOperations(Protocol):
    """The prompts with an operation id, of one agent, at all servers: each is given to the agent once.

    The reply to a prompt, and the end of its turn, are noted in its `PromptOperation` in the step in which they come.
    """

    async def begin(self, principal: str, request: PromptRequest | SteerTurn) -> "tuple[PromptOperation | None, bool]":
        """Return the operation that a prompt belongs to (None: it has no id), and whether it is the first of it. Raise
        `RequestFailed` for an id that cannot be one, or that another prompt had, and where it cannot be known."""

    # Before the reply leaves: a client that has it may send the prompt again to another server.
    async def save(self, operation: "PromptOperation") -> None:
        """Make what is known of an operation known to every server; called before the client gets the reply."""

    # Never for one that the agent may have begun: then the work could be done twice (`ClientSide`).
    async def forget(self, operation: "PromptOperation") -> None:
        """Remove an operation that was not accepted: it may be sent again."""


QuestionKind = Literal["permission", "form"]


class WaitingQuestion(NamedTuple):
    """A question of an agent that a person has to answer: never what is asked."""

    id: str
    session_id: str
    kind: QuestionKind
    began: float = 0  # in seconds since 1970


class SharedQuestions(Protocol):
    """The open questions of one agent's sessions, at all servers. Each ends once: with an answer, or without."""

    # Without waiting, unlike `answer`: the question is put to the clients in the same step.
    def open(self, question: WaitingQuestion) -> None:
        """Note that a question is put to the clients. Other servers hear of it soon."""

    # Waits where others could have the session: a server that was paused for long must not let anything run.
    async def answer(self, question: WaitingQuestion) -> bool:
        """End a question because it was answered; return whether the answer counts. It does not where the question has
        ended already, or where another server has taken its session over."""

    def cancel(self, question: WaitingQuestion) -> None:
        """Note that a question has ended without an answer; nothing happens if it has ended already."""

    async def waiting(self, session_ids: Collection[str]) -> Sequence[WaitingQuestion]:
        """Return the open questions of these sessions, the oldest first."""

    async def waiting_for(self, principal: str, *, with_unclaimed: bool = False) -> Sequence[WaitingQuestion]:
        """Return the open questions that may be this principal's, the oldest first; `with_unclaimed`: and those of
        sessions that were made without a gateway. There may be others among them: each is judged by the caller."""


RatesOf = Callable[[str, float, float], SharedRates]


class SharedState(NamedTuple):
    """What a server shares with the others, whichever agent is asked for. `rates` makes the rates of one kind of thing,
    by its name, how many a second, and how many at once; None: those of this server alone. `token_keeper` makes and
    revokes tokens; None: that is done elsewhere. `webhooks`: None: there are none. `nodes`: None: there is no other."""

    tokens: SharedTokens
    logins: SharedLogins
    grants: SharedGrants
    positions: SharedPositions
    rates: RatesOf | None = None
    token_keeper: TokenKeeper | None = None
    webhooks: SharedWebhooks | None = None
    nodes: SharedNodes | None = None


class SharedAgentState(NamedTuple):
    """What is shared of one agent; None: it is this server's alone, and in memory."""

    directory: SharedDirectory | None = None
    operations: SharedOperations | None = None
    questions: SharedQuestions | None = None
