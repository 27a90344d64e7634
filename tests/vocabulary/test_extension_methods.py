"""What an agent names in `_meta`, among other things that stand there."""

import pytest

from dragoman.vocabulary.hello import AgentCapabilities, AgentHello


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"x/extensions": ["_a", {"method": "_b"}, 7, {"other": 1}, "_a"], "x/other": ["_c"]}, ["_a", "_b"]),
        ({"x/extensions": "_a"}, []),
        ({}, []),
    ],
)
def test_methods_of_its_own_are_found_among_other_things(meta: dict[str, object], found: list[str]) -> None:
    assert AgentHello(None, meta=meta).extension_methods() == found
    assert AgentHello(None, AgentCapabilities(meta=meta)).extension_methods() == found
