"""`initialize` answered from the first bytes alone: no link, no loop, no tables of any version.

A process that is started for every conversation answers before it has imported what serves the rest of it. Only the
plain case is taken: one whole message that is an `initialize` and succeeds. Any other bytes are left
to the link, which reads them from the beginning.
"""

from collections.abc import Callable
from typing import NamedTuple

from dragoman import limits
from dragoman.dialects.handshake.initialize import check_hello_id, decode_client, encode_agent
from dragoman.errors import PeerMistake
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire.framing import Framer, frame
from dragoman.wire.jsonrpc import JsonRpcPeer, RequestEnvelope


class InitializeAnswer(NamedTuple):
    """An answered `initialize`: what is to be sent, and what a link goes on from."""

    sent: bytes
    framer: Framer
    version: int
    client: ClientHello
    agent: AgentHello


def answer_initialize(
    data: bytes, versions: tuple[int, ...], hello: Callable[[], AgentHello]
) -> InitializeAnswer | None:
    """Return the answer, if `data` is an `initialize` and no whole message is behind it; None: leave it to the link."""
    framer = Framer(limit=limits.FRAME_BYTES)
    frames = framer.feed(data)
    # The link goes on with this framer: half a message behind the first one stays in it. A whole one would be lost.
    if len(frames) != 1 or framer.style is None:
        return None
    peer: JsonRpcPeer[None] = JsonRpcPeer(answers_noise=True)
    request = peer.receive(frames[0])
    if not isinstance(request, RequestEnvelope) or request.method != "initialize":
        return None
    try:
        version, client, name = decoded = decode_client(request.params, versions)
        check_hello_id(request.id, decoded)
    except PeerMistake:
        return None  # the link reads the same bytes again, and answers with the error
    if name:
        return None  # no plain case: the link greets in that dialect
    # Only now: what the hook does (reading settings, looking for keys) must happen once.
    agent = hello()
    payload = peer.answer(request.id, encode_agent(version, agent, client))
    return None if payload is None else InitializeAnswer(frame(payload, framer.style), framer, version, client, agent)
