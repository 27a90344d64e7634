"""Webhooks: what is sent, to whom, how often, and where it may go."""

import asyncio
import base64
import hashlib
import hmac
import json
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import UsageError
from dragoman.gateway import webhook_file
from dragoman.gateway import webhooks as webhooks_module
from dragoman.gateway.console_api.routes import ConsoleSettings
from dragoman.gateway.monitor import Monitor
from dragoman.gateway.shared_state import WaitingQuestion
from dragoman.gateway.webhook import WEBHOOKS, Webhook, new_webhook, signature_of
from dragoman.gateway.webhook_file import FileWebhooks
from dragoman.gateway.webhooks import WebhookSender
from dragoman.host.address import UrlRefused
from dragoman.host.bounded_body import FetchFailed
from tests.support.console_api import ConsoleApi, asking
from tests.support.gateway import gateway, raw_http
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

ASKED = WaitingQuestion("q1", "sess_1", "permission")


class Inbox:
    """The other end of a webhook: it answers with these statuses, the last one for ever; 0: not at all."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses or (200,))
        self.got: list[tuple[str, bytes, Mapping[str, str]]] = []

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.got.append((url, body, headers))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if not status:
            raise FetchFailed("It cannot be reached.")
        return status

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body, _ in self.got]


async def sender(inbox: Inbox, *webhooks: Webhook, pauses: Sequence[float] = (0.0, 0.0)) -> WebhookSender:
    """A sender whose principal `ada` has these webhooks, or one."""
    kept = FileWebhooks()
    for webhook in webhooks or (hook(),):
        assert await kept.add("ada", webhook)
    return WebhookSender(kept, Monitor(), lambda _: "codex", send=inbox.send, pauses=pauses, quiet_seconds=0.0)


def hook(**changes: Any) -> Webhook:
    values: dict[str, Any] = {"events": ("question.opened", "turn.ended"), "content": False, **changes}
    return new_webhook("https://hooks.example.com/x", origins=(), **values)


@pytest.mark.requirement("K67")
async def test_a_message_is_signed_and_has_no_content() -> None:
    inbox, webhook = Inbox(), hook()
    one = await sender(inbox, webhook)
    one.on_question(ASKED, "ada", "Delete the secret plan?")
    await until(lambda: bool(inbox.got))
    ((url, body, headers),) = inbox.got
    assert url == "https://hooks.example.com/x"
    message = json.loads(body)
    assert (message["type"], message["data"]) == (
        "question.opened",
        {"sessionId": "sess_1", "agent": "codex", "kind": "permission"},
    )
    key = base64.b64decode(webhook.secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert webhook.secret not in f"{body!r}{headers}"


def test_a_signature_is_that_of_the_standard() -> None:
    # The example of standardwebhooks.com.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    assert signature_of(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@pytest.mark.requirement("K67")
async def test_content_comes_only_where_its_owner_wants_it() -> None:
    inbox = Inbox()
    one = await sender(inbox, hook(content=True))
    one.on_question(ASKED, "ada", "Delete\n\x1b[31m the plan? " + "x" * 500)
    await until(lambda: bool(inbox.got))
    title = inbox.bodies[0]["data"]["title"]
    assert title.startswith("Delete ")
    assert len(title) == 200
    assert "\x1b" not in title


@pytest.mark.requirement("K67")
async def test_only_the_principal_whose_session_it_is_is_told() -> None:
    inbox = Inbox()
    one = await sender(inbox)
    for owner in ("bob", None):
        one.on_question(ASKED, owner, "")
        one.on_turn_end("sess_1", owner, "end_turn", 1.0)
    one.on_turn_end("sess_2", "ada", "end_turn", 1.25)
    await until(lambda: bool(inbox.got))
    await one.close()
    assert [message["data"] for message in inbox.bodies] == [
        {"sessionId": "sess_2", "agent": "codex", "stopReason": "end_turn", "seconds": 1.2}
    ]


async def test_a_question_that_is_answered_at_once_is_not_told_of() -> None:
    inbox = Inbox()
    one = await sender(inbox)
    one.on_question(ASKED, "ada", "")
    one.on_question_end(ASKED)
    one.on_turn_end("sess_1", "ada", "end_turn", 1.0)
    await until(lambda: bool(inbox.got))
    assert [message["type"] for message in inbox.bodies] == ["turn.ended"]


async def test_only_the_events_that_were_chosen_are_sent() -> None:
    inbox = Inbox()
    one = await sender(inbox, hook(events=("turn.ended",)))
    one.on_question(ASKED, "ada", "")
    one.on_turn_end("sess_1", "ada", "end_turn", 1.0)
    await until(lambda: bool(inbox.got))
    await one.close()
    assert [message["type"] for message in inbox.bodies] == ["turn.ended"]


@pytest.mark.requirement("K68")
@pytest.mark.parametrize(
    ("statuses", "attempts"),
    [((200,), 1), ((500, 200), 2), ((0,), 3), ((503,), 3), ((400,), 1), ((301,), 3), ((429, 204), 2)],
)
async def test_a_message_is_tried_three_times_at_most_with_one_id(statuses: tuple[int, ...], attempts: int) -> None:
    inbox = Inbox(*statuses)
    one = await sender(inbox)
    one.on_turn_end("sess_1", "ada", "end_turn", 1.0)
    await until(lambda: repr(one) == "<WebhookSender timers=0 waiting=0>")
    assert len(inbox.got) == attempts
    assert len({headers["webhook-id"] for _, _, headers in inbox.got}) == 1
    (webhook,) = await one.webhooks.of("ada")
    last = one.last_delivery(webhook)
    assert last is not None
    assert last.status == (statuses[attempts - 1] if attempts <= len(statuses) else statuses[-1])


@pytest.mark.requirement("K68")
async def test_of_one_principal_so_many_messages_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "WAITING_EACH", 3)
    inbox = Inbox(500)
    one = await sender(inbox, pauses=(3600.0,))
    for number in range(10):
        one.on_turn_end(f"sess_{number}", "ada", "end_turn", 1.0)
    await until(lambda: len(inbox.got) == 3)
    assert one._monitor.counts["webhooks_dropped"] == 7
    async with asyncio.timeout(5):
        await one.close()
    assert len(inbox.got) == 3


@pytest.mark.requirement("K69")
@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://10.0.0.5:9000/",
        "https://[::1]/",
        "https://localhost/",
        "https://metadata.internal/",
        "https://169.254.169.254/latest",
        "https://2130706433/",
        "https://user@hooks.example.com/",
        "ftp://hooks.example.com/",
        "nonsense",
    ],
)
def test_an_address_that_is_not_public_is_refused(url: str) -> None:
    with pytest.raises(UrlRefused):
        new_webhook(url, ("turn.ended",), content=False, origins=["http://10.0.0.5:9000"])


@pytest.mark.requirement("K69")
async def test_a_name_that_leads_into_the_network_behind_us_is_not_called() -> None:
    from dragoman.host.post import post

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", "10.0.0.5"]

    def opened(url: str, proxy: str | None) -> Any:
        raise AssertionError("a connection was begun")

    class Unused:
        async def aclose(self) -> None:
            pass

    with pytest.raises(UrlRefused, match="not public"):
        await post(
            "https://rebound.example.com/",
            b"{}",
            {},
            seconds=5,
            resolve=resolve,
            open_transport=lambda url, proxy: Unused(),  # type: ignore[arg-type, return-value]
        )
    with pytest.raises(UrlRefused):
        await post("https://127.0.0.1/", b"{}", {}, seconds=5, open_transport=opened)


@pytest.mark.requirement("K69")
async def test_a_question_reaches_a_server_that_the_operator_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks_module, "QUIET_SECONDS", 0.0)
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        got.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    console = ConsoleSettings(webhook_origins=[origin])
    async with server, gateway(asking(), tmp_path, console=console, logins=tmp_path) as served:
        api = ConsoleApi(served)
        made = await api.answer("webhooks", {"url": f"{origin}/inbox"})
        tried = await api.answer("webhooks/try", {"id": made["id"]})
        assert (tried["last"]["status"], tried["last"]["problem"]) == (204, "")
        assert (await api.post("webhooks/try", {"id": made["id"]})).status_code == 429
        async with raw_http(served, 2) as client:
            session = await client.session()
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
            await client.post({"id": 9, "method": "session/prompt", "params": prompt}, session)
            await until(lambda: len(got) == 2)
        assert got[1].startswith(b"POST /inbox HTTP/1.1\r\n")
        assert b"webhook-signature: v1," in got[1].lower()
        assert b"secret plan" not in got[1]
        assert json.loads(got[1].partition(b"\r\n\r\n")[2])["data"]["sessionId"] == session
        # Of another principal it is nothing.
        bob = ConsoleApi(served, served.token_of("bob", ("read", "prompt")))
        assert (await bob.answer("webhooks"))["webhooks"] == []
        for path in ("webhooks/try", "webhooks/remove"):
            assert (await bob.post(path, {"id": made["id"]})).status_code == 404
        (listed,) = (await api.answer("webhooks"))["webhooks"]
        assert "secret" not in listed
        assert (await api.post("webhooks", {"url": "http://127.0.0.1:1/"})).status_code == 400
        assert await api.answer("webhooks/remove", {"id": made["id"]}) == {"removed": True}


async def test_webhooks_outlive_a_restart_in_a_file_of_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "webhooks.json"
    webhook = hook()
    assert await FileWebhooks(path).add("ada", webhook)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = FileWebhooks(path)
    assert await again.of("ada") == [webhook]
    for _ in range(WEBHOOKS - 1):
        assert await again.add("ada", hook())
    assert not await again.add("ada", hook())
    assert await again.remove("ada", webhook.id)
    assert not await again.remove("ada", webhook.id)
    path.write_text("nonsense")
    path.chmod(0o600)
    with pytest.raises(UsageError, match="no file of webhooks"):
        await FileWebhooks(path).of("ada")


async def test_a_slow_first_look_into_the_file_does_not_undo_a_webhook_that_was_added_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, go_on, began = tmp_path / "webhooks.json", threading.Event(), threading.Event()
    assert await FileWebhooks(path).add("ada", hook())
    read = webhook_file._read_file

    def slow(path: Path) -> dict[str, list[Webhook]]:
        found = read(path)
        if not began.is_set():
            began.set()
            assert go_on.wait(20)
        return found

    monkeypatch.setattr(webhook_file, "_read_file", slow)
    webhooks = FileWebhooks(path)
    looking = asyncio.ensure_future(webhooks.of("ada"))
    await until(began.is_set)
    assert await webhooks.add("ada", hook())
    go_on.set()
    await looking
    assert len(await webhooks.of("ada")) == 2


async def test_questions_beyond_those_that_may_wait_are_counted_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "WAITING", 2)
    monitor = Monitor()
    one = WebhookSender(FileWebhooks(), monitor, lambda _: "codex", quiet_seconds=60.0)
    for number in range(3):
        one.on_question(ASKED._replace(id=f"question {number}"), "ada", "")
    assert monitor.counts["webhooks_dropped"] == 1
    await one.close()


async def test_a_file_of_webhooks_that_could_not_be_read_again_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "webhooks.json"
    webhooks = FileWebhooks(path)
    assert await webhooks.add("ada", hook())
    monkeypatch.setattr(webhook_file, "_FILE_BYTES", path.stat().st_size + 10)
    with pytest.raises(UsageError, match="too many webhooks"):
        await webhooks.add("bob", hook())
    assert (await webhooks.of("bob"), len(await FileWebhooks(path).of("ada"))) == ([], 1)


async def test_a_file_that_cannot_be_read_drops_events_with_a_count_and_is_not_named_to_users(tmp_path: Path) -> None:
    path = tmp_path / "webhooks.json"
    path.touch(mode=0o600)
    path.write_text("nonsense")
    monitor = Monitor()
    one = WebhookSender(FileWebhooks(path), monitor, lambda _: "codex")
    one.on_turn_end("sess_1", "ada", "end_turn", 1.0)
    await until(lambda: monitor.counts["webhooks_dropped"] == 1)
    with pytest.raises(UsageError) as failed:
        await one.webhooks.of("ada")
    assert str(tmp_path) not in str(failed.value)
