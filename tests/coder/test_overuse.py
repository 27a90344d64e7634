"""A confined command that takes too much is ended, and its result says why and where the limit is set."""

from pathlib import Path

import pytest

from dragoman import limits
from dragoman.host import cgroups
from dragoman.host.resources import ProcessLimits, ResourceLimits, too_many_processes, too_much_memory
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, call
from tests.support.whole_agent import User, ends, events_of, whole

WANTED = ResourceLimits(300 * limits.MIB, 40)
# Each process is within its limit; all of them together are not.
TOGETHER = """python3 -c '
import os, time
for _ in range(4):
    if os.fork() == 0:
        data = bytearray(os.urandom(1 << 20) * 100)
        break
time.sleep(100)
'"""
CROWD = "for i in $(seq 60); do sleep 100 & done; wait"
ALONE = "python3 -c 'bytearray(400 << 20)'"
MET_ALONE = "The command may have met its limit of 300 MiB of memory for one process: sandbox_memory in config.toml."


@pytest.mark.parametrize("mode", ["workspace-write", "sandbox"])
@pytest.mark.parametrize(
    ("command", "sentence"),
    [(TOGETHER, too_much_memory(WANTED)), (CROWD, too_many_processes(WANTED)), (ALONE, MET_ALONE)],
    ids=["together", "crowd", "alone"],
)
async def test_a_command_that_takes_too_much_is_ended_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, command: str, sentence: str
) -> None:
    need("bwrap")
    monkeypatch.setattr("dragoman.host.sandbox.default_limits", lambda: WANTED)
    monkeypatch.setattr(cgroups, "usable_parent", lambda: None)
    # As for root, whom no number of processes binds: who is bound never has too many of them.
    only_memory = ProcessLimits(WANTED.memory, 0)
    monkeypatch.setattr(ProcessLimits, "of", classmethod(lambda cls, *given, **named: only_memory))
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    tool = "sandbox_bash" if mode == "sandbox" else "bash"
    model = RecordingModel([call(tool, command=command), {"say": "Well."}])
    async with whole(folder, model.make, user=User("allow_once"), mode=mode, home=home) as (_, session):
        events = await events_of(session)
    assert ends(events) == [(tool, "failed")]
    assert model.results[0].splitlines()[-1] == f"[{sentence}]"
