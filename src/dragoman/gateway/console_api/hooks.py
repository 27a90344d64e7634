"""The webhooks of a principal: listed, made, tried out, removed. `webhooks` sends the messages."""

import time
from typing import Annotated, Final

import msgspec

from dragoman import limits
from dragoman.errors import UsageError
from dragoman.gateway.http_replies import Stop
from dragoman.gateway.token_types import TokenIdentity
from dragoman.gateway.webhook import EVENT_KINDS, WEBHOOKS, EventKind, Webhook, new_webhook
from dragoman.gateway.webhooks import WebhookSender
from dragoman.host.address import URL_CHARACTERS, UrlRefused

_NONE: Final = "There is no such webhook."
# Between two tries of a principal: a server is no tool to send requests with.
TRY_SECONDS: Final = 2.0
# Principals whose last try is known; the one that is evicted may try again at once.
_TRIED: Final = 1000


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True):
    """A webhook that is wanted."""

    url: Annotated[str, msgspec.Meta(max_length=URL_CHARACTERS)]
    events: tuple[EventKind, ...] = EVENT_KINDS
    content: bool = False


class WebhookId(msgspec.Struct, forbid_unknown_fields=True):
    """A webhook, by its id."""

    id: Annotated[str, msgspec.Meta(max_length=64)]


class Webhooks:
    """The webhooks of every principal, as the console changes them."""

    def __init__(self, sender: WebhookSender) -> None:
        self._sender = sender
        self._tried: dict[str, float] = {}  # when each principal has tried last, by the monotonic clock

    async def list(self, identity: TokenIdentity) -> dict[str, object]:
        """Return the webhooks of a principal, without their secrets."""
        found = await self._sender.webhooks.of(identity.principal)
        return {"webhooks": [self._shown(webhook) for webhook in found], "most": WEBHOOKS, "events": EVENT_KINDS}

    async def make(self, wish: NewWebhook, identity: TokenIdentity) -> dict[str, object]:
        """Make a webhook; its secret is in the answer, and never again. Raise `UsageError`, `Stop` (409)."""
        if not wish.events:
            raise UsageError("Choose at least one event.")
        try:
            # Judged again with each message (`host.post`): the name may stand for another address by then.
            webhook = new_webhook(wish.url, wish.events, content=wish.content, origins=self._sender.origins)
        except UrlRefused as error:
            raise UsageError(str(error)) from None
        if not await self._sender.webhooks.add(identity.principal, webhook):
            raise Stop(409, f"There are {WEBHOOKS} webhooks already. Remove one first.")
        return {**self._shown(webhook), "secret": webhook.secret}

    async def remove(self, wish: WebhookId, identity: TokenIdentity) -> dict[str, object]:
        """Remove a webhook. Raise `Stop` (404)."""
        if not await self._sender.webhooks.remove(identity.principal, wish.id):
            raise Stop(404, _NONE)
        return {"removed": True}

    async def try_out(self, wish: WebhookId, identity: TokenIdentity) -> dict[str, object]:
        """Send one message that says nothing, and return how that went. Raise `Stop` (404, 429)."""
        found = await self._sender.webhooks.of(identity.principal)
        webhook = next((one for one in found if one.id == wish.id), None)
        if webhook is None:
            raise Stop(404, _NONE)
        now = time.monotonic()
        if now - self._tried.pop(identity.principal, float("-inf")) < TRY_SECONDS:
            self._tried[identity.principal] = now
            raise Stop(429, "Wait a moment before you try it again.")
        # Before the message is sent: of many tries at once only the first one sends.
        self._tried[identity.principal] = now
        limits.evict_oldest(self._tried, _TRIED)
        return {"last": await self._sender.try_out(webhook)}

    def _shown(self, webhook: Webhook) -> dict[str, object]:
        return {
            "id": webhook.id,
            "url": webhook.url,
            "events": webhook.events,
            "content": webhook.content,
            "last": self._sender.last_delivery(webhook),
        }
