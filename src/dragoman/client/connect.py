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
from dragoman.client.callbacks import check_plain
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
from dragoman.client.targets import Target, resolved
from dragoman.client.timeouts import Timeouts
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
    """A client for an agent: a command to start, an address, or a transport. Use it with `async with`.

    An address begins with https://, http://, wss:// or ws://; `token`, or what stands in `token_file`, is shown there.
    `env` is added to a scrubbed copy of our environment. Without `permission` every request is rejected. `on_event`
    hears what an agent tells outside of turns; `on_trouble`, in sentences, that an address cannot be reached for now,
    and the next time that it can be; `on_stderr` what the agent's process writes there. `timeouts` says how long to
    wait for what, and replaces `start_timeout`. `dialect` is the name of a documented way to speak; without it the
    agent's version decides. `patience` is the former name of `timeouts`.
    """
    if patience is not None:
        warnings.warn("patience= is called timeouts= now", DeprecationWarning, stacklevel=2)
        timeouts = timeouts or patience
    if dialect is not None:
        from dragoman.dialects.vendors.named import check_name, pinned

        check_name(dialect)
        if pinned(dialect) is not None:
            protocol, dialect = pinned(dialect), None
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
        resolved(target, env=env, token=token, token_file=token_file, on_trouble=on_trouble),
        cwd=cwd,
        env=env,
        info=info or Implementation("dragoman", VERSION),
        versions=(1, 2) if protocol is None else (protocol,),
        dialect=dialect or "",
        timeouts=timeouts or Timeouts(startup=start_timeout),
        trace=trace,
        on_event=on_event,
        on_noise=on_noise,
        on_stderr=on_stderr,
    )
    return Client(AgentConnection(settings, handlers))


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
