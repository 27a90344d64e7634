"""Which processes belong to a tree: found wherever they went, and no others."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.host import process_tree
from dragoman.host.process_tree import Process, Tree, marked, new_mark
from tests.support.machine import lives, state


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_marks_add_up_so_that_a_tree_within_a_tree_belongs_to_both() -> None:
    inner = marked(marked({"A": "1"}, "outer"), "inner")
    assert inner == {"A": "1", "DRAGOMAN_TREE": "outer:inner"}


def test_a_lone_leader_is_the_whole_tree(sleeper: "subprocess.Popen[bytes]") -> None:
    assert [process.pid for process in Tree(sleeper.pid, "no such mark").members()] == [sleeper.pid]


def test_a_process_that_carries_the_mark_belongs_to_it_whichever_its_parent_is(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    mark = new_mark()
    environment = marked(dict(os.environ), mark)
    stray = subprocess.Popen(["sleep", "1000"], start_new_session=True, env=environment)
    # Popen returns in the middle of exec, a moment before the kernel has laid out the new environment.
    deadline = time.monotonic() + 10
    while mark.encode() not in Path(f"/proc/{stray.pid}/environ").read_bytes():
        assert time.monotonic() < deadline
    members = {process.pid for process in Tree(sleeper.pid, mark).members()}
    stray.kill()
    stray.wait()
    assert members == {sleeper.pid, stray.pid}


def test_the_dead_are_no_members(sleeper: "subprocess.Popen[bytes]") -> None:
    whole = Tree(sleeper.pid, "no such mark")
    whole.end(grace=0)
    assert state(sleeper.pid) == "Z"
    assert whole.members() == []


def test_a_leader_that_was_reaped_by_others_has_no_number_any_more(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Tree(sleeper.pid, "no such mark")
    sleeper.kill()
    sleeper.wait()
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("a stale number was signalled"))
    whole.end(grace=0.01)
    assert whole.members() == []


def test_a_number_that_was_given_to_another_process_is_not_signalled(sleeper: "subprocess.Popen[bytes]") -> None:
    [now] = Tree(sleeper.pid, "no such mark").members()
    earlier = Process(now.pid, now.state, now.parent, now.group, now.session, now.started - 1)
    assert not process_tree.signal_process(earlier, signal.SIGKILL)
    assert lives(sleeper.pid)
    assert process_tree.signal_process(now, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL


def test_a_name_with_brackets_and_spaces_is_read_past() -> None:
    code = "import time; open('/proc/self/comm', 'w').write(') Z 1 ('); print(flush=True); time.sleep(1000)"
    process = subprocess.Popen(["python3", "-I", "-S", "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    [member] = Tree(process.pid, "no such mark").members()
    process.kill()
    process.wait()
    process.stdout.close()
    assert (member.pid, member.group, member.session, member.parent) == (process.pid,) * 3 + (os.getpid(),)


def test_one_that_leaves_the_group_while_it_is_signalled_dies_too(sleeper: "subprocess.Popen[bytes]") -> None:
    mark = new_mark()
    stray = subprocess.Popen(["sleep", "1000"], start_new_session=True, env=marked(dict(os.environ), mark))

    class JustBefore(Tree):
        """Sees it where it was a moment ago: in the leader's group."""

        def members(self) -> list[Process]:
            return [process._replace(group=self.leader) for process in super().members()]

    whole = JustBefore(sleeper.pid, mark)
    deadline = time.monotonic() + 30
    while stray.pid not in {process.pid for process in whole.members()}:
        assert time.monotonic() < deadline
    whole.end(grace=0)
    assert stray.wait(30) == -signal.SIGKILL
