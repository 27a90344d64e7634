"""The load of a campaign: clients that prompt, and clients that watch, at any node that answers.

They are as simple as a client can be: one socket, version 1 of the protocol, written by hand, so that what they note is
exactly what they were sent. One that is refused tries again on its connection; one that hears nothing goes to another
node, opens its session there, and sends the same prompt under the same operation id.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from chaos.check import Piece

# So long without a message a client waits before it tries another node.
PATIENCE_SECONDS: Final = 3.0
_PAUSE: Final = 0.1
_OPEN_SECONDS: Final = 3.0
# As often a prompt is sent that is refused; it may have been accepted then, so the next one follows.
_TRIES: Final = 3
_GAPS: Final = ("_gateway/missed", "_dragoman/gap")
# The end of a turn that began, said of its repeat.
_INTERRUPTED: Final = "The turn was interrupted"
_HELLO: Final = {"protocolVersion": 1, "clientCapabilities": {}}


class Refused(Exception):
    """An error reply."""


class Silent(Exception):
    """No connection, or no message for too long."""


class Client:
    """One connection to a node. `on_update` is called with each message about a session that is no reply."""

    def __init__(self, socket: ClientConnection, on_update: Callable[[dict[str, Any]], None]) -> None:
        self._socket: Final = socket
        self._on_update: Final = on_update
        self._numbers: Final = itertools.count()

    @classmethod
    async def open(cls, address: str, token: str, on_update: Callable[[dict[str, Any]], None]) -> "Client":
        """Connect to the node at a host and port. Raise `Silent` where that is not possible."""
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                socket = await connect(
                    f"ws://{address}/acp",
                    additional_headers=headers,
                    compression=None,
                    proxy=None,
                    max_size=None,
                    ping_interval=None,
                    close_timeout=0.2,
                )
        except (OSError, TimeoutError, WebSocketException, EOFError) as error:
            raise Silent from error
        client = cls(socket, on_update)
        try:
            await client.ask("initialize", _HELLO)
        except BaseException:
            client.drop()
            raise
        return client

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request; every message until then goes to `on_update`."""
        number = next(self._numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            await self._socket.send(msgspec.json.encode(message).decode())
            while True:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    answer = await self._receive()
                if answer.get("id") == number and "method" not in answer:
                    break
        except (OSError, TimeoutError, WebSocketException, EOFError) as error:
            raise Silent from error
        if "error" in answer:
            raise Refused(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    async def listen(self, seconds: float) -> None:
        """Receive for so long. Raise `Silent` when the connection ends."""
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(seconds):
                    while True:
                        await self._receive()
            except (OSError, WebSocketException, EOFError) as error:
                if isinstance(error, TimeoutError):
                    raise
                raise Silent from error

    def drop(self) -> None:
        """End the connection at once."""
        self._socket.transport.abort()

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = msgspec.json.decode(await self._socket.recv())
        if "method" in message:
            self._on_update(message)
        return message


class View:
    """What one client was shown of one session, piece by piece."""

    def __init__(self, address: str = "") -> None:
        self.heard_at = time.monotonic()
        self._source: Final = f"{address} from {datetime.now(UTC):%H:%M:%S.%f}"
        self._pieces: Final[list[Piece]] = []
        self._words: list[str] = []

    @property
    def pieces(self) -> list[Piece]:
        """What was shown so far, between the gaps that were told."""
        return [*self._pieces, Piece("".join(self._words), not self._pieces, self._source)]

    def note(self, message: dict[str, Any]) -> None:
        """Note a message about the session."""
        if message["method"] in _GAPS:
            self._pieces.append(self.pieces[-1])
            self._words = []
            return
        update = message["params"].get("update", {})
        self.heard_at = time.monotonic()
        if update.get("sessionUpdate") == "agent_message_chunk":
            self._words.append(update["content"].get("text", ""))


class Nodes:
    """Where the nodes are, and the token that counts at each; the next one to try is another every time."""

    def __init__(self, addresses: Sequence[str], token: str) -> None:
        self.token: Final = token
        self._addresses: Final = list(addresses)

    def address(self, number: int) -> str:
        """Return the host and port of a node, by any number."""
        return self._addresses[number % len(self._addresses)]


class Prompter:
    """Works with one session, and with the next after some prompts. Notes its views, its ends and its outages."""

    def __init__(self, number: int, nodes: Nodes, folder: Path, *, words: int, acts: int, prompts: int) -> None:
        self.number: Final = number
        self.views: Final[dict[str, list[View]]] = {}
        self.ended: Final[dict[str, tuple[str, str]]] = {}
        # From the last word before something went wrong to the first one after it.
        self.outages: Final[list[tuple[float, float]]] = []
        self.served_at = 0.0
        # What went wrong, and when, for a look into a long outage.
        self.troubles: Final[list[tuple[float, str]]] = []
        self.session_id = ""
        self.name = ""
        self.is_stopping = False
        self._nodes: Final = nodes
        self._folder: Final = folder
        self._words: Final = words
        self._acts: Final = acts
        self._prompts: Final = prompts
        self._at = number
        self._client: Client | None = None
        self._view = View()
        self._trouble_since: float | None = None
        self._is_replaying = False

    def __repr__(self) -> str:
        return f"<Prompter {self.number} {self.name} ended={len(self.ended)} outages={len(self.outages)}>"

    @property
    def words(self) -> list[str]:
        """The words that the newest view of the session has."""
        return self._view.pieces[-1].text.split()

    async def run(self) -> None:
        """Prompt until `is_stopping`."""
        for count in itertools.count():
            if self.is_stopping:
                break
            if count % self._prompts == 0:
                self.session_id = ""
                self.drop()
            await self._perform(f"op{self.number}x{count}")
        self.drop()

    def drop(self) -> None:
        """Leave the node, and begin a view with the next one."""
        client, self._client = self._client, None
        if client is not None:
            client.drop()

    def move(self, number: int) -> None:
        """Go to a certain node with the next prompt."""
        self.drop()
        self._at = number

    def _name_session(self) -> None:
        # Of its own for each try: one whose answer got lost has made a session as well.
        self.name = f"s{self.number}n{len(self.views)}"
        (self._folder / self.name).mkdir()
        self.views[self.name] = []

    async def _perform(self, operation: str) -> None:
        prompt = {"type": "text", "text": f"{operation} {self._words} {self._acts}"}
        tries = 0
        while tries < _TRIES and not (self.is_stopping and self._trouble_since):
            try:
                client = await self._opened()
                params = {"sessionId": self.session_id, "prompt": [prompt]}
                reply = await client.ask("session/prompt", {**params, "_meta": {"dragoman/operationId": operation}})
            except Silent as silent:
                self._note_trouble(f"silent: {silent.__cause__!r}")
                self.drop()
                self._at += 1
                await asyncio.sleep(_PAUSE)
            except Refused as refused:
                self._note_trouble(f"refused: {refused}")
                if _INTERRUPTED in str(refused):
                    return
                # An open session stays so: a client does not open it again for an error.
                tries += bool(self.session_id)
                await asyncio.sleep(_PAUSE)
            else:
                if reply.get("stopReason") == "end_turn":
                    words = self._words * (2 if self._acts else 1)
                    self.ended[operation] = (self.name, f"{operation}.{words - 1}")
                return
        # Refused again and again on this connection: as after the end of a node, another may know more.
        self.drop()
        self._at += 1

    async def _opened(self) -> Client:
        if self._client is not None:
            return self._client
        client = await Client.open(self._nodes.address(self._at), self._nodes.token, self._on_update)
        try:
            if not self.session_id:
                self._name_session()
            params = {"cwd": str(self._folder / self.name), "mcpServers": []}
            self._is_replaying = True
            self._begin_view()
            if self.session_id:
                await client.ask("session/load", {**params, "sessionId": self.session_id})
            else:
                self.session_id = (await client.ask("session/new", params))["sessionId"]
        except BaseException:
            client.drop()
            raise
        finally:
            self._is_replaying = False
        self._client = client
        return client

    def _begin_view(self) -> None:
        self._view = View(self._nodes.address(self._at))
        self.views[self.name].append(self._view)

    def _on_update(self, message: dict[str, Any]) -> None:
        if message.get("params", {}).get("sessionId") not in (None, self.session_id):
            return
        self._view.note(message)
        update = message["params"].get("update", {})
        if self._is_replaying or update.get("sessionUpdate") != "agent_message_chunk":
            return
        self.served_at = time.monotonic()
        if self._trouble_since is not None:
            self.outages.append((self._trouble_since, self.served_at))
            self._trouble_since = None

    def _note_trouble(self, what: str) -> None:
        self.troubles.append((time.monotonic(), f"{self.name} at {self._nodes.address(self._at)}: {what}"))
        if self._trouble_since is None:
            self._trouble_since = self.served_at or time.monotonic()


class Watcher:
    """Watches what another client works on, at another node than that."""

    def __init__(self, prompter: Prompter, nodes: Nodes, folder: Path) -> None:
        self.views: Final[dict[str, list[View]]] = {}
        self.is_stopping = False
        self._prompter: Final = prompter
        self._nodes: Final = nodes
        self._folder: Final = folder
        self._at = prompter.number + 1

    def __repr__(self) -> str:
        return f"<Watcher of {self._prompter!r}>"

    async def run(self) -> None:
        """Watch until `is_stopping`; after a lost connection, from the beginning and elsewhere."""
        while not self.is_stopping:
            try:
                await self._watch()
            except (Silent, Refused):
                self._at += 1
                await asyncio.sleep(_PAUSE)

    async def _watch(self) -> None:
        address = self._nodes.address(self._at)
        view, session_id, name = View(address), self._prompter.session_id, self._prompter.name
        if not session_id:
            await asyncio.sleep(_PAUSE)
            return
        self.views.setdefault(name, []).append(view)
        client = await Client.open(address, self._nodes.token, view.note)
        try:
            params = {"cwd": str(self._folder / name), "mcpServers": [], "sessionId": session_id}
            await client.ask("session/load", params)
            while not self.is_stopping and self._prompter.session_id == session_id:
                await client.listen(_PAUSE * 5)
                # A node that is cut off ends no connection; what is worked on is not silent for long.
                if time.monotonic() - view.heard_at > 2 * PATIENCE_SECONDS:
                    raise Silent
        finally:
            client.drop()
