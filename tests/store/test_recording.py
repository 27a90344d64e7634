"""A session of another agent is recorded as it passes; nothing waits for the recording, and nothing fails with it."""

from pathlib import Path

import pytest

from dragoman.store import recording
from dragoman.store.contract import Log, SessionMeta, StoreFailed
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.store.recording import SessionRecorder, delete_old_recordings, recorded_id
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    CommandsChanged,
    Idle,
    Running,
    SessionInfoChanged,
    UserMessage,
)
from tests.store.scenes import entries_of

PROMPT = UserMessage("u1", [Text("Mend the tests\nof the parser")])
TURN: list[AnyEvent] = [
    PROMPT,
    Running(),
    AgentMessageChunk(Text("I will "), "m1"),
    AgentMessageChunk(Text("look."), "m1"),
    Idle("end_turn"),
]
ORIGIN = NoteEntry("recorded", {"agent": "codex", "session": "s/1"})
RECORDED: list[Entry] = [
    ORIGIN,
    EventEntry(PROMPT),
    EventEntry(Running()),
    TextEntry("agent_message_chunk", "m1", "I will look."),
    EventEntry(Idle("end_turn")),
]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "recorded")


class Sentences(list[str]):
    """What the recorder says of failures."""


def recorder(store: SqliteStore, failures: list[str] | None = None, session_id: str = "s/1") -> SessionRecorder:
    return SessionRecorder(store, "codex", session_id, "/work", on_failure=(failures or []).append)


async def test_a_turn_is_recorded_with_its_origin_its_folder_and_a_title(store: SqliteStore) -> None:
    recording = recorder(store)
    for event in TURN:
        recording.record(event)
    await recording.close()
    meta = await store.read_meta(recorded_id("codex", "s/1"))
    assert await entries_of(store.read(meta.id)) == RECORDED
    assert (meta.cwd, meta.title) == ("/work", "Mend the tests")
    await store.close()


async def test_a_session_that_is_opened_and_never_used_leaves_nothing(store: SqliteStore) -> None:
    recording = recorder(store)
    for event in (CommandsChanged([]), Idle(), SessionInfoChanged(title="New")):
        recording.record(event)
    await recording.close()
    assert list(await store.ids()) == []
    await store.close()


async def test_a_resumed_session_goes_on_in_the_same_log_and_its_replay_is_not_recorded_twice(
    store: SqliteStore,
) -> None:
    for _ in range(2):
        recording = recorder(store)
        for event in TURN:
            recording.record(event, is_replay=True)
        await recording.flush()
        for event in TURN:  # a replay may go on when the log is open already
            recording.record(event, is_replay=True)
        await recording.close()
    assert await entries_of(store.read(recorded_id("codex", "s/1"))) == [*RECORDED, *RECORDED[1:]]
    await store.close()


async def test_a_session_that_another_recorder_holds_is_recorded_once(store: SqliteStore, tmp_path: Path) -> None:
    first, failures = recorder(store), Sentences()
    first.record(PROMPT)
    await first.flush()
    other = SqliteStore(tmp_path / "recorded")
    second = recorder(other, failures)
    second.record(PROMPT)
    await second.close()
    await first.close()
    assert await entries_of(store.read(first.id)) == RECORDED[:2]
    assert failures == []
    await other.close()
    await store.close()


async def test_two_recorders_that_begin_at_once_record_once_and_say_nothing(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, failures, other = recorder(store), Sentences(), SqliteStore(tmp_path / "recorded")
    create = other.create

    async def create_late(meta: SessionMeta) -> Log:
        first.record(PROMPT)
        await first.flush()
        return await create(meta)

    monkeypatch.setattr(other, "create", create_late)
    second = SessionRecorder(other, "codex", "s/1", "/work", on_failure=failures.append)
    second.record(PROMPT)
    await second.close()
    await first.close()
    assert await entries_of(store.read(first.id)) == RECORDED[:2]
    assert failures == []
    await other.close()
    await store.close()


async def test_a_failing_disk_is_told_once_and_ends_the_recording_alone(tmp_path: Path) -> None:
    (tmp_path / "recorded").write_text("a file where the folder should be")
    store, failures = SqliteStore(tmp_path / "recorded"), Sentences()
    recording = SessionRecorder(store, "codex", "s/1", "/work", on_failure=failures.append)
    recording.record(PROMPT)
    await recording.flush()
    recording.record(Idle("end_turn"))
    await recording.close()
    assert len(failures) == 1
    assert failures[0].startswith("the session is not recorded any more: ")
    await store.close()


async def test_what_the_disk_cannot_follow_is_a_gap_in_the_log(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "WAITING_BYTES", 1000)
    recorded = recorder(store)
    recorded.record(PROMPT)
    for number in range(20):
        recorded.record(AgentMessageChunk(Text("x" * 100), f"m{number}"))
    await recorded.flush()
    recorded.record(Idle("end_turn"))
    await recorded.close()
    entries = await entries_of(store.read(recorded.id))
    gap = NoteEntry("recording gap", {"events": 24 - len(entries)})
    assert entries[-2:] == [gap, EventEntry(Idle("end_turn"))]
    await store.close()


async def test_a_full_recording_says_so_and_takes_no_more(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SESSION_BYTES", 1000)
    recorded = recorder(store)
    recorded.record(PROMPT)
    await recorded.flush()
    for _ in range(2):
        recorded.record(AgentMessageChunk(Text("x" * 2000), "m1"))
        await recorded.flush()
    await recorded.close()
    assert await entries_of(store.read(recorded.id)) == [*RECORDED[:2], NoteEntry("recording full", {})]
    await store.close()


async def test_old_recordings_and_those_beyond_the_bound_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    store = SqliteStore(tmp_path / "recorded", clock=lambda: now)
    for day in range(4):
        now = 1000.0 + day * 24 * 3600
        recorded = recorder(store, session_id=f"s{day}")
        recorded.record(PROMPT)
        await recorded.close()
    await delete_old_recordings(store, int(now * 1_000_000), 2)
    assert set(await store.ids()) == {recorded_id("codex", f"s{day}") for day in (1, 2, 3)}
    monkeypatch.setattr(recording, "KEPT_SESSIONS", 1)
    await delete_old_recordings(store, int(now * 1_000_000), 2)
    assert list(await store.ids()) == [recorded_id("codex", "s3")]
    await store.close()


def test_the_id_of_a_recording_is_a_name_for_files_whatever_the_agent_is_called() -> None:
    assert recorded_id("https://agents.example.org/acp", "x").rpartition("-")[0] == "https-agents-example-org"
    assert recorded_id("日本", "\ud800").rpartition("-")[0] == "agent"
    assert recorded_id("a", "x") != recorded_id("b", "x")


async def test_a_recorder_that_is_closed_twice_has_written_everything_once(store: SqliteStore) -> None:
    recorded = recorder(store)
    recorded.record(PROMPT)
    await recorded.close()
    await recorded.close()
    recorded.record(PROMPT)
    await recorded.flush()
    assert await entries_of(store.read(recorded.id)) == RECORDED[:2]
    await store.close()
    with pytest.raises(StoreFailed):
        await store.ids()
