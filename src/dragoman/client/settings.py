"""The settings of `connect` as a type, for functions that pass them on: editors and type checkers know them there too.

A test holds them equal to the parameters of `connect`, where each is explained.
"""

import os
from collections.abc import Callable, Mapping
from typing import TypedDict

from dragoman.client.ask_user import AskUserCallback
from dragoman.client.connection import EventCallback
from dragoman.client.handlers import (
    ElicitationCallback,
    ExtensionCallback,
    NotificationCallback,
    PermissionCallback,
    ReadCallback,
    Terminals,
    WriteCallback,
)
from dragoman.client.timeouts import Timeouts
from dragoman.link import Trace
from dragoman.vocabulary.hello import Implementation


class FolderlessSettings(TypedDict, total=False):
    """The keyword parameters of `dragoman.connect` but for `cwd`, where a function has a `cwd` of its own."""

    env: Mapping[str, str] | None
    token: str | None
    token_file: str | os.PathLike[str] | None
    ca_file: str | os.PathLike[str] | None
    permission: PermissionCallback | None
    elicitation: ElicitationCallback | None
    read_text_file: ReadCallback | None
    write_text_file: WriteCallback | None
    terminals: Terminals | None
    ask_user: AskUserCallback | None
    extensions: Mapping[str, ExtensionCallback] | None
    on_notification: NotificationCallback | None
    on_event: EventCallback | None
    on_noise: Callable[[str], None] | None
    on_trouble: Callable[[str], None] | None
    on_stderr: Callable[[bytes], None] | None
    info: Implementation | None
    protocol: int | None
    dialect: str | None
    timeouts: Timeouts | None
    start_timeout: float
    trace: Trace | None
    patience: Timeouts | None


class ConnectSettings(FolderlessSettings, total=False):
    """The keyword parameters of `dragoman.connect`; each may be left out."""

    cwd: str | None
