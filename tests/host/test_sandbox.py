"""A confined command touches nothing but the roots, or is not run. Real commands, both ways."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.bubblewrap import FRESH
from dragoman.host.placeholders import Placeholder, is_placeholder
from dragoman.host.process import Child
from dragoman.host.sandbox import (
    Confinement,
    SandboxRefused,
    confine,
    find_bubblewrap,
    has_tmpfs_size,
    probe,
    try_out,
)
from dragoman.host.secrets import confined_environment, credential_paths
from tests.support.confined_commands import AS_ANOTHER_USER, PYTHON, ROOT, Box, confinement, python_of_others
from tests.support.machine import lives, read_line
from tests.support.needs import need
from tests.support.waiting import until


def test_a_command_works_in_its_roots(box: Box) -> None:
    done = box.sh(
        "cat file && echo new > made && mv made sub/moved && mkdir -p a/b && ln -s file link && chmod +x file && pwd"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"inside{box.workspace}\n", "")
    assert (box.workspace / "sub" / "moved").read_text() == "new\n"
    assert (box.workspace / "file").stat().st_mode & stat.S_IXUSR
    assert box.sh("exit 7").returncode == 7
    assert box.sh('mkdir -p "$XDG_CACHE_HOME/tool" && echo x > "$XDG_CACHE_HOME/tool/x"').returncode == 0
    assert box.sh("x=$(mktemp) && echo a > $x && cat $x > /dev/null && rm $x").returncode == 0
    assert box.sh("git init -q x && cd x && git status --short && python3 -c 'print(1)'").returncode == 0


def test_a_program_that_is_not_there_is_said_so(box: Box) -> None:
    done = box.run("no-such-program")
    assert done.returncode != 0
    assert "no-such-program" in done.stderr


I1_OUTSIDE = [
    "echo x > {out}/outside",
    "echo x >> {out}/outside",
    "echo x > {out}/new",
    "rm {out}/outside",
    "mv {out}/outside file2",
    "truncate -s 0 {out}/outside",
    "mkdir {out}/folder",
    "ln -s x {out}/link",
    "mkfifo {out}/fifo",
    "cp file {out}/copy",
    "echo x > ../outside",
    "ln -s {out}/outside way && echo x > way",
    "ln {out}/outside hard && echo x > hard",
    "ln -s {out} folder && echo x > folder/outside",
    "exec 3<{out}/outside; echo x > /proc/self/fd/3",
    "exec 3<{out}; echo x > /proc/self/fd/3/new",
    "echo x > /proc/self/root{out}/new",
    "echo x > /proc/self/cwd/../outside",
    "echo x > /proc/1/root{out}/new",
    "mount --bind {out} sub && echo x > sub/new",
    "unshare -Urm sh -c 'mount --bind {out} sub && echo x > sub/new'",
    "unshare -r sh -c 'echo x > {out}/new'",
    "chroot / sh -c 'echo x > {out}/new'",
    "LD_PRELOAD=/no/such.so sh -c 'echo x > {out}/new'",
    "echo x > $HOME/new",
    "echo x > /etc/new",
    "echo x > /usr/bin/new",
    "echo x > /var/tmp/../lib/new",
    # Opened only: where the sandbox fails, a test should not harm the machine.
    "exec 3>> /proc/sys/kernel/core_pattern",
    "exec 3>> /proc/sys/vm/drop_caches",
    "exec 3>> /proc/sysrq-trigger",
    "exec 3>> /proc/self/oom_score_adj",
    "dd if=/dev/zero of=/dev/vda count=0 conv=notrunc,nocreat",
    "head -c 1 /dev/vda",
    "mknod device b 254 0 && head -c 1 device",
]


@pytest.mark.requirement("I1")
def test_nothing_outside_the_roots_is_written(box: Box, place: Path) -> None:
    before = snapshot(place)
    succeeded = box.succeeded([script.format(out=place) for script in I1_OUTSIDE], env={"HOME": str(place)})
    assert snapshot(place) == before
    assert not any(Path(path, "new").exists() for path in ("/etc", "/usr/bin", "/var/lib"))
    assert succeeded == [] or str(place).startswith(FRESH)


@pytest.mark.requirement("I1")
@pytest.mark.slow
@pytest.mark.parametrize("script", I1_OUTSIDE)
def test_nothing_outside_the_roots_is_written_by_one_alone(box: Box, place: Path, script: str) -> None:
    """No process before it has left something in its way."""
    before = snapshot(place)
    done = box.run("/bin/bash", "-c", script.format(out=place), env={"HOME": str(place)})
    assert snapshot(place) == before
    assert done.returncode != 0 or str(place).startswith(FRESH)


@pytest.mark.requirement("I1")
def test_the_attempts_to_write_succeed_without_a_sandbox(workspace: Path, place: Path) -> None:
    """Those that need no privilege, and leave the machine as it is."""
    for script in I1_OUTSIDE[:5]:
        subprocess.run(["/bin/bash", "-c", script.format(out=place)], check=True, cwd=workspace)
        (place / "outside").write_text("outside")


@pytest.mark.requirement("I1")
def test_temporary_folders_are_not_those_of_the_host(box: Box) -> None:
    name = f"dragoman-test-{os.urandom(6).hex()}"
    box.sh("\n".join(f"echo x > {folder}/{name}" for folder in FRESH))
    assert not [folder for folder in FRESH if Path(folder, name).exists()]
    assert box.sh('ls "$TMPDIR"').stdout == ""


def snapshot(folder: Path) -> dict[str, object]:
    """What lies beside the workspace."""
    return {
        path.name: path.read_bytes() if path.is_file() else path.stat().st_mode
        for path in folder.iterdir()
        if path.name != "workspace"
    }


PROTECTED = (".git/hooks", ".git/config", ".envrc", ".vscode", "sub/absent")
I1_PROTECTED = [
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    "echo x > .git/config",
    "rm .git/config",
    "mv .git/config .git/other",
    "echo x > one && mv one .git/config",
    "rm -rf .git/hooks",
    "mv .git/hooks x",
    "mv .git away && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "rm -rf .git",
    "ln -s /etc .git/hooks/x",
    "ln .git/config hard && echo x >> hard",
    "echo x > .envrc",
    "mkdir -p .envrc/x",
    "echo x > two && mv two .envrc",
    "ln -s file .envrc",
    "rmdir .envrc && echo x > .envrc",
    "mv .envrc y && echo x > .envrc",
    "mkdir -p .vscode && echo x > .vscode/settings.json",
    "mkdir three && touch three/settings.json && mv three .vscode && test -f .vscode/settings.json",
    "mv sub moved && mkdir sub && echo x > sub/absent",
    "echo x > sub/absent",
    "chmod 777 .git/hooks && echo x > .git/hooks/x",
    "exec 3<.git/hooks; echo x > /proc/self/fd/3/x",
]


@pytest.mark.requirement("I1")
def test_protected_names_are_neither_changed_nor_made(box: Box) -> None:
    box.protected = PROTECTED
    assert box.succeeded(I1_PROTECTED) == []
    assert_protected(box.workspace)


@pytest.mark.requirement("I1")
@pytest.mark.slow
@pytest.mark.parametrize("script", I1_PROTECTED)
def test_protected_names_are_neither_changed_nor_made_by_one_alone(box: Box, script: str) -> None:
    """No process before it has left something in its way."""
    box.protected = PROTECTED
    assert box.sh(script).returncode != 0
    assert_protected(box.workspace)


def assert_protected(workspace: Path) -> None:
    """As `PROTECTED` says: what was there is as it was, what was not is not."""
    assert (workspace / ".git" / "config").read_text() == "[core]\n"
    assert list((workspace / ".git" / "hooks").iterdir()) == []
    assert not any((workspace / name).exists() for name in (".envrc", ".vscode", "sub/absent"))
    assert (workspace / "sub").is_dir()


def test_beside_protected_names_work_goes_on(workspace: Path) -> None:
    box = Box("bubblewrap", workspace)
    box.protected = PROTECTED
    done = box.sh("echo x > new && echo x > .git/index && echo x > sub/new && mkdir -p a/b && mv new a/b")
    assert (done.returncode, done.stderr) == (0, "")
    narrow = Box("landlock", workspace)
    narrow.protected = PROTECTED
    assert narrow.sh("echo y > file && echo y > a/b/c && echo y > .git/index && echo y > sub/new").returncode == 0
    assert narrow.sh("echo x > beside").returncode != 0  # the price: nothing new beside a protected name


@pytest.mark.requirement("I1")
def test_a_protected_link_cannot_be_protected(box: Box) -> None:
    (box.workspace / ".vscode").symlink_to("sub")
    box.protected = [".vscode"]
    with pytest.raises(SandboxRefused, match="link"):
        box.sh("true")


def test_a_placeholder_is_taken_away_by_the_last_who_holds_it(workspace: Path) -> None:
    path = str(workspace / ".envrc")
    first, second = Placeholder.hold(path), Placeholder.hold(path)
    assert is_placeholder(path)
    first.release()
    first.release()
    assert is_placeholder(path)
    second.release()
    assert not os.path.lexists(path)


def test_a_placeholder_left_over_by_a_killed_process_is_found_again(workspace: Path) -> None:
    path = workspace / ".envrc"
    path.mkdir()
    path.chmod(0o1555)
    box = Box("bubblewrap", workspace)
    box.protected = [".envrc"]
    assert box.sh("echo x > .envrc").returncode != 0
    assert not path.exists()


def test_what_is_there_is_no_placeholder(workspace: Path) -> None:
    (workspace / ".envrc").mkdir(0o755)
    with pytest.raises(FileExistsError):
        Placeholder.hold(str(workspace / ".envrc"))


@pytest.mark.parametrize("meanwhile", [lambda path: os.chmod(path, 0o1555), os.rmdir], ids=["made", "gone"])
def test_a_placeholder_that_another_process_makes_or_takes_away_is_waited_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Path], None]
) -> None:
    path = workspace / ".envrc"
    path.mkdir()
    monkeypatch.setattr("dragoman.host.placeholders.time.sleep", lambda _: meanwhile(path))
    held = Placeholder.hold(str(path))
    assert is_placeholder(str(path))
    held.release()


def test_many_commands_at_once_protect_together(workspace: Path) -> None:
    results: list[int] = []

    def run() -> None:
        box = Box("bubblewrap", workspace)
        box.protected = [".envrc"]
        results.extend(box.sh("echo x > .envrc").returncode for _ in range(3))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 9
    assert all(results)
    assert not (workspace / ".envrc").exists()


@pytest.fixture
def listener() -> Iterator[int]:
    """A server of the host on loopback; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


CONNECT = """
import socket, sys
family, kind, *address = sys.argv[1:]
sock = socket.socket(int(family), int(kind))
sock.settimeout(5)
target = address[0] if len(address) == 1 else (address[0], int(address[1]))
target = target.replace("@", "\\0") if isinstance(target, str) else target
sock.connect(target)
sock.send(b"x")
"""


@pytest.mark.requirement("I2")
def test_there_is_no_way_to_the_host(box: Box, listener: int) -> None:
    programs = [
        f"exec 3<>/dev/tcp/127.0.0.1/{listener}",
        f"exec 3<>/dev/udp/127.0.0.1/{listener} && echo x >&3 && false",
        "getent ahostsv4 example.com",
        *(line.replace("PORT", str(listener)) for line in CLIENTS if shutil.which(line.partition(" ")[0])),
    ]
    assert box.succeeded(programs) == []
    calls = [
        f"socket.create_connection(('127.0.0.1', {listener}), 5)",
        f"socket.create_connection(('::ffff:127.0.0.1', {listener}), 5)",
        "socket.create_connection(('1.1.1.1', 53), 5)",
        "socket.socket(2, 2).connect(('1.1.1.1', 53))",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(40, 1)",  # vsock: the machine below this one
        "socket.socket(38, 5)",  # alg
    ]
    done = box.python(TRY, *calls)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["OSError"] * len(calls)), done.stderr


CLIENTS = [
    "curl -s --max-time 5 http://127.0.0.1:PORT",
    "wget -q -T 5 -t 1 -O - http://127.0.0.1:PORT",
    "ping -c 1 -W 2 1.1.1.1",
    "ssh -o ConnectTimeout=2 -o BatchMode=yes -p PORT 127.0.0.1",
    "nc -z -w 2 127.0.0.1 PORT",
]
TRY = """
import socket, sys
for call in sys.argv[1:]:
    try:
        eval(call)
    except OSError:
        print("OSError")
    else:
        print(call)
"""


@pytest.mark.requirement("I2")
def test_no_daemon_of_the_host_is_reached_by_a_socket_in_the_file_system(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"@dragoman-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as inside, socket.socket(socket.AF_UNIX) as abstract:
        monkeypatch.chdir(box.workspace)  # a socket's path is short
        inside.bind("daemon.sock")
        inside.listen()
        abstract.bind(name.replace("@", "\0"))
        abstract.listen()
        for path in ("daemon.sock", name):
            done = box.python(CONNECT, str(int(socket.AF_UNIX)), "1", path)
            assert done.returncode != 0
            assert "PermissionError" in done.stderr
    daemons = ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0")
    assert box.succeeded([f"test -e {path} && cat {path}" for path in daemons]) == []


@pytest.mark.requirement("I2")
def test_the_attempts_to_reach_the_host_succeed_without_a_sandbox(listener: int) -> None:
    argv = [PYTHON, "-c", CONNECT, "2", "1", "127.0.0.1", str(listener)]
    assert subprocess.run(argv, check=False, timeout=30).returncode == 0


def test_the_network_can_be_allowed(box: Box, listener: int) -> None:
    box.network = True
    assert box.python(CONNECT, "2", "1", "127.0.0.1", str(listener)).returncode == 0
    assert box.python(CONNECT, "1", "1", "/run/docker.sock").returncode != 0


PTRACE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(libc.ptrace(16, int(sys.argv[1]), 0, 0) == -1)
"""


@pytest.mark.requirement("I3")
def test_no_privilege_is_gained_and_no_process_of_the_host_is_touched(box: Box) -> None:
    status = box.sh("cat /proc/self/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "CapInh")} == {"0" * 16}
    agent = os.getpid()
    attempts = [
        "unshare -U true",
        "unshare -n true",
        "unshare -Ur mount -t tmpfs x sub",
        f"kill -0 {agent}",
        "kill -0 1 2>/dev/null && test $$ -gt 100",
        f"cat /proc/{agent}/environ",
        f"cat /proc/{agent}/mem",
        f"readlink /proc/{agent}/fd/0",
        f"readlink /proc/{agent}/exe",
        f"nsenter -t {agent} -m true",
        "dmesg",
        "keyctl show",
        "su -c true nobody",
    ]
    assert box.succeeded(attempts) == []
    assert box.python(PTRACE, str(agent)).returncode != 0


@pytest.mark.requirement("I3")
def test_the_attempts_to_gain_privilege_succeed_without_a_sandbox() -> None:
    assert (
        subprocess.run(
            ["/bin/bash", "-c", f"kill -0 {os.getpid()} && cat /proc/{os.getpid()}/environ"], check=False
        ).returncode
        == 0
    )


@pytest.mark.requirement("I3")
def test_a_setuid_program_gains_nothing(box: Box) -> None:
    program = box.workspace / "setuid-id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o6755)
    if os.getuid() == 0:
        os.chown(program, 65534, 65534)
        program.chmod(0o6755)
    assert box.sh("./setuid-id -u").stdout == f"{os.getuid()}\n"


@pytest.mark.requirement("I4")
def test_without_any_way_to_confine_commands_are_refused(workspace: Path) -> None:
    nothing = Confinement(None, 0, ("There is no bubblewrap.",))
    assert nothing.level is None
    with pytest.raises(SandboxRefused, match=r"There is no bubblewrap\."):
        confine(["true"], cwd=str(workspace), writable=[str(workspace)], confinement=nothing)


FAKES = {
    "missing": None,
    "failing": "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n",
    "too old": "#!/bin/sh\necho 'bwrap: Unknown option --seccomp' >&2\nexit 1\n",
    "running bare": '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n',
    "doing nothing": "#!/bin/sh\nexit 0\n",
    "no program": "\0\1\2",
}


@pytest.mark.requirement("I4")
@pytest.mark.parametrize("kind", FAKES)
def test_a_bubblewrap_that_does_not_confine_is_not_used(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "bwrap"
    content = FAKES[kind]
    if content is not None:
        program.write_text(content)
        program.chmod(0o755)
    found = try_out(str(program))
    assert found.bubblewrap is None
    assert any("bubblewrap" in sentence.lower() for sentence in found.lacks)


def test_a_trial_of_two_walls_that_a_busy_machine_does_not_finish_counts_as_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, trials = subprocess.run, []

    def slow(argv: list[str], **options: Any) -> "subprocess.CompletedProcess[bytes]":
        trials.append(argv)
        if len(trials) == 3:  # bubblewrap alone, Landlock alone, then both
            raise subprocess.TimeoutExpired(argv, 10)
        return run(argv, **options)

    program = find_bubblewrap()
    assert program is not None
    has_tmpfs_size(program)  # known by now, so that it is none of the trials
    monkeypatch.setattr(subprocess, "run", slow)
    assert try_out(program).layered
    assert len(trials) == 3


@pytest.mark.requirement("I4")
def test_a_bubblewrap_that_fails_later_runs_nothing(workspace: Path, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    broken = Confinement(str(program), 0, ())
    with confine(["touch", "ran"], cwd=str(workspace), writable=[str(workspace)], confinement=broken) as box:
        assert subprocess.run(box.argv, check=False, cwd=workspace, timeout=30).returncode != 0
    assert not (workspace / "ran").exists()


@pytest.mark.requirement("I4")
def test_a_launcher_that_cannot_confine_runs_nothing(workspace: Path) -> None:
    with confine(
        ["touch", "ran"],
        cwd=str(workspace),
        writable=[str(workspace)],
        protected=(),
        confinement=Confinement(None, 3, ()),
    ) as box:
        # Another process's child: its parent is not who made the policy, which is one of the things it checks.
        done = subprocess.run(
            ["/bin/sh", "-c", '"$@"; exit $?', "sh", *box.argv], check=False, capture_output=True, cwd=workspace
        )
    assert done.returncode == 125
    assert b"not run" in done.stderr
    assert not (workspace / "ran").exists()


@pytest.mark.requirement("I4")
@pytest.mark.parametrize(
    ("cwd", "writable"),
    [("/", ["{root}"]), ("{root}/..", ["{root}"]), ("/", ["/"]), ("{root}", ["{root}/none"]), ("{root}", [])],
)
def test_what_is_no_workspace_is_refused(workspace: Path, cwd: str, writable: list[str]) -> None:
    with pytest.raises(SandboxRefused):
        confine(
            ["true"],
            cwd=cwd.format(root=workspace),
            writable=[root.format(root=workspace) for root in writable],
            confinement=Confinement("/usr/bin/bwrap", 7, ()),
        )


I5_NAMES = [
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("AWS_SESSION_TOKEN", "AWS_PROFILE", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("GCP_SERVICE_ACCOUNT_KEY_FILE", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_PAT", "NPM_TOKEN", "PYPI_PASSWORD", "KEY"),
    *("DATABASE_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "REDIS_AUTH", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SECRET"),
    *("GPG_AGENT_INFO", "DOCKER_HOST", "DOCKER_AUTH_CONFIG", "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY"),
    *("XDG_RUNTIME_DIR", "XAUTHORITY", "WAYLAND_DISPLAY", "SLACK_WEBHOOK_URL", "SENTRY_DSN", "STRIPE_SECRET_KEY_2"),
    *("MY_KEY_MATERIAL", "TOKEN_FOR_X", "SESSION_COOKIE", "PRIVATE_KEY_PATH", "VAULT_TOKEN", "VAULT_UNSEAL_KEYS"),
    *("HTTPS_PROXY", "http_proxy", "LD_PRELOAD", "BASH_ENV", "BASH_FUNC_ls%%", "GIT_SSH_COMMAND", "TF_VAR_password"),
    *("AZURE_STORAGE_CONNECTION_STRING", "CDPATH", "my_api_key", "SUDO_ASKPASS"),
]


@pytest.mark.requirement("I5")
def test_no_canary_reaches_a_command_by_its_environment(box: Box) -> None:
    assert len(I5_NAMES) >= 50
    canaries = {
        name: f"http://u:tweet-{at}@h" if "proxy" in name.lower() else f"tweet-{at}" for at, name in enumerate(I5_NAMES)
    }
    kept = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "LANG": "C.UTF-8", "VIRTUAL_ENV": "/x", "NODE_ENV": "test"}
    environment = confined_environment(canaries | kept)
    assert environment == kept
    done = box.run("/bin/sh", "-c", "env; cat /proc/self/environ /proc/*/environ 2>/dev/null; exit 0", env=environment)
    assert "LANG=C.UTF-8" in done.stdout
    assert "tweet" not in done.stdout


@pytest.mark.requirement("I5")
def test_what_is_allowed_by_name_passes() -> None:
    base = {"NPM_TOKEN": "a", "HTTPS_PROXY": "http://h", "HTTP_PROXY": "http://u:p@h"}
    assert confined_environment(base, network=True, allowed=frozenset({"NPM_TOKEN"})) == {
        "NPM_TOKEN": "a",
        "HTTPS_PROXY": "http://h",
    }


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("inside", [False, True])
def test_keys_are_not_read_from_files(box: Box, place: Path, inside: bool) -> None:
    home = box.workspace if inside else place / "home"
    secrets = [
        home / ".ssh" / "id_ed25519",
        home / ".netrc",
        home / ".config" / "gh" / "hosts.yml",
        home / "data" / "key",
    ]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("canary")
    (home / ".config" / "other").write_text("harmless")
    box.hidden = [*credential_paths(str(home)), str(home / "data")]
    (box.workspace / "way").symlink_to(secrets[0])
    tries = [
        f"echo {secret}; cat {secret}; cat /proc/self/root{secret}; "
        f"cp {secret} copy{at}; ln {secret} hard{at}; cat copy{at} hard{at}"
        for at, secret in enumerate(secrets)
    ]
    assert "canary" not in box.sh("\n".join([*tries, "cat way; grep -r canary . .."])).stdout
    assert box.sh(f"cat {home}/.config/other").stdout == "harmless" or str(place).startswith(FRESH)


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("inside", [False, True])
def test_a_file_in_a_hidden_folder_may_be_hidden_as_well(box: Box, place: Path, inside: bool) -> None:
    home = (box.workspace if inside else place) / "data"
    token = home / "gateway" / "tokens.json"
    token.parent.mkdir(parents=True)
    token.write_text("canary")
    box.hidden = [str(home), str(token), str(token.parent)]
    done = box.sh(f"cat {token}; echo ran")
    assert (done.stdout, done.returncode) == ("ran\n", 0)


@pytest.mark.requirement("I8")
def test_what_is_hidden_in_a_root_inside_of_a_hidden_folder_stays_hidden(box: Box, place: Path) -> None:
    (box.workspace / "key").write_text("canary")
    box.hidden = [str(place), str(box.workspace / "key")]
    done = box.sh("cat key; cat file")
    assert done.stdout == "inside"


@pytest.mark.requirement("I8")
def test_keys_of_the_system_are_hidden(box: Box) -> None:
    assert box.sh("cat /etc/shadow; cat /etc/gshadow; cat /etc/sudoers").stdout == ""


@pytest.mark.requirement("I8")
def test_the_agents_own_key_is_not_found_in_its_process(box: Box) -> None:
    """The agent is a process with the key in its environment; the command is its child, as in life."""
    with confine(
        ["/bin/bash", "-c", "cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null; cat /proc/$PPID/environ; exit 0"],
        cwd=str(box.workspace),
        writable=[str(box.workspace)],
        protected=(),
        confinement=confinement(box.level),
    ) as confined:
        agent = "import subprocess, sys; subprocess.run(sys.argv[1:], env={'PATH': '/usr/bin:/bin'})"
        argv = confined.argv
        if box.level == "landlock":  # the parent is part of the policy: here it is the agent, not us
            agent = (
                "import os, json, subprocess, sys; argv = sys.argv[1:]; policy = json.loads(argv[6]);"
                " policy['parent'] = os.getpid(); argv[6] = json.dumps(policy);"
                " subprocess.run(argv, env={'PATH': '/usr/bin:/bin'})"
            )
        done = subprocess.run(
            [sys.executable, "-c", agent, *argv],
            capture_output=True,
            check=False,
            timeout=30,
            cwd=box.workspace,
            env={"MODEL_API_KEY": "canary"},
        )
    assert b"PATH=" in done.stdout
    assert b"canary" not in done.stdout


@pytest.mark.requirement("E10")
def test_a_command_dies_with_who_started_it(box: Box) -> None:
    """The starter is killed, and nothing of the command is left."""
    need("bash")
    marker = f"dragoman-test-{os.urandom(6).hex()}"
    program = f"""
import subprocess, sys
sys.path.insert(0, {str(ROOT / "src")!r})
from dragoman.host.sandbox import Confinement, confine, probe
found = probe()
found = found if {box.level!r} == "bubblewrap" else found._replace(bubblewrap=None)
box = confine(["/bin/bash", "-c", "echo up; exec -a {marker} sleep 100"], cwd={str(box.workspace)!r},
              writable=[{str(box.workspace)!r}], protected=(), confinement=found)
child = subprocess.Popen(box.argv, cwd={str(box.workspace)!r}, start_new_session=True)
child.wait()
"""
    # Killed, it leaves its scratch folder behind: where this test's other files are.
    environment = dict(os.environ) | {"TMPDIR": str(box.workspace.parent)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        starter.kill()
        # Its descendants hold the pipe: end of file means that the last of them is gone.
        assert starter.stdout.read() == b""


@pytest.mark.requirement("E11")
async def test_a_confined_child_ends_with_all_it_started(box: Box) -> None:
    """Forks, sessions of their own, deaf to SIGTERM."""
    script = (
        "trap '' TERM; (setsid sleep 1000 &) ; (setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000 & echo up; wait"
    )
    with confine(
        ["/bin/bash", "-c", script],
        cwd=str(box.workspace),
        writable=[str(box.workspace)],
        protected=(),
        confinement=confinement(box.level),
    ) as confined:
        environment = {"PATH": os.environ["PATH"]} | confined.environment
        child = Child.start(confined.argv, cwd=box.workspace, env=environment)
        assert await read_line(child.stdout) == "up"
        await until(lambda: len(child._tree.members()) >= 6, "everybody is there")
        members = [process.pid for process in child._tree.members()]
        child.kill_now()
        await child.stop()
        assert [pid for pid in members if lives(pid)] == []


def test_it_works_for_a_user_who_is_not_root(place: Path) -> None:
    """As root these tests prove nothing about others. The other user needs an interpreter that it may start."""
    python = python_of_others()
    need("bwrap")
    place.chmod(0o755)
    os.chown(place, 65534, 65534)
    program = """
import os, subprocess, sys, tempfile
sys.path.insert(0, sys.argv[1])
from dragoman.host.sandbox import Confinement, confine, try_out, find_bubblewrap
from dragoman.host.copy_view import CopyView
from dragoman.host.overlay_view import OverlayView
found = try_out(find_bubblewrap())
assert found.bubblewrap and found.landlock, found
for one in (found, found._replace(bubblewrap=None)):
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as root:
        script = "echo x > inside && ! echo x > ../outside && ! echo x > /dev/tcp/127.0.0.1/1"
        with confine(["/bin/bash", "-c", script], cwd=root, writable=[root], protected=(), confinement=one) as box:
            done = subprocess.run(box.argv, cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, (one.level, done)
        assert os.listdir(root) == ["inside"]
with tempfile.TemporaryDirectory(dir=sys.argv[2]) as root, tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
    for kind in (CopyView, OverlayView):
        with kind.open([root], folder=folder) as view:
            script = ["/bin/bash", "-c", "id -u > user"]
            shown = {"views": view.sources, "enter": view.enter}
            with confine(script, cwd=root, writable=[root], confinement=found, **shown) as box:
                done = subprocess.run(box.argv, cwd=root, capture_output=True, text=True)
            assert [change.new for change in view.changes()] == [b"65534\\n"], done
print(os.getuid())
"""
    done = subprocess.run(
        [*AS_ANOTHER_USER, python, "-I", "-B", "-c", program, str(ROOT / "src"), str(place)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "65534\n"


def test_what_this_machine_can_do_is_tried_once() -> None:
    assert probe() is probe()
    found = probe()
    assert found == try_out(find_bubblewrap())
    assert (found.level is None) == bool(found.bubblewrap is None and not found.landlock)


def test_the_second_wall_does_not_depend_on_where_the_interpreter_was_before(
    monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    layered = confinement("bubblewrap")

    def argv() -> list[str]:
        root = str(workspace)
        with confine(["true"], cwd=root, writable=[root], confinement=layered) as box:
            return list(box.argv)

    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/tmp/nowhere/python")
        assert os.path.realpath(sys.executable) not in argv()
    assert os.path.realpath(sys.executable) in argv()
