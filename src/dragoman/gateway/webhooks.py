"""Webhooks: a server of the user's own is told when a session has a question, or when a turn has ended.

Owns what a webhook is, the message, its signature, and the attempts. Whose session it is comes with the event; where
webhooks are kept is behind `SharedWebhooks`, embedded here in a file.

Promises
- Messages go to public addresses over https, or to an origin that the operator allows (`host.post`).
- It has ids and kinds, and nothing that was said, unless its owner wants that (`content`).
- It is signed as Standard Webhooks have it: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,…`.
- It is tried `len(PAUSES) + 1` times, and never again. So many wait at once, of one principal and of all; what is more
  is dropped and counted.
- A question is told of when it is open for `QUIET_SECONDS`: one that is answered at once needs none.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from dragoman import limits
from dragoman.errors import DragomanError, WorldError
from dragoman.gateway.monitor import Monitor
from dragoman.gateway.shared_state import SharedWebhooks, WaitingQuestion
from dragoman.gateway.webhook import EventKind, Webhook, signature_of
from dragoman.host.address import origin_of
from dragoman.host.text import harmless_line

_log = logging.getLogger(__name__)

# Between the attempts, in seconds.
PAUSES: Final = (5.0, 60.0)
ATTEMPT_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 5.0
# Messages that are on their way or wait for the next attempt: of one principal, of all.
WAITING_EACH: Final = 50
WAITING: Final = 500
# Connections at once.
# Of all principals together: servers of one that hang delay the messages of others, by `ATTEMPT_SECONDS` each.
_AT_ONCE: Final = 8
_TITLE_CHARACTERS: Final = 200


class WebhookDelivery(msgspec.Struct, frozen=True, rename="camel"):
    """How the last message to a webhook went: the status of the answer, or a sentence where there was none."""

    time: float
    status: int = 0
    problem: str = ""


Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[int]]


class WebhookSender:
    """Tells webhooks of what happens in sessions; a `SessionListener`.

    `agent_of` names the agent of a session, `origins` are those that the operator allows, `send` sends one message.
    """

    def __init__(
        self,
        webhooks: SharedWebhooks,
        monitor: Monitor,
        agent_of: Callable[[str], str],
        *,
        origins: Sequence[str] = (),
        send: Post | None = None,
        pauses: Sequence[float] = PAUSES,
        quiet_seconds: float | None = None,
    ) -> None:
        self.webhooks: Final = webhooks
        self.origins: Final = frozenset(map(origin_of, origins))
        self._monitor = monitor
        self._agent_of = agent_of
        self._send = send or self._post
        self._pauses = pauses
        self._quiet_seconds = QUIET_SECONDS if quiet_seconds is None else quiet_seconds
        self._timers: dict[str, asyncio.TimerHandle] = {}  # by the ids of questions
        self._waiting: Counter[str] = Counter()  # by principal
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._last: dict[str, WebhookDelivery] = {}  # by the ids of webhooks

    def __repr__(self) -> str:
        return f"<WebhookSender timers={len(self._timers)} waiting={self._waiting.total()}>"

    def last_delivery(self, webhook: Webhook) -> WebhookDelivery | None:
        """Return how the last message to a webhook went, since the start of this server."""
        return self._last.get(webhook.id)

    async def close(self) -> None:
        """Send no more; what waits for another attempt is dropped."""
        # First: one that fires now would begin a task that is not cancelled below.
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- what happens ------------------------------------------------------------------------------------------------

    def on_question(self, question: WaitingQuestion, owner: str | None, title: str) -> None:
        """Tell of a question when it has been open for a while."""
        # Sessions that were made without a gateway belong to no principal, and so have no webhook.
        if owner is None:
            return
        # For all principals together: a timer lives for seconds, and what it begins is bounded for each (`_begin`).
        if len(self._timers) >= WAITING:
            self._monitor.counts["webhooks_dropped"] += 1
            return
        data = {"sessionId": question.session_id, "agent": self._agent_of(question.session_id), "kind": question.kind}
        shown = harmless_line(title)[:_TITLE_CHARACTERS]
        tell = partial(self._on_quiet, question.id, owner, data, shown)
        self._timers[question.id] = asyncio.get_running_loop().call_later(self._quiet_seconds, tell)

    def on_question_end(self, question: WaitingQuestion) -> None:
        """Do not tell of a question any more."""
        timer = self._timers.pop(question.id, None)
        if timer is not None:
            timer.cancel()

    def on_turn_end(self, session_id: str, owner: str | None, stop_reason: str, seconds: float) -> None:
        """Tell that a turn has ended."""
        if owner is not None:
            data = {"sessionId": session_id, "agent": self._agent_of(session_id), "stopReason": stop_reason}
            self._begin(owner, "turn.ended", {**data, "seconds": round(seconds, 1)}, "")

    async def try_out(self, webhook: Webhook) -> WebhookDelivery:
        """Send a webhook a message that says nothing, once, and return how that went."""
        body = _body_of("test", {})
        await self._attempt(webhook, f"msg_{secrets.token_hex(12)}", body)
        return self._last[webhook.id]

    def _on_quiet(self, question_id: str, owner: str, data: Mapping[str, object], title: str) -> None:
        # From here on the message leaves, also if the question is answered in the next moment.
        self._timers.pop(question_id, None)
        self._begin(owner, "question.opened", data, title)

    def _begin(self, principal: str, kind: EventKind, data: Mapping[str, object], title: str) -> None:
        if self._waiting[principal] >= WAITING_EACH or self._waiting.total() >= WAITING:
            self._monitor.counts["webhooks_dropped"] += 1
            return
        # An event counts once, whatever the number of webhooks that want it.
        self._waiting[principal] += 1
        task = asyncio.get_running_loop().create_task(self._tell(principal, kind, data, title))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_done, principal))

    def _on_done(self, principal: str, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._waiting[principal] -= 1
        if not self._waiting[principal]:
            del self._waiting[principal]

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        from dragoman.host.post import post

        return await post(url, body, headers, origins=self.origins, seconds=ATTEMPT_SECONDS)

    # -- messages ----------------------------------------------------------------------------------------------------

    async def _tell(self, principal: str, kind: EventKind, data: Mapping[str, object], title: str) -> None:
        with self._monitor.reporting():
            try:
                webhooks = [one for one in await self.webhooks.of(principal) if kind in one.events]
            except (OSError, DragomanError):
                # Where they are kept cannot be reached now. Events are kept nowhere, so this one is lost.
                self._monitor.counts["webhooks_dropped"] += 1
                return
            await asyncio.gather(*(self._deliver(one, kind, data, title) for one in webhooks))

    async def _deliver(self, webhook: Webhook, kind: EventKind, data: Mapping[str, object], title: str) -> None:
        # The same id for every attempt: the other end can tell a repeat.
        message_id = f"msg_{secrets.token_hex(12)}"
        body = _body_of(kind, {**data, "title": title} if webhook.content and title else data)
        for pause in (*self._pauses, None):
            if await self._attempt(webhook, message_id, body) or pause is None:
                break
            await asyncio.sleep(pause)

    async def _attempt(self, webhook: Webhook, message_id: str, body: bytes) -> bool:
        """Send a message once; return whether another attempt would be of no use."""
        # Of this attempt, as the standard has it: receivers refuse a message that is minutes old.
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Dragoman",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature_of(webhook.secret, message_id, timestamp, body),
        }
        status, problem = 0, ""
        try:
            async with self._at_once:
                status = await self._send(webhook.url, body, headers)
        except WorldError as error:
            problem = str(error)
        is_done = 200 <= status < 300
        self._monitor.counts["webhooks_sent" if is_done else "webhooks_failed"] += 1
        self._last[webhook.id] = WebhookDelivery(time.time(), status, problem)
        # Webhooks that were removed leave theirs behind.
        limits.evict_oldest(self._last, WAITING)
        _log.debug("webhook %s: status %d %s", webhook.id, status, problem)
        # A server that says that the message is wrong says so of every repeat.
        return is_done or (400 <= status < 500 and status not in (408, 425, 429))


def _body_of(kind: str, data: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({"type": kind, "timestamp": int(time.time()), "data": data})
