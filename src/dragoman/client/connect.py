"""`connect`: talk to any ACP agent.

async with connect(["gemini", "--acp"]) as client:
    session = await client.new_session("/path/to/project")
    async for event in session.prompt("Explain this repository"):
        ...
"""

import os
import warnings
from collections.abc import Callable, Mapping

from dragoman import limits
from dragoman.client.ask_user import AskUserCallback
from dragoman.client.checks import check_plain
from dragoman.client.client import Client
from dragoman.client.connection import AgentConnection, ConnectionSettings, EventCallback, State
from dragoman.client.handlers import (
    ClientHandlers,
    ElicitationCallback,
    ExtensionCallback,
    NotificationCallback,
    PermissionCallback,
    ReadCallback,
    Terminals,
    WriteCallback,
)
from dragoman.client.targets import Target, resolve_target
from dragoman.client.timeouts import Timeouts
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.errors import UsageError
from dragoman.link import Trace
from dragoman.version import VERSION
from dragoman.vocabulary.hello import Implementation

__all__ = ["Client", "EventCallback", "State", "Target", "connect"]


def connect(
    target: Target,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    permission: PermissionCallback | None = None,
    elicitation: ElicitationCallback | None = None,
    read_text_file: ReadCallback | None = None,
    write_text_file: WriteCallback | None = None,
    terminals: Terminals | None = None,
    ask_user: AskUserCallback | None = None,
    extensions: Mapping[str, ExtensionCallback] | None = None,
    on_notification: NotificationCallback | None = None,
    on_event: EventCallback | None = None,
    on_noise: Callable[[str], None] | None = None,
    on_trouble: Callable[[str], None] | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    info: Implementation | None = None,
    protocol: int | None = None,
    dialect: str | None = None,
    timeouts: Timeouts | None = None,
    start_timeout: float = limits.START_SECONDS,
    trace: Trace | None = None,
    patience: Timeouts | None = None,
) -> Client:
    """Return a client for an agent; `async with` connects it. Nothing is started or sent before that.

    `target` is a command as a list or a line, an address (https://, http://, wss:// or ws://), or a transport.

    What is started or called
        `cwd` and `env` are for a command: its folder, and variables beside our own, from which secrets are removed.
        `token`, or the first line of `token_file`, is sent to an address; its certificate is checked against the
        authorities in `ca_file` alone, if that is given. `protocol` is 1 or 2 to speak only that version; `dialect` is
        the name of a documented dialect, without which the agent's version decides. `info` is our name and version, as
        the agent gets them.

    Callbacks for what the agent asks for; what has no callback is not offered to it
        `permission` answers a permission request with one of its options, the option's id, or None for a no; without
        it every request is rejected. `elicitation` fills in forms, `ask_user` answers the questions of agents that
        have no forms. `read_text_file`, `write_text_file` and `terminals` lend files and terminals: `Workspace` has
        them ready. `extensions` maps methods that begin with an underscore to async functions.

    Callbacks for what happens; they are called from the event loop and must not block
        `on_event` gets the events outside of turns, and the history of a loaded session; `on_notification`
        notifications outside the protocol; `on_noise` why a message of the agent was skipped; `on_trouble` a sentence
        when an address cannot be reached, and when it can be again; `on_stderr` what the agent's process writes there;
        `trace` every frame, as `trace("in" or "out", frame)`.

    Bounds
        `timeouts` says how long to wait for what, and replaces `start_timeout`, the seconds for the start alone.
        `patience` is the former name of `timeouts`.

    Raise `UsageError` for settings that do not fit each other or the target.
    """
    timeouts = renamed_timeouts(timeouts, patience)
    if dialect is not None:
        from dragoman.dialects.vendors.named import check_name, pinned_version

        check_name(dialect)
        if pinned_version(dialect) is not None:
            protocol, dialect = pinned_version(dialect), None
    if protocol not in (None, 1, 2):
        raise UsageError(f"protocol must be 1 or 2, not {protocol!r}")
    check_plain(on_event, "on_event", "conversation", "event")
    check_plain(on_noise, "on_noise", "reason")
    check_plain(on_trouble, "on_trouble", "sentence")
    check_plain(on_stderr, "on_stderr", "data")
    check_plain(trace, "trace", "direction", "frame")
    _check_values(cwd, env, info, timeouts, start_timeout)
    handlers = ClientHandlers(
        permission=permission,
        elicitation=elicitation,
        read_text_file=read_text_file,
        write_text_file=write_text_file,
        terminals=terminals,
        ask_user=ask_user,
        extensions=extensions,
        on_notification=on_notification,
    )
    settings = ConnectionSettings(
        resolve_target(target, env=env, token=token, token_file=token_file, ca_file=ca_file, on_trouble=on_trouble),
        cwd=cwd,
        env=env,
        info=info or Implementation("dragoman", VERSION),
        versions=SPOKEN if protocol is None else (protocol,),
        dialect=dialect or "",
        timeouts=timeouts or Timeouts(startup=start_timeout),
        trace=trace,
        on_event=on_event,
        on_noise=on_noise,
        on_stderr=on_stderr,
    )
    return Client(AgentConnection(settings, handlers))


def renamed_timeouts(timeouts: Timeouts | None, patience: Timeouts | None) -> Timeouts | None:
    """Return `timeouts`, or the value of its former name `patience`, with a `DeprecationWarning` for our caller's."""
    if patience is not None:
        warnings.warn("patience= is called timeouts= now", DeprecationWarning, stacklevel=3)
    return timeouts or patience


def _check_values(cwd: object, env: object, info: object, timeouts: object, start_timeout: object) -> None:
    """Raise `UsageError` for settings of another type, which would only fail where the agent is started."""
    if cwd is not None and not isinstance(cwd, (str, os.PathLike)):
        raise UsageError(f"cwd is a folder, not {cwd!r}: write `connect(..., cwd='/path/to/project')`")
    if env is not None:
        texts = isinstance(env, Mapping) and all(isinstance(one, str) for item in env.items() for one in item)
        if not texts:  # not shown: it may hold a secret
            raise UsageError("env is a dict of text: write `connect(..., env={'NAME': 'value'})`")
    if info is not None and not isinstance(info, Implementation):
        raise UsageError(f"info is an Implementation, not {info!r}: write `info=Implementation('my-client', '1.0')`")
    if timeouts is not None and not isinstance(timeouts, Timeouts):
        raise UsageError(f"timeouts is a Timeouts, not {timeouts!r}: write `timeouts=Timeouts(startup=30)`")
    if start_timeout is not None and not _is_duration(start_timeout):
        raise UsageError(f"start_timeout is a number of seconds, not {start_timeout!r}: write `start_timeout=30`")


def _is_duration(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0
