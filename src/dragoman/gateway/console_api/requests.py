"""A request of the console: who may send it, and what is in it. Fails closed.

| right | who has it |
|---|---|
| `reader` | a token that may see sessions (`read` or `prompt`) |
| `worker` | a token that may prompt |
| `listener` | a token that may prompt in every folder: it hears of all sessions of its principal |
| `operator` | a token with `admin` |
| `owner` | a token with `admin` and without limits of its own: what it makes could reach further than itself |

A share link and a node of the cluster have none of them. Every request wants our own header, those that only look too:
no page of another origin can send it, whatever its browser sends along.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from dragoman.errors import RequestFailed, UsageError
from dragoman.gateway.headers import has_our_header
from dragoman.gateway.http_replies import Bodies, Handle, Stop, answer
from dragoman.gateway.read_only import may_read
from dragoman.gateway.streaming import Receive, Send
from dragoman.gateway.token_types import TokenIdentity, TokenLimits, Unsure
from dragoman.store.contract import StoreFailed

if TYPE_CHECKING:
    from starlette.types import Scope

Right = Callable[[TokenIdentity], bool]
Wish = TypeVar("Wish", bound=msgspec.Struct)
# What is asked is small; a label, an address, a list of folders.
_BODY_BYTES: Final = 64 * 1024


def reader(identity: TokenIdentity) -> bool:
    """Return whether a token may see sessions."""
    return may_read(identity)


def worker(identity: TokenIdentity) -> bool:
    """Return whether a token may prompt."""
    return identity.may("prompt")


def listener(identity: TokenIdentity) -> bool:
    """Return whether a token may be told of all sessions of its principal, wherever they are."""
    return worker(identity) and not identity.limits.workspaces


def operator(identity: TokenIdentity) -> bool:
    """Return whether a token may see how the server does."""
    return identity.may("admin")


def owner(identity: TokenIdentity) -> bool:
    """Return whether a token may make others, and see what other principals have allowed."""
    return identity.may("admin") and identity.limits == TokenLimits()


def looking(right: Right, look: "Callable[[Scope, TokenIdentity], Awaitable[object]]") -> Handle:
    """Return a handler of GET: the answer is what `look` returns."""

    async def handle(scope: "Scope", receive: Receive, send: Send) -> None:
        identity = _admitted(scope, right)
        await _reply(send, lambda: look(scope, identity))

    return handle


def doing(
    right: Right, bodies: Bodies, kind: type[Wish], do: "Callable[[Wish, TokenIdentity], Awaitable[object]]"
) -> Handle:
    """Return a handler of POST: the body is a `kind`, the answer is what `do` returns."""

    async def handle(scope: "Scope", receive: Receive, send: Send) -> None:
        identity = _admitted(scope, right)
        async with bodies.read(scope, receive, _BODY_BYTES) as body:
            try:
                wish = msgspec.json.decode(body, type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                raise Stop(400, "The body is not what is expected here.") from None
        await _reply(send, lambda: do(wish, identity))

    return handle


def _admitted(scope: "Scope", right: Right) -> TokenIdentity:
    identity: TokenIdentity = scope["identity"]
    if not has_our_header(scope["headers"]):
        raise Stop(403, "The header X-Dragoman: 1 is missing.")
    if identity.share is not None:
        raise Stop(403, "This link shows one session and nothing else.")
    # The first is a client without a token; the console wants one.
    if not identity.token or identity.node or not right(identity):
        raise Stop(403, "This token may not do that.")
    return identity


async def _reply(send: Send, work: Callable[[], Awaitable[object]]) -> None:
    try:
        # Whole, before anything leaves: what fails here gets a status of its own, and no answer is cut off.
        body = msgspec.json.encode(await work())
    except (Unsure, StoreFailed):
        raise Stop(503, "That cannot be known now. Try again later.") from None
    except UsageError as error:
        raise Stop(400, str(error)) from None
    except RequestFailed as error:
        raise Stop(503, error.message) from None
    except OSError:
        raise Stop(503, "The server cannot write or read that now. Try again later.") from None
    await answer(send, 200, body)
