"""Machines of a campaign: network namespaces on one bridge, whose links are cut, made deaf, or lose packets.

All of it stands in the namespaces of one process, which `enter` makes: the campaign's own is where the bridge and the
clients are, each machine has another, held by a process that ends with the campaign. So nothing is left behind, also
after a kill, and the network of the machine that it runs on is never touched.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Final

_ENTERED: Final = "DRAGOMAN_CHAOS_ENTERED"
_PREFIX: Final = "10.77.0."
HUB: Final = f"{_PREFIX}1"
# Programs of util-linux, iproute2 and nftables.
PROGRAMS: Final = ("unshare", "nsenter", "setpriv", "ip", "nft")
_LOSSES: Final = "table ip chaos { chain arriving { type filter hook input priority 0; }; }"


def missing() -> str:
    """Return what this machine lacks for a campaign, in words; empty: nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"these programs are not installed: {', '.join(lacking)}" if lacking else ""


def enter(command: Sequence[str]) -> None:
    """Become `command` in namespaces of its own, of network and mounts, unless this process is in them already."""
    if not os.environ.get(_ENTERED):
        words = ["unshare", "--net", "--mount", "--", *command]
        os.execvpe(words[0], words, {**os.environ, _ENTERED: "1"})


class Machine:
    """A network namespace with one address. `run` starts a program in it, which is killed with the campaign."""

    def __init__(self, name: str, number: int) -> None:
        self.name: Final = name
        self.address: Final = f"{_PREFIX}{number}"
        self._link: Final = f"to-{name}"
        # Holds the namespace until its input ends.
        self._holder: Final = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self._wait_for_namespace()
        _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self._holder.pid))
        _ip("link", "set", self._link, "master", "hub", "up")
        self._inside("ip", "link", "set", "lo", "up")
        self._inside("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        self._inside("nft", _LOSSES)

    def __repr__(self) -> str:
        return f"<Machine {self.name} {self.address}>"

    def command(self, words: Sequence[str], user: int | None = None) -> list[str]:
        """Return the command line that runs a program here, as a user, and has it killed when the campaign ends."""
        other = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return [
            *("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--"),
            *("setpriv", "--pdeathsig=KILL", *other, "--", *words),
        ]

    def run(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        output: IO[bytes] | int = subprocess.DEVNULL,
        user: int | None = None,
        cwd: str = "/",
    ) -> "subprocess.Popen[bytes]":
        """Start a program here, in a session of its own."""
        return subprocess.Popen(
            self.command(words, user),
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=cwd,
        )

    def cut(self) -> None:
        """Take the link down: nothing leaves and nothing arrives."""
        _ip("link", "set", self._link, "down")

    def be_deaf_to(self, other: "Machine") -> None:
        """Drop what arrives from another machine; what is sent to it arrives there."""
        self._inside("nft", f"add rule ip chaos arriving ip saddr {other.address} drop")

    def lose(self, percent: int) -> None:
        """Drop this share of all packets that arrive."""
        self._inside("nft", f"add rule ip chaos arriving numgen random mod 100 < {percent} drop")

    def heal(self) -> None:
        """Undo what `cut`, `be_deaf_to` and `lose` have done."""
        _ip("link", "set", self._link, "up")
        self._inside("nft", "flush chain ip chaos arriving")

    def close(self) -> None:
        """Let the namespace go; it ends when no process is in it."""
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()

    def _inside(self, *words: str) -> None:
        _run("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--", *words)

    def _wait_for_namespace(self) -> None:
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == own:
            os.sched_yield()


def make_hub() -> None:
    """Make the bridge that joins the machines, where the campaign itself is."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", "hub", "type", "bridge")
    _ip("address", "add", f"{HUB}/24", "dev", "hub")
    _ip("link", "set", "hub", "up")


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
