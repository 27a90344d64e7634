"""Finds out whether a command line starts the agent here or elsewhere. Looks links up; reads no file.

`dragoman run` lets an agent that works here read the working folder without a question. An agent on another machine, in
a container, in a sandbox or under another user is no such agent: its paths are not ours, or what it may see was
bounded on purpose. One word that names a carrier is enough, wherever it stands: behind `env`, `sudo`, `timeout`, `uvx`
or `npx`, among the words of a bridge, in the text for `sh -c` or for an interpreter. So is an address of any scheme, or
another machine with a port, unless it stands behind an option for something else, such as `--base-url`. What cannot be
read counts as carried. A script that calls `ssh` by itself is not seen.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from dragoman.host.possible_commands import SHELLS, TooMuchToParse, commands_in
from dragoman.host.shell_lexer import HOLE

_MACHINE: Final = "takes the agent to another machine"
_CONTAINER: Final = "puts the agent in a container or another root, where a path is another file"
_SANDBOX: Final = "confines the agent, so it is not for us to lend it files"
_RELAY: Final = "passes everything on to an address"
_USER: Final = "starts the agent under another user, who may not read what you may"
# Every program that is known to carry an agent away, and how; wherever its name stands.
_CARRIERS: Final[Mapping[str, str]] = {
    # Also what the tools of clouds and of remote workspaces do: `gcloud compute ssh`, `gh codespace ssh`, `fly ssh`.
    **dict.fromkeys(("ssh", "autossh", "sshpass", "mosh", "rsh", "dbclient", "plink", "tsh", "vagrant"), _MACHINE),
    **dict.fromkeys(("ssm", "session-manager-plugin", "heroku", "railway", "srun", "salloc", "sbatch"), _MACHINE),
    **dict.fromkeys(
        ("rlogin", "xxh", "mosh-client", "pdsh", "mpirun", "mpiexec", "qsub", "bsub", "adb", "hdc"), _MACHINE
    ),
    **dict.fromkeys(("mosh-server", "slogin", "pssh", "parallel-ssh", "clush", "salt-ssh", "ansible"), _MACHINE),
    **dict.fromkeys(("devpod", "daytona", "codespace", "gitpod", "telepresence", "teleport"), _MACHINE),
    **dict.fromkeys(("psexec", "winrs", "enter-pssession", "new-pssession", "invoke-command"), _MACHINE),
    **dict.fromkeys(("kubectl", "oc", "nomad", "docker", "docker-compose", "podman", "nerdctl", "crictl"), _CONTAINER),
    **dict.fromkeys(("podman-compose", "runc", "crun", "lxc", "lxc-attach", "incus", "machinectl"), _CONTAINER),
    **dict.fromkeys(("systemd-nspawn", "distrobox", "distrobox-enter", "toolbox", "flatpak", "wsl"), _CONTAINER),
    **dict.fromkeys(("flatpak-spawn", "host-spawn", "apptainer", "singularity", "devcontainer"), _CONTAINER),
    **dict.fromkeys(("chroot", "schroot", "proot", "nsenter", "limactl", "colima", "multipass", "virsh"), _CONTAINER),
    **dict.fromkeys(("arch-chroot", "capsh", "lima", "orb", "orbctl", "ctr", "buildah", "podman-remote"), _CONTAINER),
    **dict.fromkeys(("runsc", "youki", "udocker", "enroot", "ch-run", "nixos-container", "pct", "jexec"), _CONTAINER),
    **dict.fromkeys(("vzctl", "krunvm", "lxc-execute", "lxc-start", "fakechroot", "distrobox-host-exec"), _CONTAINER),
    **dict.fromkeys(("firecracker", "kata-runtime", "vmrun", "finch", "kubecolor"), _CONTAINER),
    **dict.fromkeys(("srt", "sbx", "systemd-run", "run0", "bubblejail", "sydbox"), _SANDBOX),
    **dict.fromkeys(("su", "runuser", "gosu", "su-exec", "setpriv", "chpst", "setuidgid", "s6-setuidgid"), _USER),
    **dict.fromkeys(("pkexec", "sg", "newgrp", "ksu", "pbrun", "runas", "s6-applyuidgid"), _USER),
    **dict.fromkeys(("bwrap", "firejail", "sandbox-exec", "landrun", "nsjail", "minijail0", "unshare"), _SANDBOX),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet", "openssl", "websocat", "wscat"), _RELAY),
    **dict.fromkeys(("stunnel", "wstunnel", "chisel", "corkscrew", "proxytunnel", "grpcurl"), _RELAY),
}
# Programs whose names are words of a language too: only as a word of the command line, not in a text.
_SHORT_NAMES: Final[Mapping[str, str]] = {"et": _MACHINE}
# Programs that carry an agent away with one of these words behind them, and do other things without.
_SUBCOMMANDS: Final[Mapping[str, frozenset[str]]] = {
    "aws": frozenset({"execute-command", "start-session", "send-command", "ec2-instance-connect"}),
    "az": frozenset({"exec", "run-command", "command", "tunnel", "create-remote-connection"}),
    "gcloud": frozenset({"start-tcp-tunnel", "start-iap-tunnel", "cloud-shell", "workstations"}),
    "gh": frozenset({"cs"}),
    "modal": frozenset({"shell", "run", "container", "sandbox"}),
    **dict.fromkeys(("fly", "flyctl"), frozenset({"console", "exec", "proxy", "machine"})),
    "coder": frozenset({"port-forward"}),
    "render": frozenset({"shell", "exec"}),
    "doctl": frozenset({"console", "sandbox"}),
    "scw": frozenset({"exec"}),
    "ibmcloud": frozenset({"exec"}),
    "e2b": frozenset({"sandbox", "connect", "shell"}),
    "vercel": frozenset({"sandbox", "exec"}),
    **dict.fromkeys(("sprite", "sprites"), frozenset({"exec", "console"})),
    "runpodctl": frozenset({"exec"}),
    "brev": frozenset({"shell", "exec", "open"}),
    "sky": frozenset({"exec", "launch", "jobs"}),
    "ray": frozenset({"exec", "attach", "submit", "job"}),
    "copilot": frozenset({"exec"}),  # the one of AWS
    **dict.fromkeys(("boundary", "wezterm"), frozenset({"connect"})),
    **dict.fromkeys(("okteto", "consul", "vcluster", "prlctl", "tart"), frozenset({"exec"})),
    "balena": frozenset({"tunnel"}),
    "cloudflared": frozenset({"access", "tunnel"}),
    "vboxmanage": frozenset({"guestcontrol"}),
    "container": frozenset({"exec", "run"}),
    "snap": frozenset({"run"}),
    "codex": frozenset({"sandbox"}),
}
# Ourselves, by the names of the program and of its modules.
_OURS: Final = frozenset({"dragoman", "dragoman.cli", "dragoman.cli.main"})
# These are root without an option, and root may read what you may.
_BECOMES: Final = frozenset({"sudo", "sudo-rs", "doas", "dzdo"})
_OTHER_USER: Final = re.compile(r"-[A-Za-z]*[ug].*|--(user|group|login-class|chroot)(=.*)?")
_BLANK: Final = re.compile(r"\s")
_NAMES: Final = re.compile(r"[\w.+-]+")
# Bash reaches an address by such a file.
_SOCKET: Final = re.compile(r"wss?://|/dev/(tcp|udp)/", re.IGNORECASE)
# An address of any scheme, but for those of files and of packages.
_ADDRESS: Final = re.compile(
    r"(?!(file|data|npm|jsr|git|(git|hg|svn|bzr)\+[a-z]+):)[a-z][a-z0-9+.-]*://", re.IGNORECASE
)
_HOST: Final = r"\[[0-9a-f:.%]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?"
_HOST_AND_PORT: Final = re.compile(rf"([^\s@/:]+@)?(?P<host>{_HOST}):[0-9]{{2,5}}", re.IGNORECASE)
_HOST_ALONE: Final = re.compile(rf"([^\s@/:]+@)?(?P<host>{_HOST})", re.IGNORECASE)
_LOOPBACK: Final = re.compile(
    r"localhost|.+\.localhost|127(\.[0-9]+){3}|\[?::1\]?|0\.0\.0\.0|\[?::\]?|[0-9]+", re.IGNORECASE
)
# Options that say where an agent is; any other address behind a long option is one of a model or of a proxy.
_PEER_OPTION: Final = re.compile(
    r"--?((acp|agent|remote|peer|target|ssh)-)?(url|uri|sse|ws|websocket|tcp|grpc|streamable-?http|remote|connect"
    r"|endpoint|server|host|hostname|address|addr|peer|target|agent|relay|upstream)(-(url|uri|host|address|addr))?",
    re.IGNORECASE,
)
# These are followed by the name of a machine, with or without a port.
_HOST_OPTION: Final = re.compile(r"--?((acp|agent|remote|peer|target|ssh)-)?(host|hostname)", re.IGNORECASE)
# Options without a value, behind which the next word stands by itself.
_SWITCH: Final = re.compile(r"--|-[A-Za-z0-9]|--(yes|verbose|debug|quiet|stdio|acp|experimental-acp|insecure|no-.*)")
# A command line that starts an agent has some dozen words; a text for an interpreter may be long.
_WORDS: Final = 256
# Words between a program and its subcommand: options, and the groups of its commands.
_BEHIND: Final = 32
_CHARACTERS: Final = 128 * 1024


def remote_launch_reason(command: Sequence[str], environment: Mapping[str, str]) -> str:
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
    by_word = _short_carrier(command) or _by_subcommand(command, environment)
    return by_word or _under_another_user(words) or _to_an_address(words) or _run_by_shell(command)


def _short_carrier(words: Sequence[str]) -> str:
    """Say which of the programs with short names is a word of the command line, and no value of an option."""
    for before, word in zip(["", *words], words, strict=False):
        if _name(word) in _SHORT_NAMES and not (before.startswith("--") and before != "--"):
            return f"{_name(word)} {_SHORT_NAMES[_name(word)]}"
    return ""


def _by_subcommand(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return which program starts the agent elsewhere because of a word behind it, before any `--`; empty: none."""
    words: list[tuple[str, list[str]]] = []  # each with the names of programs that it may be
    for word in command:
        if _BLANK.search(word):
            words += [(part, [_name(part)]) for part in _NAMES.findall(word)]
        else:
            words.append((word, list(_names_in(word, environment))))
    for at, (_, names) in enumerate(words):
        for program in (name for name in names if name in _SUBCOMMANDS):
            behind = takewhile(lambda one: one != "--", (one for one, _ in words[at + 1 : at + 1 + _BEHIND]))
            if found := next((one for one in behind if one in _SUBCOMMANDS[program]), ""):
                return f"{program} {found} takes the agent elsewhere"
    return ""


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
        is_alone = not before.startswith("-") or _SWITCH.fullmatch(before)
        if (is_alone or _PEER_OPTION.fullmatch(before)) and _is_address(word, behind=before):
            return f"{word[:100]} may be where an agent is reached"
        if _PEER_OPTION.fullmatch(option) and _is_address(value, behind=option):
            return f"{word[:100]} may be where an agent is reached"
    return ""


def _is_address(word: str, *, behind: str) -> bool:
    """Return whether a word is an address, or another machine with a port; `behind` `--host` also without one."""
    if _ADDRESS.match(word):
        return True
    pattern = _HOST_ALONE if _HOST_OPTION.fullmatch(behind) else _HOST_AND_PORT
    found = _HOST_AND_PORT.fullmatch(word) or pattern.fullmatch(word)
    return found is not None and not _LOOPBACK.fullmatch(found["host"])


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


def _run_by_shell(command: Sequence[str]) -> str:
    """Return what a shell would run that starts the agent elsewhere, or comes out of a variable; empty: nothing."""
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
    carriers = (_carrier(name) or _short_carrier([name]) for name in map(_name, names))
    return next(filter(None, carriers), "")
