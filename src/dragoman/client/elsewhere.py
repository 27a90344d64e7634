"""Tells whether a command line starts the agent here, or has it carried elsewhere. Looks links up; reads no file.

`dragoman run` lets an agent that works here read the working folder without a question. An agent on another machine, in
a container, in a sandbox or under another user is no such agent: its paths are not ours, or what it may see was
bounded on purpose. One word that names a carrier is enough, wherever it stands: behind `env`, `sudo`, `timeout`, `uvx`
or `npx`, among the words of a bridge, in the text for `sh -c` or for an interpreter. What cannot be read counts as
carried. A script that calls `ssh` by itself is not seen.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman.host.loose import HOLE, SHELLS, TooMuchToParse, commands_in

_MACHINE: Final = "takes the agent to another machine"
_CONTAINER: Final = "puts the agent in a container or another root, where a path is another file"
_SANDBOX: Final = "confines the agent, so it is not for us to lend it files"
_RELAY: Final = "passes everything on to an address"
_USER: Final = "starts the agent under another user, who may not read what you may"
# Every program that is known to carry an agent away, and how.
_CARRIERS: Final[Mapping[str, str]] = {
    # Also what the tools of clouds and of remote workspaces do: `gcloud compute ssh`, `gh codespace ssh`, `fly ssh`.
    **dict.fromkeys(("ssh", "autossh", "sshpass", "mosh", "rsh", "dbclient", "plink", "tsh", "vagrant"), _MACHINE),
    **dict.fromkeys(("ssm", "session-manager-plugin", "heroku", "railway", "srun", "salloc", "sbatch"), _MACHINE),
    **dict.fromkeys(
        ("rlogin", "xxh", "mosh-client", "pdsh", "mpirun", "mpiexec", "qsub", "bsub", "adb", "hdc"), _MACHINE
    ),
    **dict.fromkeys(("kubectl", "oc", "nomad", "docker", "docker-compose", "podman", "nerdctl", "crictl"), _CONTAINER),
    **dict.fromkeys(("podman-compose", "runc", "crun", "lxc", "lxc-attach", "incus", "machinectl"), _CONTAINER),
    **dict.fromkeys(("systemd-nspawn", "distrobox", "distrobox-enter", "toolbox", "flatpak", "wsl"), _CONTAINER),
    **dict.fromkeys(("flatpak-spawn", "host-spawn", "apptainer", "singularity", "devcontainer"), _CONTAINER),
    **dict.fromkeys(("chroot", "schroot", "proot", "nsenter", "limactl", "colima", "multipass", "virsh"), _CONTAINER),
    **dict.fromkeys(("arch-chroot", "capsh", "lima", "orb", "orbctl", "ctr", "buildah", "podman-remote"), _CONTAINER),
    **dict.fromkeys(("runsc", "youki", "udocker", "enroot", "ch-run", "nixos-container", "pct", "jexec"), _CONTAINER),
    **dict.fromkeys(("vzctl", "krunvm"), _CONTAINER),
    **dict.fromkeys(("srt", "sbx", "systemd-run", "run0"), _SANDBOX),
    **dict.fromkeys(("su", "runuser", "gosu", "su-exec", "setpriv", "chpst", "setuidgid", "s6-setuidgid"), _USER),
    **dict.fromkeys(("pkexec", "sg", "newgrp"), _USER),
    **dict.fromkeys(("bwrap", "firejail", "sandbox-exec", "landrun", "nsjail", "minijail0", "unshare"), _SANDBOX),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet", "openssl", "websocat", "wscat"), _RELAY),
}
# Ourselves, by the names of the program and of its modules.
_OURS: Final = frozenset({"dragoman", "dragoman.cli", "dragoman.cli.main"})
# These are root without an option, and root may read what you may.
_BECOMES: Final = frozenset({"sudo", "doas"})
_OTHER_USER: Final = re.compile(r"-[A-Za-z]*[ug].*|--(user|group|login-class)(=.*)?")
_BLANK: Final = re.compile(r"\s")
_NAMES: Final = re.compile(r"[\w.+-]+")
_SOCKET: Final = re.compile(r"wss?://", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
# Options that say where an agent is; any other address behind an option is one of a model or of a proxy.
_PEER_OPTION: Final = re.compile(r"--?(url|sse|streamable-?http|remote|connect|endpoint|server)(-url)?", re.IGNORECASE)
# A command line that starts an agent has some dozen words; a text for an interpreter may be long.
_WORDS: Final = 256
_CHARACTERS: Final = 128 * 1024


def carried_elsewhere(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Say what carries an agent away that this command line starts; empty: it works here, as far as can be known."""
    if len(command) > _WORDS or sum(map(len, command)) > _CHARACTERS:
        return "the command line is too long to be looked through"
    ours = False
    for word in command:
        if _SOCKET.search(word):
            return f"{word[:100]} is where an agent is reached"
        for name in _names_in(word, environment):
            if carrier := _carrier(name):
                return carrier
            if name == "connect" and (ours or any(_ADDRESS.search(one) for one in command)):
                return f"dragoman connect {_RELAY}"
            ours = ours or name in _OURS
    words = [part for word in command for part in word.split()]
    return _under_another_user(words) or _to_an_address(words) or _told_to_a_shell(command)


def _carrier(name: str) -> str:
    """Say how a program carries an agent away: `nc.openbsd` is `nc`, and `microk8s.kubectl` is `kubectl`."""
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    return next((f"{one} {_CARRIERS[one]}" for one in (name, first, last) if one in _CARRIERS), "")


def _under_another_user(words: Sequence[str]) -> str:
    names = [_name(word) for word in words]
    at = next((at for at, name in enumerate(names) if name in _BECOMES), len(words))
    return f"{names[at]} {_USER}" if any(_OTHER_USER.fullmatch(word) for word in words[at + 1 :]) else ""


def _to_an_address(words: Sequence[str]) -> str:
    """Say which address a relay is given: by itself, or behind an option that names a peer."""
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        is_told = _ADDRESS.match(word) and (not before.startswith("-") or _PEER_OPTION.fullmatch(before))
        if is_told or (_ADDRESS.match(value) and _PEER_OPTION.fullmatch(option)):
            return f"{word[:100]} may be where an agent is reached"
    return ""


def _names_in(word: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the programs that a word may name: itself, what follows an `=`, names in a text, the target of a link."""
    if _BLANK.search(word):
        yield from map(_name, _NAMES.findall(word))
        return
    for part in (word, word.partition("=")[2]):
        if part and not part.startswith("-"):
            yield _name(part)
            found = shutil.which(part, path=environment.get("PATH", os.defpath)) if "\0" not in part else None
            if found is not None:
                yield _name(os.path.realpath(found))


def _name(path: str) -> str:
    return os.path.basename(path).lower().removesuffix(".exe")


def _told_to_a_shell(command: Sequence[str]) -> str:
    """Say what a shell is told to run that carries an agent away, quotes taken off, or that comes out of a variable."""
    if not any(_name(word) in SHELLS | {"env"} for word in command):
        return ""  # in a text for an interpreter every name was looked at
    unknown = "it is not known what the shell is told to run"
    try:
        found = [loose for text in (shlex.join(command), *command) for loose in commands_in(text)]
    except TooMuchToParse:
        return unknown
    names = [name for loose in found for name, _ in loose.names()]
    if any(HOLE in name for name in names):
        return unknown
    return next((carrier for name in names if (carrier := _carrier(_name(name)))), "")
