"""What a client can be connected to, and how that becomes a transport: a command is started, an address is reached.

Promise: nothing is started or sent before the link starts the transport, except the process of a command.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.errors import UsageError
from dragoman.transports.contract import Transport

if TYPE_CHECKING:
    from dragoman.host.process import Child

Target = Sequence[str] | str | Transport
# What agents are behind. No command has such a name as begins like an address, so others are mistakes.
SCHEMES: Final = ("https", "http", "wss", "ws")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class OpenedTarget(NamedTuple):
    """A transport, and the process behind it if we have started one."""

    transport: Transport
    child: "Child | None" = None


def is_address(target: object) -> bool:
    """Return whether an agent is reached there, and not started."""
    return isinstance(target, str) and _ADDRESS.match(target) is not None


def is_readable_on_the_way(url: str) -> bool:
    """Return whether others can read what is sent to an address, such as a token: not encrypted, and not local."""
    import ipaddress
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "ws") or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return True


def resolve_target(
    target: Target,
    *,
    env: Mapping[str, str] | None,
    token: str | None,
    token_file: str | os.PathLike[str] | None,
    ca_file: str | os.PathLike[str] | None = None,
    on_trouble: Callable[[str], None] | None = None,
) -> Target:
    """Return a transport if `target` is an address, else `target` itself.

    `on_trouble` is called with a sentence when the server cannot be reached for now, and when it can be again. Raise
    `UsageError` if the arguments do not fit the target or each other.
    """
    if not isinstance(target, str) or not is_address(target):
        if token is not None or token_file is not None:
            raise UsageError("a token is for an agent behind an address, such as https://agents.example.org")
        if ca_file is not None:
            raise UsageError("ca_file is for an agent behind an address, such as https://agents.example.org")
        return target
    if env is not None:
        raise UsageError("env is for an agent that is started here, not for one behind an address")
    if token is not None and token_file is not None:
        raise UsageError("token or token_file, not both")
    # Here and not at the top: a client that starts its agent pays for no address.
    from dragoman.transports.remote import transport_for
    from dragoman.transports.token import TokenFile, one_token

    shown: str | TokenFile | None = None if token is None else one_token(token, "token")
    if token_file is not None:
        shown = TokenFile(os.path.expanduser(token_file))
    trusted = "" if ca_file is None else os.path.expanduser(ca_file)
    return transport_for(target, shown, on_trouble, ca_file=trusted)


def open_target(
    target: Target, cwd: str | None, env: Mapping[str, str] | None, on_stderr: Callable[[bytes], None] | None = None
) -> OpenedTarget:
    """Return a transport to a target; `on_stderr` gets what a process that is started here writes to stderr."""
    if not isinstance(target, (str, Sequence)):
        if not hasattr(target, "close_writing"):
            raise UsageError(f"connect() takes a command, an address or a transport, not {type(target).__name__}")
        return OpenedTarget(target)
    # Here and not at the top: a client over another transport starts no process.
    from dragoman.transports.child import ChildTransport

    command = shlex.split(target) if isinstance(target, str) else list(target)
    if not command:
        raise UsageError("connect() needs a command, such as ['gemini', '--acp'], an address or a transport")
    transport = ChildTransport.spawn(command, cwd=cwd, env=env, on_stderr=on_stderr)
    return OpenedTarget(transport, transport.child)
