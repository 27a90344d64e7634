"""What earlier versions had in one folder is moved to the folders of today: whole, once, and nothing is lost."""

import contextlib
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.cli import former_files
from dragoman.cli.former_files import move_former_files
from dragoman.cli.home import STAYED, former_names, own_path
from dragoman.store import locks
from tests.cli.test_folders import VARIABLES, machine
from tests.store.scenes import child, finished
from tests.support import command
from tests.support.needs import lacking, need_other_users
from tests.support.store_holder import holding

FORMER = {
    "config.toml": 'mode = "plan"\n',
    "acp.json": '{"servers": {"mine": {"command": "mine"}}}',
    "commands/todos.md": "list them",
    "AGENTS.md": "be brief",
    "history": "\n# 2026\n+hello\n",
    "log/dragoman.log": '{"time": "2026"}\n',
    "log/decisions.jsonl": '{"session": "s"}\n',
    "cache/models/openai-0.json": '[["a"],1.0]',
    "credentials.toml": '[openai]\napi_key = "sk-key"\n',
    "trust.json": "{}",
    "gateway/tokens.json": "{}",
    "sessions/readme": "sessions",
}
MOVED = {
    "config.toml": ".config/dragoman/config.toml",
    "acp.json": ".config/dragoman/acp.json",
    "commands/todos.md": ".config/dragoman/commands/todos.md",
    "AGENTS.md": ".config/dragoman/AGENTS.md",
    "history": ".local/state/dragoman/history",
    "log/dragoman.log": ".local/state/dragoman/log/dragoman.log",
    "log/decisions.jsonl": ".local/state/dragoman/log/decisions.jsonl",
    "cache/models/openai-0.json": ".cache/dragoman/models/openai-0.json",
}
PRIVATE = 0o600


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Path]:
    """The home folder of a user who has had an earlier version."""
    with machine("linux", {"HOME": str(tmp_path)}):
        fill(tmp_path)
        yield tmp_path


def fill(user: Path) -> None:
    for name, text in FORMER.items():
        file = user / ".local/share/dragoman" / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(text)
        file.chmod(PRIVATE)


def files(user: Path) -> dict[str, str]:
    """Every file with its text, and every link with where it leads."""
    paths = [path for path in user.rglob("*") if path.is_symlink() or path.is_file()]
    return {str(p.relative_to(user)): f"-> {os.readlink(p)}" if p.is_symlink() else p.read_text() for p in paths}


EXPECTED = {MOVED.get(name, f".local/share/dragoman/{name}"): text for name, text in FORMER.items()}


def config_show(user: Path) -> command.Called:
    return command.call("config", "show", DRAGOMAN_HOME=None, HOME=str(user))


def test_a_command_moves_what_belongs_elsewhere_and_says_so_once(user: Path) -> None:
    former = f"{user}/.local/share/dragoman"
    first, second = config_show(user), config_show(user)
    assert first.error == (
        f"dragoman: moved from {former}: AGENTS.md, acp.json, commands, config.toml to {user}/.config/dragoman; "
        f"cache to {user}/.cache/dragoman; history, log to {user}/.local/state/dragoman\n"
    )
    assert (first.code, second.code, second.error) == (0, 0, "")
    assert files(user) == EXPECTED
    assert f"mode               plan  ({user}/.config/dragoman/config.toml)" in first.out
    assert first.out == second.out


def test_modes_and_times_stay(user: Path) -> None:
    (user / ".local/share/dragoman/commands").chmod(0o750)
    (user / ".local/share/dragoman/acp.json").chmod(0o640)
    os.utime(user / ".local/share/dragoman/config.toml", (1, 1))
    move_former_files()
    config = user / ".config/dragoman"
    paths = (config, config / "config.toml", config / "acp.json", config / "commands", config / "commands/todos.md")
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, PRIVATE, 0o640, 0o750, PRIVATE]
    assert (config / "config.toml").stat().st_mtime == 1


def test_a_fresh_user_gets_no_file_and_no_word(tmp_path: Path) -> None:
    shown = config_show(tmp_path)
    assert (shown.code, shown.error, list(tmp_path.iterdir())) == (0, "", [])


def test_with_dragoman_home_everything_stays(user: Path) -> None:
    former = user / ".local/share/dragoman"
    before = files(user)
    shown = command.call("config", "show", DRAGOMAN_HOME=str(former), HOME=str(user))
    assert (shown.error, files(user)) == ("", before)
    assert f"mode               plan  ({former}/config.toml)" in shown.out


@pytest.mark.parametrize("words", [["completion", "bash"], ["--version"], ["--help"], ["config", "--help"]])
def test_what_needs_no_folder_moves_nothing(words: list[str], user: Path) -> None:
    before = files(user)
    assert command.call(*words, DRAGOMAN_HOME=None, HOME=str(user)).error == ""
    assert files(user) == before


# -- what is there already -------------------------------------------------------------------------------------------


def test_nothing_is_overwritten_and_the_user_is_told_once(user: Path) -> None:
    former, config, state = (user / path for path in (".local/share/dragoman", ".config/dragoman", ".local/state"))
    (state / "dragoman/log").mkdir(parents=True)
    (state / "dragoman/log/dragoman.log").write_text("new")
    config.mkdir(parents=True)
    (config / "config.toml").write_text('mode = "ask"\n')
    first, second = config_show(user), config_show(user)
    stayed = {"config.toml": config / "config.toml", "log/dragoman.log": state / "dragoman/log/dragoman.log"}
    sentences = [f"{former}/{name} stays there and is not used: {to} is there already" for name, to in stayed.items()]
    assert first.error.splitlines()[1:] == [f"dragoman: {sentence}" for sentence in sentences]
    assert second.error == ""
    assert f"mode               ask  ({config}/config.toml)" in second.out
    now = files(user)
    assert now.pop(f".local/share/dragoman/{STAYED}").splitlines() == sentences
    there = {f".local/share/dragoman/{name}": FORMER[name] for name in stayed}
    new = {".config/dragoman/config.toml": 'mode = "ask"\n', ".local/state/dragoman/log/dragoman.log": "new"}
    assert now == EXPECTED | new | there
    doctor = command.call("doctor", "--json", DRAGOMAN_HOME=None, HOME=str(user)).out
    assert f"Not used any more: {former}/config.toml, {former}/log" in doctor


def test_the_same_bytes_at_both_places_become_one_file(user: Path) -> None:
    """As a kill leaves them after a copy to another file system."""
    config = user / ".config/dragoman"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(FORMER["config.toml"])
    move_former_files()
    assert files(user) == EXPECTED


def test_a_folder_of_which_some_is_there_gets_the_rest(user: Path) -> None:
    commands = user / ".config/dragoman/commands"
    commands.mkdir(parents=True)
    (commands / "mine.md").write_text("mine")
    move_former_files()
    assert files(user) == EXPECTED | {".config/dragoman/commands/mine.md": "mine"}


@pytest.mark.parametrize("link", [".config", ".config/dragoman", ".config/dragoman/config.toml"])
def test_what_the_user_has_linked_to_the_former_place_is_not_moved_onto_itself(
    user: Path, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    former = user / ".local/share/dragoman"
    place = user / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to({".config": former.parent, ".config/dragoman": former}.get(link, former / "config.toml"))
    move_former_files()
    assert Path(own_path("config.toml")).read_text() == FORMER["config.toml"]
    assert (former / "config.toml").read_text() == FORMER["config.toml"]
    assert former_names() == []
    assert "stays" not in capsys.readouterr().err


@pytest.mark.parametrize("same", ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"])
def test_variables_that_name_the_data_folder_leave_things_there(user: Path, same: str) -> None:
    with machine("linux", {"HOME": str(user), same: str(user / ".local/share")}):
        move_former_files()
        assert Path(own_path("config.toml")).read_text() == FORMER["config.toml"]
        assert Path(own_path("log"), "dragoman.log").read_text() == FORMER["log/dragoman.log"]
        assert Path(own_path("cache"), "models/openai-0.json").exists()
        assert former_names() == []
    assert sorted(files(user).values()) == sorted(FORMER.values())


# -- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_link_is_moved_as_a_link_that_leads_to_the_same_file(user: Path, is_relative: bool) -> None:
    (user / "dotfiles").mkdir()
    target = user / "dotfiles/config.toml"
    target.write_text("mode = 'ask'\n")
    link = user / ".local/share/dragoman/config.toml"
    link.unlink()
    link.symlink_to("../../../dotfiles/config.toml" if is_relative else target)
    move_former_files()
    assert not link.is_symlink()
    assert files(user)[".config/dragoman/config.toml"] == f"-> {target}"
    assert target.read_text() == "mode = 'ask'\n"


def test_no_link_is_followed_out_of_the_folders(user: Path) -> None:
    """Neither a folder that is a link at the former place, nor one at the new place."""
    former, outside = user / ".local/share/dragoman", user / "outside"
    outside.mkdir()
    (outside / "theirs.md").write_text("theirs")
    shutil.rmtree(former / "log")
    (former / "log").symlink_to(outside)
    commands = user / ".config/dragoman/commands"
    commands.parent.mkdir(parents=True)
    commands.symlink_to(outside)
    move_former_files()
    now = files(user)
    assert now[".local/state/dragoman/log"] == now[".config/dragoman/commands"] == f"-> {outside}"
    assert [file.name for file in outside.iterdir()] == ["theirs.md"]
    assert (former / "commands/todos.md").read_text() == FORMER["commands/todos.md"]


def test_what_is_no_file_is_moved_as_it_is(user: Path) -> None:
    os.mkfifo(user / ".local/share/dragoman/log/pipe")
    move_former_files()
    assert stat.S_ISFIFO((user / ".local/state/dragoman/log/pipe").lstat().st_mode)


# -- when it does not move -------------------------------------------------------------------------------------------


def test_nothing_moves_while_a_session_is_leased_and_is_used_where_it_is(user: Path) -> None:
    sessions = user / ".local/share/dragoman/sessions"
    with child("create", sessions, "a") as made:
        assert finished(made) == ["a"]
    before = sorted(user.rglob("*.*"))
    holder = holding(sessions, "a")
    shown = config_show(user)
    assert (shown.error, [path for path in before if not path.exists()]) == ("", [])
    assert f"mode               plan  ({user}/.local/share/dragoman/config.toml)" in shown.out
    assert command.call("agents", "add", "new", "--", "x", DRAGOMAN_HOME=None, HOME=str(user)).code == 0
    assert '"new"' in (user / ".local/share/dragoman/acp.json").read_text()
    holder.kill()
    holder.communicate()
    assert config_show(user).error.startswith("dragoman: moved from")
    assert '"new"' in (user / ".config/dragoman/acp.json").read_text()
    assert not (user / ".local/share/dragoman/acp.json").exists()


def test_files_of_another_user_stay(user: Path) -> None:
    """Root with the user's HOME, as after `sudo -E`, would make the new folders its own."""
    need_other_users()
    for folder, _, names in os.walk(user):
        for path in (folder, *(f"{folder}/{name}" for name in names)):
            os.chown(path, 12345, 12345)
    before = files(user)
    shown = config_show(user)
    assert (shown.error, files(user)) == ("", before)
    assert f"({user}/.local/share/dragoman/config.toml)" in shown.out


def test_where_the_new_folder_cannot_be_made_it_is_used_where_it_is(user: Path) -> None:
    (user / ".config").write_text("a file")
    shown = config_show(user)
    former, state = f"{user}/.local/share/dragoman", f"{user}/.local/state/dragoman"
    moved = f"cache to {user}/.cache/dragoman; history, log to {state}"
    assert shown.error == f"dragoman: moved from {former}: {moved}\n"
    assert f"mode               plan  ({former}/config.toml)" in shown.out
    (user / ".config").unlink()
    assert "AGENTS.md, acp.json, commands, config.toml" in config_show(user).error
    assert files(user) == EXPECTED


def test_nothing_moves_while_another_process_moves_it(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.0)
    other = os.open(user / ".local/share/dragoman", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    before = files(user)
    move_former_files()
    os.close(other)
    assert files(user) == before


def test_processes_that_start_at_once_move_everything_once(user: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_HOME"} | {"HOME": str(user)}
    line = [sys.executable, "-P", "-m", "dragoman.cli.main", "config", "show"]
    started = [
        subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    done = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(bool(error) for _, error in done) == [False, False, False, True]
    assert len({out.partition("\nthinks")[0] for out, _ in done}) == 1
    assert files(user) == EXPECTED


# -- kills -----------------------------------------------------------------------------------------------------------

KILLED = """
import json, os, signal, sys
from dragoman.cli.former_files import move_former_files
STEPS = ("link", "unlink", "rename", "mkdir", "rmdir", "symlink", "open", "fchmod", "fsync")
for line in sys.stdin:
    left, variables = json.loads(line)
    child = os.fork()
    if child == 0:
        def counted(real):
            def step(*given, **more):
                global left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **more)
            return step
        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        os.environ.update(variables)
        move_former_files()
        os._exit(0)
    print(os.WIFSIGNALED(os.waitpid(child, 0)[1]), flush=True)
"""


@contextlib.contextmanager
def mover() -> Iterator[Callable[[int, dict[str, str]], bool]]:
    """Move files in processes that are killed before a given step; a call returns whether one came to that step.

    A process without threads makes them: a copy of the test's own would have locks that no thread of it releases.
    """
    ours = ("DRAGOMAN_HOME", *VARIABLES)
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    line = [sys.executable, "-P", "-c", KILLED]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(line, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdin is not None
        assert process.stdout is not None

        def killed_after(steps: int, variables: dict[str, str]) -> bool:
            print(json.dumps([steps, variables]), file=process.stdin, flush=True)
            return {"True\n": True, "False\n": False}[process.stdout.readline()]

        yield killed_after
        process.stdin.close()


def moved_twice(steps: int, user: Path, there: Path, killed_after: Callable[[int, dict[str, str]], bool]) -> bool:
    """Move files until a kill and then whole, with all of them there each time; returns whether it came to the kill."""
    user.mkdir()
    there.mkdir()
    variables = {name: str(there / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    with machine("linux", {"HOME": str(user), **variables}):
        fill(user)
        was_killed = killed_after(steps, {"HOME": str(user), **variables})
        for name in ("config.toml", "acp.json", "history"):
            assert Path(own_path(name)).read_text() == FORMER[name], (steps, name)
        move_former_files()
        assert former_names() == []
        texts = {**files(user), **files(there)}
    assert sorted(texts.values()) == sorted(FORMER.values()), steps
    assert not [name for name in texts if name.endswith(".moving")], steps
    return was_killed


def other_file_system(folder: Path) -> Path:
    """A new folder on another file system than this one."""
    for place in ("/dev/shm", "/tmp", "/var/tmp"):
        if os.path.isdir(place) and os.stat(place).st_dev != os.stat(folder).st_dev:
            return Path(tempfile.mkdtemp(dir=place))
    return lacking("a second file system")


@pytest.mark.parametrize("is_far", [False, True], ids=["same", "other"])
def test_a_kill_at_any_moment_loses_nothing_and_the_next_start_goes_on(is_far: bool, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    far = other_file_system(tmp_path) if is_far else tmp_path / "far"
    steps, was_killed = 0, True
    try:
        with mover() as killed_after:
            while was_killed:
                was_killed = moved_twice(steps, tmp_path / f"u{steps}", far / str(steps), killed_after)
                steps += 1
    finally:
        if is_far:
            shutil.rmtree(far)
    assert steps > len(MOVED)


def test_more_than_is_copied_stays_whole(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = other_file_system(user)
    monkeypatch.setattr(former_files, "_FILE_BYTES", 10)
    try:
        with machine("linux", {"HOME": str(user), "XDG_CONFIG_HOME": str(far)}):
            move_former_files()
            assert own_path("config.toml") == str(user / ".local/share/dragoman/config.toml")
            assert Path(own_path("config.toml")).read_text() == FORMER["config.toml"]
    finally:
        shutil.rmtree(far)


# -- macOS -----------------------------------------------------------------------------------------------------------


def mac(user: Path) -> Path:
    former = user / "Library/Application Support/dragoman"
    shutil.rmtree(user / ".local", ignore_errors=True)
    fill(user)
    former.parent.mkdir(parents=True)
    (user / ".local/share/dragoman").rename(former)
    shutil.rmtree(user / ".local")
    return former


def test_on_a_mac_only_the_cache_has_another_folder(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    former = mac(user)
    with machine("darwin", {"HOME": str(user)}):
        move_former_files()
    assert capsys.readouterr().err == f"dragoman: moved from {former}: cache to {user}/Library/Caches/dragoman\n"
    there = {name for name in FORMER if not name.startswith("cache")}
    assert {str(file.relative_to(former)) for file in former.rglob("*") if file.is_file()} == there


def test_on_a_mac_that_names_a_data_folder_sessions_move_as_a_whole(user: Path) -> None:
    former = mac(user)
    with machine("darwin", {"HOME": str(user), "XDG_DATA_HOME": str(user / "data")}):
        move_former_files()
        assert Path(own_path("sessions"), "readme").read_text() == "sessions"
    assert {str(file.relative_to(user / "data/dragoman")) for file in (user / "data").rglob("*") if file.is_file()} == {
        name for name in FORMER if name not in MOVED
    }
    assert (former / "config.toml").exists()


def test_sessions_are_never_merged_with_others(user: Path) -> None:
    former = mac(user)
    (user / "data/dragoman/sessions").mkdir(parents=True)
    (user / "data/dragoman/sessions/other").write_text("other")
    with machine("darwin", {"HOME": str(user), "XDG_DATA_HOME": str(user / "data")}):
        move_former_files()
    assert [file.name for file in (user / "data/dragoman/sessions").iterdir()] == ["other"]
    assert (former / "sessions/readme").read_text() == "sessions"


# -- the start -------------------------------------------------------------------------------------------------------


def test_a_start_with_nothing_to_move_looks_once_and_imports_nothing(user: Path) -> None:
    move_former_files()
    looks: list[str] = []
    code = (
        "import sys; looks = []\n"
        "from dragoman.cli import home, main\n"
        "before = set(sys.modules)\n"
        "sys.addaudithook(lambda name, given: looks.append(name) if name.startswith('os.') else None)\n"
        "main._prepare_folders()\n"
        "print(looks, sorted(set(sys.modules) - before))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_HOME"} | {"HOME": str(user)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, looks) == ("['os.listdir'] []\n", [])


def test_without_any_home_folder_a_command_says_what_to_set(tmp_path: Path) -> None:
    with machine("linux", {}, known=False):
        shown = command.call("config", "show", DRAGOMAN_HOME=None, cwd=tmp_path)
    sentence = "there is no home folder: set HOME, or name a folder for everything in DRAGOMAN_HOME"
    assert (shown.code, shown.error) == (2, f"dragoman: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["", "relative"])
def test_a_home_that_is_no_absolute_path_is_that_of_the_system(given: str, tmp_path: Path) -> None:
    shown = command.call(
        *("config", "show"), DRAGOMAN_HOME=None, HOME=given, XDG_CONFIG_HOME="", XDG_DATA_HOME="rel", cwd=tmp_path
    )
    assert (shown.code, list(tmp_path.iterdir())) == (0, [])


def test_the_protocols_stdout_stays_clean(user: Path) -> None:
    """An editor that starts the agent gets its answer alone, and one without a stderr nothing more."""
    environment = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_HOME"} | {"HOME": str(user)}
    line = f"exec {sys.executable} -P -m dragoman.cli.main acp --model demo 2>&-"
    done = subprocess.run(
        ["/bin/sh", "-c", line], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
    )
    assert (done.stdout, files(user) == EXPECTED) == (b"", True)
