"""Which modes are open to an identity: by its ceilings, and by what the machine can confine."""

from pathlib import Path

import pytest

from dragoman.coder import identity_limits
from dragoman.coder.agent import coding_agent
from dragoman.coder.identity_limits import allowed_modes, may_answer, nearest_mode
from dragoman.coder.modes import MODES
from dragoman.errors import RequestFailed
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.identity import LOCAL, Identity, Needs, with_identity
from dragoman.vocabulary.requests import NewSession, SetOption
from tests.support.whole_agent import ENVIRONMENT, Fixed, Guarded, scripted

READING = {"read-only", "plan"}


def free(*max_modes: str) -> Identity:
    return Identity(max_modes=max_modes, confined=False)


@pytest.fixture
def _nothing_can_be_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_limits, "_can_confine", lambda: False)


@pytest.fixture
def _can_confine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_limits, "_can_confine", lambda: True)


def test_every_mode_has_its_place() -> None:
    assert allowed_modes(LOCAL) == list(MODES)
    assert all(nearest_mode(mode, LOCAL) == mode for mode in MODES)


@pytest.mark.usefixtures("_can_confine")
def test_a_confined_identity_has_no_mode_from_ask_on() -> None:
    assert set(allowed_modes(Identity())) == READING | {"safe", "sandbox", "workspace-write"}
    assert nearest_mode("ask", Identity()) == nearest_mode("full-access", Identity()) == "workspace-write"
    assert nearest_mode("safe", Identity()) == "safe"


@pytest.mark.usefixtures("_nothing_can_be_confined")
def test_where_nothing_can_be_confined_a_confined_identity_only_reads() -> None:
    assert set(allowed_modes(Identity())) == READING
    assert nearest_mode("ask", Identity()) == "read-only"
    assert allowed_modes(free()) == list(MODES)


@pytest.mark.usefixtures("_can_confine")
def test_the_lowest_of_all_ceilings_counts_and_an_unknown_one_is_the_lowest() -> None:
    assert set(allowed_modes(free("ask", "safe"))) == READING | {"safe"}
    assert set(allowed_modes(Identity(max_modes=("full-access",)))) == set(allowed_modes(Identity()))
    assert set(allowed_modes(free("nonsense"))) == READING


@pytest.mark.usefixtures("_can_confine")
def test_a_yes_counts_from_those_who_could_do_it_themselves() -> None:
    confined = Identity()
    assert may_answer(confined, Needs("workspace-write"))
    assert not may_answer(confined, Needs("workspace-write", leave=True))
    assert not may_answer(confined, Needs("ask"))
    assert not may_answer(free("workspace-write"), Needs("ask"))
    assert may_answer(LOCAL, Needs("full-access", leave=True))


@pytest.mark.anyio
async def test_a_refused_mode_counts_at_no_time(tmp_path: Path) -> None:
    """The turn of another client may run, and would be judged by it until the refusal is written down."""
    agent = coding_agent(Guarded(Fixed(scripted([{"say": "hi"}])), ENVIRONMENT, mode="read-only"))
    ours, _ = memory_pair(1024)
    connection = agent._connection(ours, None, trusted=True)
    opened = await connection.sessions.new(NewSession(str(tmp_path)))
    session = connection.sessions.open[opened.session_id].session
    wish = SetOption(session.id, "mode", "full-access")
    refusal = connection.on_request(with_identity(wish, Identity(token="phone")), 1)
    assert session.option("mode") == "read-only"
    assert not isinstance(refusal, Reply)
    with pytest.raises(RequestFailed, match="The token 'phone' may not use mode full-access"):
        await refusal
    assert session.option("mode") == "read-only"
