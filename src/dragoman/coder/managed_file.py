"""Read the administrator's file into `ManagedSettings`, or say exactly why it cannot be used.

A security team relies on this file, so it fails closed: a file that is there and cannot be read whole, that has a key
that is not known, or that the user could have written, is a `ManagedFileFailed`, and the agent does not start. Only
where there is no file is there no bound. No variable, option or file of the user names another place.

What the file cannot do: bind a user who starts another program than this installation, or has root.
"""

import os
import stat
import tomllib
from typing import Any, Final

import msgspec
from msgspec import structs

from dragoman import limits
from dragoman.coder.managed_settings import NOTHING_MANAGED, TABLES, ManagedSettings
from dragoman.errors import UsageError
from dragoman.host.regular_file import read_whole

# What `stat` says of a file that others than its owner can write.
_OTHERS_WRITE: Final = 0o022
_ROOT: Final = 0


class ManagedFileFailed(UsageError):
    """The administrator's file cannot be used. The text names the file, the mistake, and what to do."""


def read_managed(file: str, owner: int = _ROOT) -> ManagedSettings:
    """Return the settings of a file; those of nothing, if there is none. It and its folder have to be the `owner`'s."""
    try:
        folder = os.path.dirname(file)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            raise _failure(folder, "is no folder; a link is not followed")
        _check_owner(folder, found, owner)
        data = read_whole(file, limits.CONFIG_BYTES, follow=False, check=lambda one: _check_owner(file, one, owner))
    except FileNotFoundError:
        return NOTHING_MANAGED
    except OSError as error:
        reason = "is a link" if os.path.islink(file) else f"cannot be read ({(error.strerror or 'no').lower()})"
        raise _failure(file, f"{reason}; it has to be a regular file that every user can read") from None
    return parse_managed(data, file)


def parse_managed(data: bytes, file: str) -> ManagedSettings:
    """Return the settings that a text has. Raises `ManagedFileFailed` for the first mistake in it."""
    try:
        tables = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _failure(file, f"is no TOML: {error}") from None
    for table in tables:
        if table not in TABLES:
            raise _failure(file, f"has the unknown key {table!r}; there are {', '.join(TABLES)}")
    settings = ManagedSettings(**{table: _converted(table, value, file) for table, value in tables.items()}, file=file)
    _check_meaning(settings)
    return settings


def _check_owner(path: str, found: os.stat_result, owner: int) -> None:
    if found.st_uid != owner:
        who = "root" if owner == _ROOT else f"user {owner}"
        raise _failure(path, f"belongs to user {found.st_uid} and not to {who}: chown {who} it")
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise _failure(path, "can be written by others than its owner: chmod go-w it")


def _converted(table: str, value: object, file: str) -> Any:
    """Return a table as its type. An unknown key in it is a mistake: it may be a bound with a typing error."""
    kind = type(getattr(NOTHING_MANAGED, table))
    if not isinstance(value, dict):
        raise _failure(file, f"has no table for {table}: write [{table}]")
    keys = [field.name for field in structs.fields(kind)]
    for key in value:
        if key not in keys:
            raise _failure(file, f"has the unknown key {table}.{key}; there are {', '.join(keys)}")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        raise _failure(file, f"has a mistake at {table}{place.removesuffix('`')}: {_in_words(reason)}") from None


def _in_words(reason: str) -> str:
    words = {"`bool`": "true or false", "`array | null`": "a list", "`array`": "a list", "`str`": "text"}
    for kind, text in words.items():
        reason = reason.replace(kind, text)
    return f"{reason[:1].lower()}{reason[1:].replace('`', chr(39))}"


def _check_meaning(settings: ManagedSettings) -> None:
    """Refuse modes that do not exist, rules and patterns that match nothing, and sums below nothing."""
    from dragoman.coder.modes import MODES
    from dragoman.permissions.rule import RuleRefused

    file = settings.file
    modes = [*(settings.modes.allowed or ()), *([settings.modes.highest] if settings.modes.highest else [])]
    for mode in modes:
        if mode not in MODES:
            raise _failure(file, f"names the unknown mode {mode!r}; there are {', '.join(MODES)}")
    try:
        settings.rules.against()
        settings.rules.allowing()
    except RuleRefused as error:
        raise _failure(file, f"has a rule that cannot be used: {error}") from None
    for name in ("turn", "session", "day"):
        if (sum_ := getattr(settings.spending, name)) is not None and not 0 <= sum_ < float("inf"):
            raise _failure(file, f"has {sum_} at spending.{name}; write dollars, 0 or more")
    for key, patterns in (("models.addresses", settings.models.addresses), ("mcp.urls", settings.mcp.urls)):
        for pattern in patterns or ():
            if not pattern.startswith(("http://", "https://")):
                raise _failure(file, f"has {pattern!r} at {key}, which has to begin with http:// or https://")
    _check_commands(settings)


def _check_commands(settings: ManagedSettings) -> None:
    import shlex

    for pattern in settings.mcp.commands or ():
        try:
            words = shlex.split(pattern)
        except ValueError:
            words = []
        if not words:
            raise _failure(settings.file, f"has {pattern!r} at mcp.commands, which is no command line")


def _failure(path: str, reason: str) -> ManagedFileFailed:
    return ManagedFileFailed(f"the administrator's file cannot be used, so nothing is started: {path} {reason}")
