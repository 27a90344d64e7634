"""The gateway on a socket: granian in our own process and loop.

granian waits at its own stop until every stream is over, so we end them first, and bound the wait. WebSockets it drops
with what was on its way, so we wait until that has left.
"""

import asyncio
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from dragoman.errors import StartFailed
from dragoman.gateway import idle_sockets
from dragoman.gateway.anonymous import only_this_machine
from dragoman.gateway.app import Gateway
from dragoman.gateway.certificate_files import CHECK_SECONDS as CERTIFICATE_SECONDS
from dragoman.gateway.certificate_files import CertificateFiles
from dragoman.gateway.connection_positions import EmbeddedPositions
from dragoman.gateway.console_api.routes import Console, ConsoleSettings
from dragoman.gateway.dead_peers import find_dead_peers
from dragoman.gateway.elephant import Elephant
from dragoman.gateway.guard import Guard
from dragoman.gateway.host_check import LOOPBACK, is_loopback
from dragoman.gateway.hub import Hub
from dragoman.gateway.idle_sockets import SocketPeer, connected_to, shut_down
from dragoman.gateway.issuer import Issuer
from dragoman.gateway.issuer_grants import IssuerGrants
from dragoman.gateway.issuer_login import IssuerLogin
from dragoman.gateway.issuer_settings import IssuerSettings
from dragoman.gateway.login_file import LoginFile
from dragoman.gateway.login_store import LoginStore
from dragoman.gateway.shared_state import SharedState
from dragoman.gateway.token_store import EmbeddedTokenKeeper, EmbeddedTokens, TokenStore
from dragoman.gateway.webhook_file import FileWebhooks
from dragoman.gateway.webhooks import WebhookSender

# From the first byte of a request to the end of its headers.
_HEADER_MILLISECONDS: Final = 10_000
_HEADER_BUFFER: Final = 64 * 1024
# HTTP/2 frames: as many streams as a client with many sessions needs; headers as large as ours may be.
_H2_STREAMS: Final = 300
_H2_HEADERS: Final = 64 * 1024
# A client that does not answer a ping within the library's 20 seconds is gone, or never was one.
_H2_PING_MILLISECONDS: Final = 30_000
# Connections the kernel holds for us, and those that granian holds at once; past that it accepts no more.
_BACKLOG: Final = 1024
_AT_ONCE: Final = 16_384
_READY_SECONDS: Final = 10.0
# With a renewed certificate: for the last answers to clients that have connected with the former one.
_TAKE_OVER_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 5.0
# For the last writes, which have their own bounds; a client that sends its body slowly is not waited for.
_REPLY_SECONDS: Final = 2.5
_CHECK_SECONDS: Final = 0.01
# Turns may end by themselves for so long when the server is told to stop.
GRACE_SECONDS: Final = 10.0


class GatewayServer:
    """A gateway that listens.

    `hubs` is the hub of its only agent, or those of several by their names in a path; the first is the one at `/acp`.
    `logins` is the folder in which logins of browsers outlive the server; without one they end. `issuer` is the OpenID
    issuer whose people may come in, beside tokens. `state` is what is shared with other servers; None: nothing is, and
    it is made of `tokens` and `logins`. `node_of` tells the tokens of other nodes of a cluster (`Guard`). `console` is
    what the operator says about the console.
    """

    def __init__(
        self,
        hubs: Hub | Mapping[str, Hub],
        tokens: TokenStore,
        *,
        host: str = "127.0.0.1",
        port: int = 8790,
        allowed_hosts: tuple[str, ...] = (),
        certificate: Path | None = None,
        key: Path | None = None,
        elephant: bool = False,
        logins: Path | None = None,
        issuer: IssuerSettings | None = None,
        state: SharedState | None = None,
        node_of: Callable[[bytes], str] | None = None,
        console: ConsoleSettings | None = None,
    ) -> None:
        self.hubs: Final[Mapping[str, Hub]] = {"": hubs} if isinstance(hubs, Hub) else hubs
        self.hub: Final = next(iter(self.hubs.values()))  # of the agent at `/acp`
        self.host: Final = host
        self.port: Final = port
        # A server on loopback, or on every address, is also called by the names of loopback.
        hosts = {host, *allowed_hosts} | (LOOPBACK if is_loopback(host) or host in ("0.0.0.0", "::") else set())
        # Rates go by a clock that no one can set back, logins by that of the wall: they outlive a restart.
        state = state or self._own_state(tokens, logins)
        console = console or ConsoleSettings()
        self._positions = state.positions
        for hub in self.hubs.values():
            hub.connections.positions = state.positions
        self._guard = Guard(state.tokens, hosts, port, time.monotonic, state.logins, state.grants, state.rates, node_of)
        self._issuer = None if issuer is None else Issuer(issuer, self._report_issuer, state.grants.forget_other_keys)
        login = None if self._issuer is None else IssuerLogin(self._issuer, state.grants)
        # Under any other host name another machine may reach the server.
        self.open_to_own_user: Final = elephant and only_this_machine((host, *allowed_hosts))
        paths = (
            Elephant(self.hub.connections, self._guard, open_to_own_user=self.open_to_own_user) if elephant else None
        )
        self._webhooks = self._webhook_sender(state, console)
        self._app = Gateway(self.hubs, self._guard, paths, login, Console(self.hubs, state, console, self._webhooks))
        self._tls = (certificate, key)
        self._address = host
        self._granian: Any = None
        self._serving: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """Return the address for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self._tls[0] is None else 'https'}://{host}:{self.port}/acp"

    async def start(self) -> None:
        """Begin to listen; returns when a connection succeeds. Raise `StartFailed` where that is not possible."""
        from granian.constants import Interfaces
        from granian.http import HTTP1Settings, HTTP2Settings
        from granian.server.embed import Server as Granian

        # granian takes an address only, and would listen on the first that a name leads to, whatever that is.
        address = self._address = await _address_of(self.host)
        _check_free(address, self.port)
        certificate, key = self._tls
        self._granian = Granian(
            self._app,
            address=address,
            port=self.port,
            interface=Interfaces.ASGINL,
            websockets=True,
            backlog=_BACKLOG,
            backpressure=_connections_at_once(self.hubs.values()),
            log_enabled=False,
            http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS, max_buffer_size=_HEADER_BUFFER),
            http2_settings=HTTP2Settings(
                max_concurrent_streams=_H2_STREAMS,
                max_headers_size=_H2_HEADERS,
                keep_alive_interval=_H2_PING_MILLISECONDS,
            ),
            ssl_cert=certificate,
            ssl_key=key,
        )
        self._granian.respawn_interval = 0
        # In our own loop: agents, sessions and sockets share one thread, so nothing here needs a lock.
        self._serving = asyncio.create_task(self._granian.serve())
        sweeps = [partial(hub.sweep, self._guard.is_valid, self._guard.is_logged_in) for hub in self.hubs.values()]
        endless: list[Callable[[], Awaitable[None]]] = [*sweeps]
        endless += [self._shut_down_silent, self._guard.logins.save_at_intervals, self._positions.save_at_intervals]
        endless.append(self.hub.usage.spend.save_at_intervals)
        if certificate is not None and key is not None:
            endless.append(partial(self._renew_certificate, CertificateFiles(certificate, key)))
        if self._issuer is not None:
            endless.append(self._issuer.keep_fresh)
        self._background = [asyncio.create_task(self._run_on(work)) for work in endless]
        async with asyncio.timeout(_READY_SECONDS):
            # granian has no event for this, so we connect to ourselves until that succeeds, or its task has failed.
            while not await self._answers():
                if self._serving.done():
                    raise StartFailed(f"cannot listen on {self.host}:{self.port}")
                await asyncio.sleep(0.01)
        # Only now: the sockets that listen are made inside of granian, and are found among our descriptors.
        find_dead_peers(self.port)
        self.hub.monitor.log.info("listening", host=self.host, port=self.port, tls=certificate is not None)

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Let turns end within `grace` seconds, end every stream, then the server. Bounded, and idempotent."""
        if self._serving is None:
            return
        # First the hub, with its streams: granian's own stop would wait for each of them for ever.
        await asyncio.gather(*(hub.close(grace) for hub in self.hubs.values()))
        await self._wait_until_replied()
        for task in self._background:
            task.cancel()
        if self._issuer is not None:
            await self._issuer.close()
        if self._webhooks is not None:
            await self._webhooks.close()
        if self.hub.monitor.traces is not None:
            await self.hub.monitor.traces.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await asyncio.gather(self._guard.logins.save(), self._positions.save(), self._save_spend())
        await asyncio.sleep(0)
        # A stop that hangs is cut off below: everything that clients were sent has left by now.
        self._granian.stop()
        with suppress(Exception):
            async with asyncio.timeout(_STOP_SECONDS):
                await asyncio.shield(self._serving)
        if not self._serving.done():
            self._serving.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._serving

    async def _save_spend(self) -> None:
        with self.hub.monitor.reporting():
            await self.hub.usage.spend.save()

    def _own_state(self, tokens: TokenStore, logins: Path | None) -> SharedState:
        return SharedState(
            EmbeddedTokens(tokens.valid),
            self._login_store(logins),
            IssuerGrants(time.time),
            EmbeddedPositions(),
            token_keeper=EmbeddedTokenKeeper(tokens),
            webhooks=FileWebhooks(None if logins is None else logins / "webhooks.json"),
        )

    def _webhook_sender(self, state: SharedState, console: ConsoleSettings) -> WebhookSender | None:
        if state.webhooks is None:
            return None
        monitor = self.hub.monitor
        sender = WebhookSender(state.webhooks, monitor, self._agent_of, origins=console.webhook_origins)
        monitor.listener = sender
        return sender

    def _agent_of(self, session_id: str) -> str:
        return next((name for name, hub in self.hubs.items() if session_id in hub.sessions), "")

    def _login_store(self, folder: Path | None) -> LoginStore:
        """Return the logins of this address and port: another server with the same folder has a file of its own."""
        if folder is None:
            return LoginStore(time.time)
        name = f"logins-{self.host.replace(':', '_').replace('/', '_')}-{self.port}.json"
        file = LoginFile(folder / name, lambda reason: self.hub.monitor.log.error("logins", file=name, reason=reason))
        return LoginStore(time.time, file)

    def _report_issuer(self, reason: str) -> None:
        self.hub.monitor.log.error("issuer", reason=reason)

    async def _wait_until_replied(self) -> None:
        """Wait until no request is being answered, for at most `_REPLY_SECONDS`."""
        for _ in range(round(_REPLY_SECONDS / _CHECK_SECONDS)):
            if not self._app.idle_sockets.has_requests:
                return
            await asyncio.sleep(_CHECK_SECONDS)

    async def _run_on(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do endless work, each step of which begins with a wait. Report a step that fails, as for want of a thread,
        and go on."""
        while True:
            with self.hub.monitor.reporting():
                await work()

    async def _renew_certificate(self, files: CertificateFiles) -> None:
        """Serve new connections with a renewed certificate, for as long as the server runs."""
        from granian.constants import SSLProtocols

        reported = ""
        while True:
            await asyncio.sleep(CERTIFICATE_SECONDS)
            problem = await asyncio.to_thread(files.renewed)
            if problem and problem != reported:
                self.hub.monitor.log.error("certificate", reason=problem)
            reported = problem or ""
            if problem == "":
                # It has the paths behind the links, which now lead elsewhere.
                self._granian.build_ssl_context(
                    files.certificate, files.key, None, SSLProtocols.tls13, None, [], client_verify=False
                )
                # Another worker listens on the same socket, and the one before accepts no more.
                self._granian.reload()
                await asyncio.sleep(_TAKE_OVER_SECONDS)
                # That one drops its WebSockets without a word to their clients. What is cut off here comes back by
                # itself, behind the last message that it has received.
                await asyncio.to_thread(shut_down, self.port, await asyncio.to_thread(connected_to, self.port))
                self.hub.monitor.log.info("certificate_renewed")

    async def _shut_down_silent(self) -> None:
        """Shut down silent sockets, for as long as the server runs."""
        expired: set[SocketPeer] = set()
        while True:
            # Sooner after some were shut down: granian then accepts others of a flood that have waited in the kernel.
            await asyncio.sleep(idle_sockets.CHECK_SECONDS / (10 if expired else 1))
            # In a thread: there may be thousands of descriptors to look at.
            connected = await asyncio.to_thread(connected_to, self.port)
            expired = self._app.idle_sockets.expired_peers(connected)
            if expired:
                await asyncio.to_thread(shut_down, self.port, expired)

    async def _answers(self) -> bool:
        # An address that means all of them cannot be connected to; loopback is one of them.
        where = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._address, self._address)
        try:
            _, writer = await asyncio.open_connection(where, self.port)
        except OSError:
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True


def _connections_at_once(hubs: Iterable[Hub]) -> int:
    """Return how many connections granian may hold: at most three quarters of the descriptors that this process may
    open, or two fifths where a client's agent takes one as well. The others are for agents and files, and for finding
    silent sockets, which takes two."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    share = 0.4 if any(hub.agents.source.each_principal for hub in hubs) else 0.75
    return _AT_ONCE if descriptors == resource.RLIM_INFINITY else min(_AT_ONCE, int(descriptors * share))


async def _address_of(host: str) -> str:
    """Return the address to listen on, for an address or a name. Raise `StartFailed` if a name that is to mean this
    machine only leads elsewhere."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise StartFailed(f"cannot listen on {host}: there is no such address") from error
    # IPv4 first: that is where clients look that are told `localhost`, or that fall back to it.
    addresses = sorted((str(where[0]) for *_, where in found), key=lambda address: ":" in address)
    if is_loopback(host) and not is_loopback(addresses[0]):
        raise StartFailed(f"cannot listen on {host}: it leads to {addresses[0]}, which others can reach")
    return addresses[0]


def _check_free(host: str, port: int) -> None:
    """Raise `StartFailed` if the port is in use. granian would say that in a thread of its own, as a traceback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As granian itself does: a port with connections in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartFailed(f"cannot listen on {host}:{port}: {(error.strerror or 'no').lower()}") from error
