"""Options of `dragoman serve` for what each principal may use. `[limits]` of `config.toml` has the same, the command
line wins; `[principals.NAME]` there has what holds for one principal in place of that."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.common_options import dollars
from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.gateway.principal_limits import LimitTable, PrincipalLimits

_COUNTS: Final = ("sessions", "turns", "processes", "tasks")
# With fewer our own agent cannot run a command and a server beside it: threads count.
_LEAST_TASKS: Final = 64


def add_principal_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("for each principal; or [limits] in config.toml")
    group.add_argument("--principal-sessions", metavar="N", type=_count, help="sessions it may have open at once")
    group.add_argument("--principal-turns", metavar="N", type=_count, help="turns of it that may run at once")
    group.add_argument("--principal-processes", metavar="N", type=_count, help="agents of it that may run at once")
    group.add_argument(
        "--principal-tasks",
        metavar="N",
        type=_count,
        help="processes and threads of its agents and all they start, for our own agent",
    )
    group.add_argument(
        "--principal-memory",
        metavar="SIZE",
        help="memory of the same, e.g. 2GiB",
    )
    group.add_argument(
        "--principal-spend", metavar="DOLLARS", type=dollars, help="what it may spend on a day, as its agents report it"
    )


def limit_table(arguments: argparse.Namespace) -> "LimitTable":
    """Return what principals may use. Raise `CommandError` for what is wrong."""
    from dragoman.cli.settings import read_settings
    from dragoman.gateway.principal_limits import LimitTable

    settings = read_settings()
    every: dict[str, Any] = {name: settings.number(f"limits.{name}") for name in _COUNTS}
    every |= {"memory": settings.text("limits.memory"), "spend": settings.dollars("limits.spend")}
    for name in every:
        given = getattr(arguments, f"principal_{name}")
        if given is not None:
            every[name] = given
    named = {
        principal: _limits({**every, **table}, f"{settings.file}: [principals.{principal}]")
        for principal, table in settings.tables["principals"].items()
    }
    return LimitTable(_limits(every, "limits"), named)


def _limits(values: Mapping[str, Any], place: str) -> "PrincipalLimits":
    """Return limits as they were written, or typed."""
    from dragoman.gateway.principal_limits import PrincipalLimits
    from dragoman.host.resources import read_size

    for name, value in values.items():
        if name not in (*_COUNTS, "memory", "spend"):
            raise CommandError(f"{place}: unknown key {name!r}; there are {', '.join((*_COUNTS, 'memory', 'spend'))}")
        if name in _COUNTS and (type(value) is not int or value < 0):
            raise CommandError(f"{place}: {name} must be a whole number, 0 for no limit")
    if 0 < values["tasks"] < _LEAST_TASKS:
        raise CommandError(f"{place}: tasks must be at least {_LEAST_TASKS}, because threads count; or 0 for no limit")
    spend = values["spend"]
    if spend is not None and (type(spend) not in (int, float) or not 0 <= spend < float("inf")):
        raise CommandError(f"{place}: spend must be dollars, 0 or more")
    try:
        memory = read_size(str(values["memory"])) if values["memory"] else 0
    except ValueError as error:
        raise CommandError(f"{place}: memory {error}") from None
    return PrincipalLimits(
        **{name: values[name] for name in _COUNTS}, memory=memory, spend=None if spend is None else float(spend)
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise argparse.ArgumentTypeError("a whole number; 0 for no limit")
    return int(text)
