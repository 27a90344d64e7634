"""A confined command has no more memory and processes than it may, and the machine is none the worse for it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.host import cgroups, resources
from dragoman.host.cgroups import CommandGroup, candidates, sweep, usable_parent
from dragoman.host.process import Child
from dragoman.host.resources import (
    ProcessLimits,
    ResourceLimits,
    UsageWatch,
    default_limits,
    hint,
    read_limits,
    too_many_processes,
    too_much_memory,
)
from dragoman.host.shared_group import SharedGroup
from tests.support.confined_commands import AS_ANOTHER_USER, PYTHON, ROOT, Box, python_of_others
from tests.support.waiting import until

MIB = limits.MIB
SMALL = ResourceLimits(256 * MIB, 64)
HOG = "data = bytearray(600 << 20); print(len(data))"


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lends no control groups, as most containers are."""
    monkeypatch.setattr(cgroups, "usable_parent", lambda: None)


@pytest.mark.usefixtures("no_groups")
def test_a_process_gets_no_more_memory_than_it_may_have(box: Box) -> None:
    box.limits = SMALL
    done = box.python(HOG)
    assert (done.returncode, done.stdout) == (1, "")
    assert "MemoryError" in done.stderr
    box.limits = ResourceLimits(0, 0)
    assert box.python(HOG).stdout == f"{600 << 20}\n"


@pytest.mark.usefixtures("no_groups")
def test_memory_that_is_only_reserved_does_not_count(box: Box) -> None:
    """node, Go and Java reserve far more than they use."""
    box.limits = SMALL
    reserve = "import mmap; mmap.mmap(-1, 20 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0); print('fine')"
    assert box.python(reserve).stdout == "fine\n"


@pytest.mark.usefixtures("no_groups")
def test_a_command_writes_no_core_and_can_raise_none_of_its_limits(box: Box) -> None:
    box.limits = SMALL
    read = "grep -E 'core|data|processes' /proc/self/limits; ulimit -d unlimited; ulimit -u 9999; ulimit -c 9"
    done = box.sh(read)
    found = {line[:25].strip(): line[25:].split()[:2] for line in done.stdout.splitlines()}
    assert found["Max core file size"] == ["0", "0"]
    assert found["Max data size"] == [str(SMALL.memory)] * 2
    soft, hard = found["Max processes"]
    assert soft == hard
    if box.level == "bubblewrap":
        assert soft == str(SMALL.processes)
    assert done.stderr.count("ulimit") == 3


def test_temporary_folders_are_no_way_to_more_memory(workspace: Path) -> None:
    box = Box("bubblewrap", workspace)
    box.limits = SMALL
    folders = ("/tmp", "/var/tmp", "/dev/shm", "/run")
    assert box.succeeded([f"head -c 100M /dev/zero > {folder}/x" for folder in folders if Path(folder).is_dir()]) == []
    assert box.succeeded(["echo x > /dev/x", "mkdir /dev/folder"]) == []
    assert box.sh("echo x > /dev/shm/x && echo x > /dev/null && echo x > /tmp/x").returncode == 0


AS_ANOTHER = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from dragoman.host.resources import ResourceLimits
from dragoman.host.sandbox import confine, find_bubblewrap, try_out
level, root, *argv = sys.argv[2:]
found = try_out(find_bubblewrap())
found = found if level == "bubblewrap" else found._replace(bubblewrap=None)
wanted = ResourceLimits(256 << 20, 64)
with confine(argv, cwd=root, writable=[root], protected=(), limits=wanted, confinement=found) as box:
    assert box.level == level
    done = subprocess.run(box.argv, cwd=root, capture_output=True, text=True, env=dict(os.environ) | box.environment)
    print(done.stdout, end="")
    print(box.excess(done.stdout + done.stderr, failed=done.returncode != 0))
"""
FORKS = """
import os, signal, time
children = []
try:
    while len(children) < 300:
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError as error:
    print(32 < len(children) < 300, "fork:", error.strerror)
for child in children:
    os.kill(child, signal.SIGKILL)
"""


def as_another(place: Path, level: str, *argv: str) -> Sequence[str]:
    """Runs a confined command as a user that is not root, whom the number of processes binds; what it printed."""
    python = python_of_others()
    place.chmod(0o755)
    os.chown(place, 65534, 65534)
    words = [python if word == "PYTHON" else word for word in argv]
    done = subprocess.run(
        [*AS_ANOTHER_USER, python, "-I", "-B", "-c", AS_ANOTHER, str(ROOT / "src"), level, str(place), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


MAY_HAVE_MET = "The command may have met its limit of 64 processes and threads: sandbox_processes in config.toml."


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_another_user_than_root_gets_no_more_processes_than_it_may_have(place: Path, level: str) -> None:
    lines = as_another(place, level, "PYTHON", "-I", "-c", FORKS)
    assert lines == ["True fork: Resource temporarily unavailable", MAY_HAVE_MET]


def test_a_fork_bomb_of_another_user_than_root_ends_by_itself(place: Path) -> None:
    lines = as_another(place, "bubblewrap", "/bin/bash", "-c", "exec 2>&1; bomb() { bomb | bomb & }; bomb; sleep 1")
    assert lines[-1] == MAY_HAVE_MET
    assert any("fork: " in line for line in lines)


async def grown(script: str, wanted: ResourceLimits, tmp_path: Path) -> str | None:
    """What is said of a tree that has grown. It is not confined: from outside it looks the same."""
    child = Child.start([PYTHON, "-I", "-c", script], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    watch = UsageWatch(wanted, child.members)
    try:
        await until((tmp_path / "up").exists, "everything is there")
        return watch.excess()
    finally:
        child.kill_now()
        await child.stop()


MANY = """
import os, pathlib, threading, time
for _ in range(4):
    if os.fork() == 0:
        for _ in range(4):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        break
pathlib.Path(f"started-{os.getpid()}").touch()
while len(list(pathlib.Path().glob("started-*"))) < 5:
    time.sleep(0.01)
pathlib.Path("up").touch()
time.sleep(60)
"""
LARGE = """
import os, pathlib, time
shared = bytearray(os.urandom(1 << 20) * 40)
for _ in range(3):
    if os.fork() == 0:
        own = bytearray(os.urandom(1 << 20) * OWN)
        break
pathlib.Path(f"started-{os.getpid()}").touch()
while len(list(pathlib.Path().glob("started-*"))) < 4:
    time.sleep(0.01)
pathlib.Path("up").touch()
time.sleep(60)
"""


async def test_processes_and_threads_of_a_whole_tree_are_counted(tmp_path: Path) -> None:
    few, enough = ResourceLimits(0, 20), ResourceLimits(0, 21)
    assert await grown(MANY, few, tmp_path) == too_many_processes(few)
    for file in tmp_path.iterdir():
        file.unlink()
    assert await grown(MANY, enough, tmp_path) is None


async def test_memory_of_a_whole_tree_is_added_up_and_what_is_shared_counts_once(tmp_path: Path) -> None:
    wanted = ResourceLimits(150 * MIB, 0)
    assert await grown(LARGE.replace("OWN", "1"), wanted, tmp_path) is None
    for file in tmp_path.iterdir():
        file.unlink()
    assert await grown(LARGE.replace("OWN", "60"), wanted, tmp_path) == too_much_memory(wanted)


def test_what_a_command_may_have_depends_on_the_machine() -> None:
    found = default_limits()
    assert found.memory >= 2 * limits.GIB
    assert found.processes >= 1024


@pytest.mark.parametrize(
    ("memory", "processes", "expected"),
    [
        ("", 0, default_limits()),
        ("4GiB", 200, ResourceLimits(4 * limits.GIB, 200)),
        ("512 mb", 16, ResourceLimits(512 * MIB, 16)),
        ("134217728", 0, ResourceLimits(128 * MIB, default_limits().processes)),
        ("unlimited", 0, ResourceLimits(0, default_limits().processes)),
    ],
)
def test_limits_are_read_as_users_write_them(memory: str, processes: int, expected: ResourceLimits) -> None:
    assert read_limits(memory, processes) == expected


@pytest.mark.parametrize(
    ("memory", "processes", "named"),
    [
        ("4 apples", 0, "sandbox_memory"),
        ("1MiB", 0, "sandbox_memory"),
        ("-4G", 0, "sandbox_memory"),
        ("", 3, "processes"),
    ],
)
def test_limits_that_make_no_sense_are_refused(memory: str, processes: int, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_limits(memory, processes)


def test_without_a_namespace_what_runs_already_comes_on_top(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ProcessLimits.of(SMALL, (), namespace=False).processes > SMALL.processes
    assert ProcessLimits.of(SMALL, (), namespace=True).processes == SMALL.processes
    monkeypatch.setattr(resources, "_kernel", lambda: (5, 13))
    assert ProcessLimits.of(SMALL, (), namespace=True).processes > SMALL.processes


def test_only_words_of_want_are_taken_for_a_limit() -> None:
    limited = ProcessLimits(SMALL.memory, SMALL.processes)
    assert hint("all is well", limited, SMALL) is None
    assert hint("MemoryError", ProcessLimits(0, 0), SMALL) is None
    assert hint("MemoryError", limited, SMALL) == (
        "The command may have met its limit of 256 MiB of memory for one process: sandbox_memory in config.toml."
    )


# -- control groups ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of control groups that is none: new groups have files, as the kernel would make them."""
    mount = tmp_path / "cgroup"
    slice_ = mount / "user.slice" / "app.slice"
    (slice_ / "mine.scope").mkdir(parents=True)
    (mount / "cgroup.controllers").write_text("cpu memory pids\n")
    for folder, handed_on in ((mount, "cpu"), (slice_, "cpu memory pids"), (slice_ / "mine.scope", "")):
        (folder / "cgroup.subtree_control").write_text(handed_on + "\n")
        (folder / "cgroup.procs").write_text("")
    make = os.mkdir

    def mkdir(path: str, mode: int = 0o777, **more: int | None) -> None:
        make(path, mode, **more)
        if str(path).startswith(str(mount)):
            for name in ("memory.max", "memory.oom.group", "pids.max", "cgroup.procs", "memory.events", "pids.events"):
                Path(path, name).write_text("")
            Path(path, "cgroup.subtree_control").write_text("")

    monkeypatch.setattr(os, "mkdir", mkdir)
    (tmp_path / "own").write_text("1:name=systemd:/x\n0::/user.slice/app.slice/mine.scope\n")
    return slice_


def test_the_nearest_group_that_hands_on_what_is_needed_is_found(tree: Path, tmp_path: Path) -> None:
    mount, own = str(tmp_path / "cgroup"), tmp_path / "own"
    assert list(candidates(mount, str(own))) == [str(tree)]
    for text in ("", "0::/../../etc\n", "4:memory:/x\n", "0::/nowhere\n"):
        own.write_text(text)
        assert list(candidates(mount, str(own))) == []
    assert list(candidates(mount, str(tmp_path / "none"))) == []


def test_a_group_has_its_limits_and_tells_which_was_met(tree: Path) -> None:
    group = CommandGroup.below(str(tree), SMALL)
    assert group is not None
    folder = Path(group.path)
    assert (folder / "memory.max").read_text() == str(SMALL.memory)
    assert (folder / "pids.max").read_text() == str(SMALL.processes)
    assert (folder / "memory.oom.group").read_text() == "1"
    assert group.excess() is None
    (folder / "pids.events").write_text("max 3\n")
    assert group.excess() == too_many_processes(SMALL)
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert group.excess() == too_much_memory(SMALL)


def test_groups_of_dead_processes_are_taken_away(tree: Path) -> None:
    alive, dead, foreign = (tree / name for name in ("dragoman-1-aa", "dragoman-999999999-bb", "other"))
    for folder in (alive, dead, foreign):
        Path.mkdir(folder)
        for file in folder.iterdir():
            file.unlink()
    sweep(str(tree))
    assert (alive.exists(), dead.exists(), foreign.exists()) == (True, False, True)


def test_a_shared_group_limits_what_is_in_it_and_lets_commands_make_theirs_inside(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "usable_parent", lambda: str(tree))
    group = SharedGroup.make(SMALL.memory, SMALL.processes)
    assert group is not None
    outer = Path(group.entrance).parent.parent
    assert outer.parent == tree
    read = {name: (outer / name).read_text() for name in ("memory.max", "pids.max", "memory.oom.group")}
    assert read == {"memory.max": str(SMALL.memory), "pids.max": str(SMALL.processes), "memory.oom.group": "0"}
    assert (outer / "cgroup.subtree_control").read_text() == "+memory +pids"
    # As the kernel shows it: a process in the group finds the place for groups of its commands inside the limits.
    (outer / "cgroup.subtree_control").write_text("memory pids\n")
    inside = Path(group.entrance).parent
    (tmp_path / "own").write_text(f"0::/{inside.relative_to(tmp_path / 'cgroup')}\n")
    assert next(candidates(str(tmp_path / "cgroup"), str(tmp_path / "own"))) == str(outer)
    assert (group.memory(), group.has_run_out()) == (0, False)
    (outer / "memory.current").write_text("123\n")
    (outer / "memory.events").write_text("oom_kill 1\n")
    assert (group.memory(), group.has_run_out()) == (123, True)


def test_a_shared_group_of_a_dead_process_is_taken_away_with_the_one_inside(tree: Path) -> None:
    dead = tree / "dragoman-999999999-bb"
    Path.mkdir(dead)
    Path.mkdir(dead / "processes")
    for file in (*dead.iterdir(), *(dead / "processes").iterdir()):
        if file.is_file():
            file.unlink()
    sweep(str(tree))
    assert not dead.exists()


def test_a_command_enters_its_group_and_needs_no_other_limits(
    box: Box, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "usable_parent", lambda: str(tree))
    monkeypatch.setattr(CommandGroup, "close", lambda group: None)
    box.limits = SMALL
    done = box.sh("grep -E 'Max (data|processes)' /proc/self/limits")
    assert str(SMALL.memory) not in done.stdout
    (group,) = (path for path in tree.iterdir() if path.name.startswith("dragoman-"))
    assert (group / "cgroup.procs").read_text().strip().isdigit()


def test_a_command_that_cannot_enter_its_group_is_not_run(
    box: Box, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "usable_parent", lambda: str(tree))
    monkeypatch.setattr(CommandGroup, "entrance", property(lambda group: f"{group.path}/none/cgroup.procs"))
    done = box.sh("touch ran")
    assert done.returncode == 125
    assert not (box.workspace / "ran").exists()


@pytest.mark.slow  # a kernel with control groups cannot be installed: the quick lane has those of a made-up tree
def test_a_real_group_ends_what_outgrows_it(box: Box) -> None:
    if usable_parent() is None:
        pytest.skip("this machine lends no control groups")
    box.limits = SMALL
    script = f"{PYTHON} -c 'x = bytearray(600 << 20); print(len(x))'; echo survived"
    assert "survived" not in box.sh(script).stdout
