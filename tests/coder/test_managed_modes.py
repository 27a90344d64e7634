"""Modes under an administrator's bounds: which may be used, from every way in, and what a session goes on in."""

from pathlib import Path

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.identity_limits import nearest_mode
from dragoman.coder.managed_file import parse_managed
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.modes import MODES
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import Notice
from dragoman.vocabulary.identity import LOCAL, Identity
from dragoman.vocabulary.options import Select
from tests.support.scripted_turns import RecordingModel, bash
from tests.support.whole_agent import User, events_of, scripted, text, whole

pytestmark = pytest.mark.anyio

FILE = "/etc/dragoman/managed.toml"


def managed(text: str) -> ManagedSettings:
    return parse_managed(text.encode(), FILE)


UP_TO_ASK = managed("[modes]\nhighest = 'ask'")
KEPT_IN = managed("[modes]\nallowed = ['workspace-write', 'sandbox']")


@pytest.mark.parametrize(
    ("settings", "wanted", "nearest"),
    [
        (UP_TO_ASK, "full-access", "ask"),
        (UP_TO_ASK, "ask", "ask"),
        (KEPT_IN, "ask", "workspace-write"),
        (KEPT_IN, "safe", "read-only"),
        (managed("[modes]\nallowed = ['workspace-write']"), "sandbox", "read-only"),
        (managed("[modes]\nallowed = []"), "full-access", "read-only"),
        (managed("[modes]\nallowed = []"), "plan", "plan"),
    ],
)
def test_the_mode_in_the_place_of_another_never_reaches_further(
    settings: ManagedSettings, wanted: str, nearest: str
) -> None:
    assert nearest_mode(wanted, LOCAL, settings) == nearest


def test_the_bounds_of_a_token_and_of_the_administrator_count_together() -> None:
    token = Identity("bob", "t", ("ask",))
    assert nearest_mode("full-access", token, managed("[modes]\nallowed = ['safe', 'full-access']")) == "safe"
    assert nearest_mode("full-access", token, UP_TO_ASK) == "workspace-write"


def mode_of(session: Conversation) -> str:
    (option,) = [one for one in session.options if isinstance(one, Select) and one.config_id == "mode"]
    return option.current_value


async def test_a_mode_that_is_not_permitted_is_not_offered_and_not_set(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"say": "Hi."}]), managed=UP_TO_ASK) as (_, session):
        (option,) = [one for one in session.options if isinstance(one, Select) and one.config_id == "mode"]
        assert [choice.value for choice in option.choices()] == [mode for mode in MODES if mode != "full-access"]
        with pytest.raises(RequestFailed, match="full-access"):
            await session.set_option("mode", "full-access")
        assert mode_of(session) == "ask"


async def test_a_session_begins_in_the_nearest_mode(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"say": "Hi."}]), managed=KEPT_IN) as (_, session):
        assert mode_of(session) == "workspace-write"


@pytest.mark.requirement("N3")
async def test_a_slash_command_sets_no_mode_that_is_not_permitted(tmp_path: Path) -> None:
    user = User("allow_once")
    async with whole(tmp_path, scripted([{"say": "Hi."}]), managed=UP_TO_ASK, user=user) as (_, session):
        said = text(await events_of(session, "/mode full-access"))
        assert said == (
            f"full-access: The administrator's file {FILE} does not allow mode full-access; there are read-only, plan, "
            "ask, workspace-write, safe, sandbox\n"
        )
        assert (mode_of(session), user.asked) == ("ask", [])


async def test_a_plan_can_be_made_whatever_is_permitted(tmp_path: Path) -> None:
    model = RecordingModel([bash("touch x"), {"say": "."}])
    async with whole(tmp_path, model.make, managed=managed("[modes]\nallowed = ['full-access']")) as (_, session):
        await events_of(session, "/plan something")
    assert model.results == ["Permission denied. Mode plan does not allow it."]


@pytest.mark.requirement("N3")
async def test_a_stored_session_goes_on_in_a_permitted_mode_and_says_so(tmp_path: Path) -> None:
    model, work = scripted([{"say": "Hi."}]), tmp_path / "work"
    work.mkdir()
    store = SqliteStore(tmp_path / "home")
    async with whole(work, model, store=store) as (_, session):
        await session.set_option("mode", "full-access")
        await events_of(session)
        id = session.id
    async with whole(work, model, store=SqliteStore(tmp_path / "home"), managed=UP_TO_ASK) as (client, _):
        again = await client.load_session(id, str(work))
        assert mode_of(again) == "ask"
        notices = [event.title for event in await events_of(again) if isinstance(event, Notice)]
    refusal = f"the administrator's file {FILE} does not allow mode full-access."
    assert notices == [f"This session goes on in mode ask, not in full-access: {refusal}"]


@pytest.mark.requirement("N3")
async def test_a_session_in_a_narrow_mode_does_not_come_back_in_a_wider_one(tmp_path: Path) -> None:
    """The mode that new sessions begin in reaches further than the one that the stored session had."""
    model, work = scripted([{"say": "Hi."}]), tmp_path / "work"
    work.mkdir()
    async with whole(work, model, store=SqliteStore(tmp_path / "home")) as (_, session):
        await session.set_option("mode", "safe")
        await events_of(session)
        id = session.id
    bounds = managed("[modes]\nallowed = ['ask']")
    async with whole(work, model, store=SqliteStore(tmp_path / "home"), managed=bounds) as (client, _):
        assert mode_of(await client.load_session(id, str(work))) == "read-only"
