"""A guard without a loop: the state embedded in a server answers without waiting."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from dragoman.gateway.guard import Guard
from dragoman.gateway.headers import Headers
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.login_store import LoginStore
from dragoman.gateway.shared_state import LoginHalves
from dragoman.gateway.token_store import EmbeddedTokens
from dragoman.gateway.token_types import Token, TokenIdentity

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that must not wait."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("it waited")


class ImmediateGuard:
    """A `Guard` whose answers are there at once; `tokens` are those that are valid now."""

    def __init__(
        self,
        tokens: Callable[[], Sequence[Token]],
        hosts: Iterable[str],
        port: int,
        clock: Callable[[], float],
        logins: LoginStore | None = None,
    ) -> None:
        self.tokens = tokens
        self.inner = Guard(EmbeddedTokens(self._valid), hosts, port, clock, logins)

    def _valid(self) -> Sequence[Token]:
        return self.tokens()

    def refusal(self, headers: Headers, scheme: str) -> Refusal | None:
        return self.inner.refusal(headers, scheme)

    def authenticate(self, headers: Headers, address: str, method: str = "GET") -> TokenIdentity | Refusal:
        return at_once(self.inner.authenticate(headers, address, method))

    def admit(self, token_identity: TokenIdentity) -> TokenIdentity | Refusal:
        return at_once(self.inner.admit(token_identity))

    def message_delay(self, token_identity: TokenIdentity) -> float:
        return at_once(self.inner.message_delay(token_identity))

    def log_in(self, token_identity: TokenIdentity) -> LoginHalves | None:
        return at_once(self.inner.log_in(token_identity))

    def is_valid(self, token_identity: TokenIdentity) -> bool:
        return at_once(self.inner.is_valid(token_identity))

    def is_logged_in(self, token_identity: TokenIdentity) -> bool:
        return at_once(self.inner.is_logged_in(token_identity))
