"""What a command line says of a token's limits and of its end, checked. `UsageError` says what is wrong."""

import argparse
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from dragoman.cli.errors import CommandError
from dragoman.errors import UsageError
from dragoman.gateway.token_store import is_text
from dragoman.gateway.token_types import TokenLimits

_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII)
# A token that is meant to last longer than this is meant to last for ever.
_LONGEST_DAYS: Final = 36_500


def checked_limits(
    max_mode: str | None,
    workspaces: Sequence[str],
    *,
    allow_unconfined: bool = False,
    allow_mcp_programs: bool = False,
) -> TokenLimits:
    """Return a token's limits, checked; folders have to be there, and are kept by where they lead."""
    from dragoman.coder.modes import MODES

    # Empty is what a variable of a shell is that was not set: it must not lift a limit.
    if max_mode is not None and max_mode not in MODES:
        raise UsageError(f"unknown mode {max_mode!r}; there are {', '.join(MODES)}")
    roots = []
    for folder in workspaces:
        real = os.path.realpath(os.path.expanduser(folder))
        if not is_text(real):
            raise UsageError("--workspace: the name of this folder is not UTF-8; rename it")
        if not folder or not os.path.isdir(real):
            raise UsageError(f"--workspace {folder}: there is no such folder")
        roots.append(real)
    return TokenLimits(max_mode or "", tuple(dict.fromkeys(roots)), allow_unconfined, allow_mcp_programs)


def expiry_of(text: str | None, now: float) -> float:
    """Return when a token ends, in seconds since 1970: `30d`, `12h`, `2027-01-31`, `2027-01-31T18:00Z`; 0: never."""
    if text is None:
        return 0
    span = _SPAN.fullmatch(text)
    if span is not None:
        end = now + int(span[1]) * _UNITS[span[2]]
    else:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f"--expires {text}: write 30d, 12h, or a date as 2027-01-31") from None
        end = (when if when.tzinfo else when.astimezone()).timestamp()
    if not now < end <= now + _LONGEST_DAYS * _UNITS["d"]:
        raise UsageError(f"--expires {text}: that is not in the next hundred years")
    return round(end)


def written_time(seconds: float) -> str | None:
    """Write a time of seconds since 1970 for people and programs; None: there is none."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None


def server_limits(arguments: argparse.Namespace) -> TokenLimits:
    """Return what no token of a server may exceed, from the command line of `dragoman serve`."""
    if arguments.agent and arguments.max_mode:
        raise CommandError("--max-mode is for our own agent; other agents have modes of their own")
    return checked_limits(arguments.max_mode, arguments.workspace)
