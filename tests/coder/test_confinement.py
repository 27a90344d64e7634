"""What a confined command can write, reach and see, through the whole agent.

All attempts against the sandbox itself are in `tests/host/test_sandbox.py`.
"""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.sandbox import Confinement
from tests.support.files import snapshot
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.web import listening
from tests.support.whole_agent import User, events_of, whole

CANARY = "canary-5d21f0"
CONFINED = ["workspace-write", "sandbox"]


def in_mode(mode: str, command: str) -> dict[str, Any]:
    return call("sandbox_bash" if mode == "sandbox" else "bash", command=command)


async def confined(tmp_path: Path, mode: str, *commands: str) -> list[str]:
    """What confined commands told the model. None of them is asked about."""
    need("bwrap")
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home):
        folder.mkdir(exist_ok=True)
    model = RecordingModel(apart(in_mode(mode, command) for command in commands))
    user = User("reject_once")
    async with whole(work, model.make, user=user, mode=mode, home=home) as (_, session):
        await events_of(session)
    assert (len(model.results), user.asked[len(commands) if mode == "sandbox" else 0 :]) == (len(commands), [])
    return model.results


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("mode", CONFINED)
async def test_nothing_is_written_outside_nor_under_a_protected_name(tmp_path: Path, mode: str) -> None:
    outside = tmp_path / "outside"
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    outside.mkdir()
    before = snapshot(outside), snapshot(tmp_path / "work")
    attempts = [
        f"echo x > {outside}/x",
        f"exec 3<{outside}; echo x > /proc/self/fd/3/x",
        f"mount --bind {outside} . && echo x > x",
        f"LD_PRELOAD=./evil.so; cp /bin/true {outside}/x",
        f"ln -s {outside} door; echo x > door/x; rm door",
        "echo x > .git/hooks/pre-commit",
        "mkdir -p .vscode && echo x > .vscode/settings.json",
        "mv .git git && echo x > git/hooks/pre-commit",
    ]
    await confined(tmp_path, mode, *attempts)
    assert (snapshot(outside), snapshot(tmp_path / "work")) == before


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("mode", [*CONFINED, "full-access"])
async def test_no_host_is_reached_over_any_network(tmp_path: Path, mode: str) -> None:
    """A port of this machine, a name, a socket in the file system. Unconfined, the same attempts arrive."""
    with listening() as (port, heard), socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "daemon.sock"))
        local.listen()
        local.settimeout(0)
        connect = "import socket; s = socket.socket({}); s.connect({}); s.send(b'x')"
        await confined(
            tmp_path,
            mode,
            f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo {CANARY} >&3",
            f"curl -s -m 2 http://127.0.0.1:{port}/{CANARY}",
            f'python3 -c "{connect.format("socket.AF_INET", ("127.0.0.1", port))}"',
            f'python3 -c "{connect.format("socket.AF_UNIX", repr(str(tmp_path / "daemon.sock")))}"',
            f"getent hosts {CANARY}.example.com; ping -c1 -W1 127.0.0.1",
        )
        if mode == "full-access":
            local.accept()[0].close()
            assert len(heard) >= 2
            return
        assert heard == []
        with pytest.raises(BlockingIOError):
            local.accept()


@pytest.mark.requirement("I3")
@pytest.mark.parametrize("mode", CONFINED)
async def test_the_agent_is_neither_seen_nor_touched(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    me = os.getpid()
    results = await confined(
        tmp_path,
        mode,
        f"cat /proc/{me}/environ; tr '\\0' '\\n' < /proc/{me}/cmdline; ls /proc/{me}/fd",
        f"kill -0 {me} && echo touched; kill -9 {me} && echo touched",
        "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a KEY",
        "unshare -Ur id -u && echo gained; su nobody -c id; cat /etc/shadow",
        "grep -s Cap /proc/self/status",
    )
    told = "\n".join(results)
    assert CANARY not in told
    assert "pytest" not in results[0]
    assert "touched" not in told
    assert "gained" not in told
    assert "root:" not in results[3]
    assert "CapEff:\t0000000000000000" in results[4]


@pytest.mark.requirement("I4")
@pytest.mark.parametrize("mode", CONFINED)
async def test_without_a_sandbox_no_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """The reason is told, and nothing runs bare."""
    nothing = Confinement(None, 0, ("There is no bubblewrap: apt install bubblewrap.",))
    # This one may be imported by its line, and must not find the other one changed: it would keep that.
    monkeypatch.setattr("dragoman.coder.sandbox.probe", lambda: nothing)
    monkeypatch.setattr("dragoman.host.sandbox.probe", lambda: nothing)
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    model = RecordingModel(apart([in_mode(mode, f"touch ran {tmp_path}/ran")]))
    async with whole(work, model.make, user=User("allow_once"), mode=mode, home=home) as (_, session):
        await events_of(session)
    assert len(model.results) == 1
    assert all("bubblewrap" in result for result in model.results)
    assert (list(work.iterdir()), (tmp_path / "ran").exists()) == ([], False)
