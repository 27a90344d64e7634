"""The language servers of one session, put together: what the user and the administrator have set, and who is trusted.

Decided once, with the first prompt: the tools that a session offers are the same in every request.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from dragoman.coder.language_servers.known import FoundServer, find_servers
from dragoman.coder.language_servers.problems import late_report
from dragoman.coder.modes import UNCONFINED
from dragoman.coder.project_trust import ProjectTrust
from dragoman.coder.setup import Setup
from dragoman.host.paths import Roots

if TYPE_CHECKING:
    from dragoman.coder.language_servers.launch import ServerPlace
    from dragoman.coder.language_servers.servers import LanguageServers

_PACKAGES = ("lsprotocol", "pygls")


class ServerFolders(NamedTuple):
    """What a session knows of its folders: `hidden` returns what no command may see, `mode` its present mode."""

    roots: Callable[[], Roots]
    environment: Mapping[str, str]
    hidden: Callable[[], Sequence[str]]
    mode: Callable[[], str]


def language_servers_of(setup: Setup, folders: ServerFolders) -> "LanguageServers | None":
    """Return the servers of a session; None: there is no program that could be one. Blocks, and starts nothing."""
    specs = [
        spec for spec in setup.language_servers() if setup.managed.language_servers.allows(spec.name, spec.command)
    ]
    if not specs or any(find_spec(package) is None for package in _PACKAGES):
        return None

    def programs() -> list[FoundServer]:
        return find_servers(specs, folders.environment.get("PATH", os.defpath), folders.roots().real)

    if not programs():
        return None
    # Where there is no program, a first prompt waits for no import either.
    from dragoman.coder.language_servers.launch import ServerPlace
    from dragoman.coder.language_servers.servers import LanguageServers

    trust = ProjectTrust(setup.trust)
    home = os.path.realpath(setup.home) if setup.home else ""

    def trusted() -> list[str]:
        return [root for root in folders.roots().real if not trust.refusal_of(root, setup.user_home)]

    def place(roots: Sequence[str]) -> "ServerPlace":
        is_free = folders.mode() in UNCONFINED
        return ServerPlace(roots, folders.environment, home, folders.hidden(), setup.sandbox_limits, is_free)

    servers = LanguageServers(specs, place, setup.guardian, trusted, programs, setup.server_timeouts)
    servers.find()
    return servers


def late_reports(servers: "LanguageServers | None", roots: Roots) -> list[str]:
    """Return what the model is told of errors that came after the results of their edits, if there are any."""
    late = servers.take_late() if servers is not None else []
    return [late_report(late, roots.real[0])] if late else []
