"""The outbox of a vendor's wire: what is put leaves as the adapter writes it, and what arrives is adapted too."""

from collections.abc import Sequence

import pytest

from dragoman.dialects.vendors.wire_adapter import AdaptedFrames
from dragoman.errors import PARSE_ERROR, PeerMistake
from dragoman.link.adapted_outbox import AdaptedOutbox
from dragoman.link.outbox import text_stream
from tests.link.test_outbox import Pipe
from tests.support.waiting import settled

pytestmark = pytest.mark.anyio


class Doubling:
    """A wire on which every frame is sent twice, `drop` never, and `ask` is answered at once by `told`."""

    def receive(self, frame: bytes) -> AdaptedFrames:
        return AdaptedFrames([frame[::2]], [b"told"] if frame == b"aasskk" else [])

    def send(self, frame: bytes) -> Sequence[bytes]:
        return [] if frame == b"drop" else [frame, frame]


def adapted(pipe: Pipe) -> AdaptedOutbox:
    return AdaptedOutbox(pipe, Doubling(), trace=None)  # type: ignore[arg-type]  # it only writes


async def test_every_way_to_put_a_frame_passes_the_adapter() -> None:
    pipe = Pipe()
    box = adapted(pipe)
    box.put(b"1")
    box.put(b"drop")
    box.put_error_reply(b"2")
    box.put_and_flush(b"3")
    assert box.enqueue(1, [b"4"]) is None
    await settled()
    assert (pipe.written, box.size) == (b"1\n1\n2\n2\n3\n3\n4\n4\n", 0)


async def test_text_and_what_the_adapter_sends_back_are_in_the_form_of_the_wire_already() -> None:
    pipe, mistake = Pipe(), PeerMistake(PARSE_ERROR, "no JSON")
    box = adapted(pipe)
    assert box.adapt_received([b"aabb", mistake, b"aasskk"]) == [b"ab", mistake, b"ask"]
    text_stream(box, (b"<", b">")).put("x")
    await settled()
    assert pipe.written == b'told\n<"x">\n'
