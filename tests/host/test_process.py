"""A child and all that came from it: started, heard, and gone without a trace."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.errors import StartFailed, UsageError
from dragoman.host.process import Child
from tests.support.machine import lives, read_line, read_pid, state
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}
# All bounds of stop() together, and time for a busy machine; who is waited for by mistake sleeps for longer.
STOP_SECONDS = limits.CHILD_EXIT_SECONDS + limits.CHILD_TERM_SECONDS + 10.0


@asynccontextmanager
async def running(*argv: str, cwd: str | Path = "/") -> AsyncIterator[Child]:
    child = Child.start(argv, cwd=cwd, env=ENVIRONMENT)
    try:
        yield child
    finally:
        await child.stop()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def wait_without_the_loop(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def stop_within_bounds(child: Child) -> None:
    before = time.monotonic()
    await child.stop()
    assert time.monotonic() - before < STOP_SECONDS


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what happens after the patience, not of how long it lasts."""
    monkeypatch.setattr(limits, "CHILD_EXIT_SECONDS", 0.02)
    monkeypatch.setattr(limits, "CHILD_TERM_SECONDS", 0.1)


# --- a life


async def test_a_child_talks_through_its_pipes_and_exits_when_its_input_ends() -> None:
    async with running("cat") as child:
        os.write(child.stdin, b"hello\n")
        assert await read_line(child.stdout) == "hello"
        child.close_stdin()
        assert await child.wait() == 0


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9)])
async def test_the_exit_code_is_noticed(command: str, code: int) -> None:
    async with running("sh", "-c", command) as child:
        calls: list[int | None] = []
        child.on_exit(lambda: calls.append(child.exit_code))
        assert await child.wait() == code
        child.on_exit(lambda: calls.append(child.exit_code))
        await until(lambda: calls == [code, code])
    assert child.exit_code == code


async def test_exactly_the_given_environment_and_one_more_mark_reach_it() -> None:
    child = Child.start(["env"], cwd="/", env=ENVIRONMENT | {"DRAGOMAN_TREE": "outer"})
    lines = {await read_line(child.stdout) for _ in range(2)}
    await child.stop()
    assert len(lines) == 2
    assert f"PATH={ENVIRONMENT['PATH']}" in lines
    assert any(re.fullmatch("DRAGOMAN_TREE=outer:[0-9a-f]{16}", line) for line in lines)


async def test_its_working_directory_is_the_given_one(tmp_path: Path) -> None:
    async with running("pwd", "-P", cwd=tmp_path) as child:
        assert await read_line(child.stdout) == str(tmp_path.resolve())


async def test_it_inherits_no_descriptor_of_ours() -> None:
    read_fd, write_fd = os.pipe()
    os.set_inheritable(write_fd, True)
    async with running("sh", "-c", f"test -e /proc/self/fd/{write_fd}; echo $?") as child:
        assert await read_line(child.stdout) == "1"
    os.close(read_fd)
    os.close(write_fd)


# --- a start that fails


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (["no-such-program-here"], "/", "there is no such program"),
        (["/no/such/program"], "/", "there is no such program"),
        (["/etc/passwd/program"], "/", "there is no such program"),
        (["/etc/passwd"], "/", "it is not executable"),
        (["/etc"], "/", "it is not executable"),
        (["cat"], "/no/such/folder", "the folder /no/such/folder does not exist"),
        (["cat"], "/etc/passwd", "the folder /etc/passwd is not a folder"),
        (["cat", "a\0b"], "/", "an argument, a variable or the folder holds a character that no command line can"),
        (["cat", "x" * 3_000_000], "/", "argument list too long"),
    ],
)
async def test_a_command_that_cannot_start_says_why(argv: list[str], cwd: str, reason: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StartFailed) as failed:
        Child.start(argv, cwd=cwd, env=ENVIRONMENT)
    assert str(failed.value) == f"Cannot start {argv[0]}: {reason}."
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/no/such/interpreter\n", "the interpreter in its first line is missing"),
        ("\x7fELF nonsense", "it is not a program that this machine can run"),
    ],
)
async def test_a_file_that_is_no_program_says_why(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "program").write_text(text)
    (tmp_path / "program").chmod(0o755)
    with pytest.raises(StartFailed, match=reason):
        Child.start(["./program"], cwd=tmp_path, env=ENVIRONMENT)


async def test_an_empty_command_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError):
        Child.start([], cwd="/", env={})


# --- stderr


async def test_a_flood_on_stderr_does_not_block_it_and_the_tail_is_kept() -> None:
    flood = "import sys; sys.stderr.write('x' * 1_000_000 + 'the last words'); sys.stderr.flush(); print(input())"
    heard = bytearray()
    child = Child.start(python(flood), cwd="/", env=ENVIRONMENT, on_stderr=heard.extend)
    os.write(child.stdin, b"still reading\n")
    assert await read_line(child.stdout) == "still reading"
    assert await child.wait() == 0
    assert child.stderr_tail() == ("x" * limits.STDERR_RING_BYTES + "the last words")[-limits.STDERR_RING_BYTES :]
    assert len(heard) == 1_000_014
    assert len(child._stderr_ring) <= 2 * limits.STDERR_RING_BYTES
    await child.stop()


@pytest.mark.usefixtures("impatient")
async def test_what_it_wrote_before_it_died_is_there_when_it_has_exited_though_others_hold_the_pipe() -> None:
    async with running("sh", "-c", "sleep 1000 & echo 'the last words' >&2; exit 1") as child:
        assert await child.wait() == 1
        assert child.stderr_tail() == "the last words\n"


async def test_what_it_wrote_is_there_although_its_death_is_noticed_first() -> None:
    async with running("sh", "-c", "echo 'the last words' >&2; exit 1") as child:
        wait_without_the_loop(child.pid)  # nothing has been read yet
        child._notice_exit()
        assert (child.exit_code, child.stderr_tail()) == (1, "the last words\n")


async def test_bytes_that_are_no_text_do_not_harm_the_tail() -> None:
    async with running("sh", "-c", r"printf '\377\376 bad' >&2") as child:
        await child.wait()
        assert child.stderr_tail() == "\ufffd\ufffd bad"


# --- the end


async def test_a_child_that_finishes_by_itself_is_let_finish(tmp_path: Path) -> None:
    async with running("sh", "-c", "cat >/dev/null; echo done > file", cwd=tmp_path) as child:
        await stop_within_bounds(child)
    assert child.exit_code == 0
    assert (tmp_path / "file").read_text() == "done\n"


@pytest.mark.usefixtures("impatient")
async def test_nothing_is_left_of_a_child_that_stopped() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    async with running("sleep", "1000") as child:
        await stop_within_bounds(child)
        await child.stop()
    assert child.exit_code == -signal.SIGTERM
    assert state(child.pid) == ""
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_a_child_that_has_exited_keeps_its_number_until_it_is_stopped() -> None:
    async with running("true") as child:
        await child.wait()
        assert state(child.pid) == "Z"
    assert state(child.pid) == ""


@pytest.mark.requirement("E12")
@pytest.mark.usefixtures("impatient")
async def test_the_grandchild_of_a_wrapper_shell_dies() -> None:
    async with running("sh", "-c", "sleep 1000 & echo $!; wait") as child:
        grandchild = await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert not lives(grandchild)


@pytest.mark.requirement("E12")
@pytest.mark.usefixtures("impatient")
async def test_a_shell_in_a_shell_dies_with_what_it_runs() -> None:
    async with running("sh", "-c", "sh -c 'sh -c \"echo \\$\\$; exec sleep 1000\"; true'; true") as child:
        real = await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert not lives(real)


async def test_the_group_dies_also_if_its_leader_is_dead_already() -> None:
    async with running("sh", "-c", "sleep 1000 & echo $!") as child:
        grandchild = await read_pid(child.stdout)
        await child.wait()
        assert lives(grandchild)
        await stop_within_bounds(child)
    assert not lives(grandchild)


IGNORE = "import signal, os, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); "
SLEEP = "time.sleep(1000)"


async def test_a_child_that_ignores_everything_is_killed_within_the_limits() -> None:
    async with running(*python(IGNORE + SLEEP)) as child:
        await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert child.exit_code == -signal.SIGKILL


@pytest.mark.usefixtures("impatient")
async def test_a_grandchild_that_ignores_sigterm_is_killed_though_the_leader_obeys() -> None:
    async with running("sh", "-c", f'"{sys.executable}" -I -S -c "$0"; true', IGNORE + SLEEP) as child:
        grandchild = await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert not lives(grandchild)


@pytest.mark.usefixtures("impatient")
async def test_a_stopped_child_is_killed() -> None:
    async with running("sh", "-c", "kill -STOP $$") as child:
        await until(lambda: state(child.pid) == "T")
        await stop_within_bounds(child)
    assert not lives(child.pid)


DOUBLE_FORK = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
"""


@pytest.mark.requirement("E11")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("rest", ["", "time.sleep(1000)"], ids=["leader dead", "leader alive"])
async def test_a_daemon_that_forked_twice_and_left_the_session_is_killed(rest: str) -> None:
    async with running(*python(DOUBLE_FORK + rest)) as child:
        daemon = await read_pid(child.stdout)
        assert os.getsid(daemon) != child.pid
        await stop_within_bounds(child)
    assert not lives(daemon)


@pytest.mark.usefixtures("impatient")
async def test_a_descendant_that_left_the_session_without_its_environment_is_found_by_its_parent() -> None:
    command = "env -i setsid sh -c 'echo $$; exec sleep 1000' & wait"
    async with running("sh", "-c", command) as child:
        descendant = await read_pid(child.stdout)
        assert os.getsid(descendant) != child.pid
        await stop_within_bounds(child)
    assert not lives(descendant)


async def test_every_process_is_asked_once_and_has_time_to_end(tmp_path: Path) -> None:
    polite = (
        "import signal, os, time\n"
        "count = 0\n"
        "def term(*_):\n"
        "    global count\n"
        "    count += 1\n"
        "signal.signal(signal.SIGTERM, term)\n"
        "print(os.getpid(), flush=True)\n"
        "while not count: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "open('asked', 'w').write(str(count))\n"
    )
    # The wrapper dies of SIGTERM at once; the real program behind it still gets its time.
    async with running("sh", "-c", f'"{sys.executable}" -I -S -c "$0"; true', polite, cwd=tmp_path) as child:
        await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert (tmp_path / "asked").read_text() == "1"


@pytest.mark.usefixtures("impatient")
async def test_who_is_not_of_the_tree_lives_on() -> None:
    neighbour = await asyncio.create_subprocess_exec("sleep", "1000")
    async with running("sleep", "1000") as other, running("sleep", "1000") as child:
        await stop_within_bounds(child)
        assert lives(other.pid)
        assert lives(neighbour.pid)
    neighbour.kill()
    await neighbour.wait()


@pytest.mark.usefixtures("impatient")
async def test_a_caller_that_is_cancelled_does_not_stop_the_stopping() -> None:
    async with running(*python(IGNORE + SLEEP)) as child:
        await read_pid(child.stdout)
        caller = asyncio.ensure_future(child.stop())
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await until(lambda: state(child.pid) == "")


async def test_the_loop_turns_while_a_child_is_being_stopped() -> None:
    async with running(*python(IGNORE + SLEEP)) as child:
        await read_pid(child.stdout)
        stopping = asyncio.ensure_future(child.stop())
        longest, last = 0.0, time.monotonic()
        while not stopping.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert longest < limits.CHILD_TERM_SECONDS  # no process's time to leave is waited for in one piece


async def test_kill_now_needs_no_loop_and_stop_may_follow() -> None:
    async with running("sh", "-c", "sleep 1000 & echo $!; wait") as child:
        grandchild = await read_pid(child.stdout)
        child.kill_now()
        child.kill_now()
        assert not lives(grandchild)
        assert state(child.pid) == ""
        await stop_within_bounds(child)
    assert child.exit_code == -signal.SIGKILL


# --- machines that lack something


@pytest.mark.usefixtures("impatient")
async def test_without_pidfds_all_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    async with running("sh", "-c", "exit 3") as child:
        assert await child.wait() == 3
    async with running(*python(DOUBLE_FORK + SLEEP)) as child:
        daemon = await read_pid(child.stdout)
        await stop_within_bounds(child)
    assert not lives(daemon)
    assert state(child.pid) == ""


@pytest.mark.usefixtures("impatient")
async def test_without_proc_the_group_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/proc/self" and path == "/")
    monkeypatch.setattr(limits, "CHILD_KILL_SECONDS", 0.2)
    async with running("sh", "-c", "sleep 1000 & echo $!; wait") as child:
        grandchild = await read_pid(child.stdout)
        await child.stop()
    assert not lives(grandchild)
    assert state(child.pid) == ""


# --- programs around it that end badly

PROGRAM = """
import asyncio, os, signal, sys
from dragoman.host.process import Child

async def main():
    child = Child.start(["sh", "-c", "sleep 1000 & echo $!; wait"], cwd="/", env=dict(os.environ))
    while True:
        try: pid = os.read(child.stdout, 100)
        except BlockingIOError: await asyncio.sleep(0.001)
        else: break
    os.write(1, pid)
    await then(child)
"""


def run_program(then: str, start: str = "asyncio.run(main())") -> "tuple[int, subprocess.CompletedProcess[bytes]]":
    """The pid of the grandchild it left, and how the program ended."""
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(limits.__file__).parents[1])}
    code = "\n".join([PROGRAM, f"async def then(child):\n    {then}", start])
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, timeout=50, check=False
    )
    return int(done.stdout.splitlines()[0]), done


@pytest.mark.parametrize(
    "then",
    ["pass", "sys.exit(3)", "raise KeyboardInterrupt", "asyncio.ensure_future(child.stop()); await asyncio.sleep(0)"],
)
async def test_a_program_that_forgets_to_stop_its_child_leaves_nothing(then: str) -> None:
    grandchild, _ = run_program(then)
    assert not lives(grandchild)


async def test_a_fork_that_exits_does_not_kill_the_child_of_its_parent() -> None:
    fork = "forked = os.fork(); sys.exit() if forked == 0 else os.waitpid(forked, 0)"
    _, done = run_program(f"{fork}; os.write(1, open(f'/proc/{{child.pid}}/stat', 'rb').read())")
    assert done.stdout.rpartition(b")")[2].split()[0] == b"S"


IGNORED = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nasyncio.run(main())"


@pytest.mark.parametrize(
    "first", ["", "os.kill(child.pid, 9); await child.wait(); "], ids=["leader alive", "leader dead"]
)
async def test_where_another_part_reaps_nothing_hangs_and_the_tree_still_dies(first: str) -> None:
    grandchild, done = run_program(f"{first}await asyncio.wait_for(child.stop(), 30)", IGNORED)
    assert done.returncode == 0
    assert not lives(grandchild)
