"""A broken peer fails its own row, and no other that must hold but those that cannot hold without it."""

import pytest

from tests.support.cross_table import BrokenPeer, broken_peers, expected_rows, failed_rows, own_rows

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.mark.requirement("CK7")
@pytest.mark.parametrize("peer", [pytest.param(peer, id=str(peer)) for peer in broken_peers()])
async def test_a_broken_peer_fails_no_other_row(peer: BrokenPeer) -> None:
    assert await failed_rows(peer) - own_rows(peer) - expected_rows(peer) == set()
