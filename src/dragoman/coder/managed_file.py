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
    """Return the settings of a file; those of nothing, if there is none.

    It has to be the `owner`'s, all folders above it the owner's or root's, and none of them may be written by others:
    in a folder that a user can write, any file can be put in the place of this one. Raises `ManagedFileFailed`. Blocks.
    """
    try:
        _check_folders(os.path.dirname(file), owner)
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


def _check_folders(folder: str, owner: int) -> None:
    """Check a folder and all above it, from the top. Others may make names of their own in one with the sticky bit."""
    above = os.path.dirname(folder)
    if above != folder:
        _check_folders(above, owner)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise _failure(folder, "is no folder; a link is not followed")
    if found.st_mode & stat.S_ISVTX and found.st_uid in (owner, _ROOT):
        return
    _check_owner(folder, found, _ROOT if found.st_uid == _ROOT else owner)


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
    """Refuse modes that do not exist, rules and patterns that match nothing, hooks that would not run, sums below
    nothing."""
    from dragoman.permissions.rule import RuleRefused

    file = settings.file
    _check_modes(settings)
    try:
        settings.rules.against()
        settings.rules.allowing()
    except RuleRefused as error:
        raise _failure(file, f"has a rule that cannot be used: {error}") from None
    for name in ("turn", "session", "day"):
        if (sum_ := getattr(settings.spending, name)) is not None and not 0 <= sum_ < float("inf"):
            raise _failure(file, f"has {sum_} at spending.{name}; write dollars, 0 or more")
    addresses = {
        "models.addresses": settings.models.addresses,
        "mcp.urls": settings.mcp.urls,
        "mcp.denied_urls": settings.mcp.denied_urls,
        **{f"models.base_urls.{name}": (url,) for name, url in settings.models.base_urls.items()},
    }
    for key, patterns in addresses.items():
        for pattern in patterns or ():
            if not pattern.startswith(("http://", "https://")):
                raise _failure(file, f"has {pattern!r} at {key}, which has to begin with http:// or https://")
    for name, url in settings.models.base_urls.items():
        if not settings.models.allows_address(url):
            raise _failure(file, f"has {url!r} at models.base_urls.{name}, which models.addresses does not allow")
    _check_commands(settings)
    _check_hooks(settings)


def _check_modes(settings: ManagedSettings) -> None:
    from dragoman.coder.modes import MODES

    modes = settings.modes
    for mode in [*(modes.allowed or ()), *(name for name in (modes.highest, modes.default) if name)]:
        if mode not in MODES:
            raise _failure(settings.file, f"names the unknown mode {mode!r}; there are {', '.join(MODES)}")
    if modes.default and not modes.permits(modes.default):
        raise _failure(settings.file, f"has {modes.default!r} at modes.default, which it does not allow")


def _check_hooks(settings: ManagedSettings) -> None:
    """Refuse hooks that are not understood: one that forbids something must not be passed over."""
    if settings.hooks.managed:
        from dragoman.coder.hook_files import EVENTS, read_hooks

        for event in settings.hooks.managed:
            if event not in EVENTS:
                names = ", ".join(EVENTS)
                raise _failure(settings.file, f"has the unknown key hooks.managed.{event}; there are {names}")
        for mistake in read_hooks(settings.hooks.managed, "hooks.managed", "managed").mistakes:
            raise _failure(settings.file, f"has a hook that would not run: {mistake}")


def _check_commands(settings: ManagedSettings) -> None:
    import shlex

    lines = {
        "mcp.commands": settings.mcp.commands,
        "mcp.denied_commands": settings.mcp.denied_commands,
        "language_servers.commands": settings.language_servers.commands,
    }
    for key, patterns in lines.items():
        for pattern in patterns or ():
            try:
                words = shlex.split(pattern)
            except ValueError:
                words = []
            if not words:
                raise _failure(settings.file, f"has {pattern!r} at {key}, which is no command line")


def _failure(path: str, reason: str) -> ManagedFileFailed:
    return ManagedFileFailed(f"the administrator's file cannot be used, so nothing is started: {path} {reason}")
