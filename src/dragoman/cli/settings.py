"""What the user has set: the command line, then `DRAGOMAN_KEY` in the environment, then `config.toml`, then ours."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman import limits
from dragoman.cli.errors import CommandError
from dragoman.cli.home import own_path
from dragoman.host.regular_file import read_regular


class SettingsError(CommandError):
    """A setting that cannot be used; the text says where and why."""


class Key(NamedTuple):
    """A setting: its type in the file, what it is without being set, and what it is for."""

    kind: type
    default: object
    about: str


KEYS: Final[dict[str, Key]] = {
    "model": Key(str, "", "model to use: provider/name, demo; empty: what there is a key for"),
    "fallback_models": Key(
        list, (), "models that answer while the chosen one is limited, overloaded or away: the first that can be used"
    ),
    "fallback_after": Key(int, 30, "seconds to wait for a busy provider before one of them answers"),
    "retry_seconds": Key(int, 300, "seconds that a model call waits in all for a busy provider; 0: it does not wait"),
    "list_models": Key(bool, True, "ask providers which models they have, once a day, for the lists to choose from"),
    "mode": Key(str, "ask", "what the agent may do without asking"),
    "max_turn_requests": Key(int, 100, "model calls in one turn"),
    "compact_above": Key(
        int, 80, "percent of the model's window above which the conversation is summed up; 0: only when it is too long"
    ),
    "diagnostics": Key(bool, True, "new errors that language servers see are told to the model, in trusted folders"),
    "audit_content": Key(bool, False, "the decision log has commands, paths and the words of rules too"),
    "thought_level": Key(str, "", "level of thought (reasoning effort), for models that have one"),
    "notify": Key(
        str,
        "bell terminal desktop",
        "how chat and run call you back: bell, terminal (OSC 9), desktop (notify-send), or off",
    ),
    "theme": Key(str, "dark", "colours of chat: dark, light, contrast or none"),
    "plain": Key(
        bool, False, "chat draws no boxes and nothing that moves or stands below the input: for screen readers"
    ),
    "notify_after": Key(int, 10, "seconds without an answer or a prompt of yours before they do"),
    "record_sessions": Key(bool, True, "keep a copy of the sessions of other agents, to show and to hand on"),
    "record_days": Key(int, 90, "days after their last use for which such copies are kept"),
    "worktrees": Key(str, "", "folder for the git worktrees of sessions; empty: REPOSITORY.worktrees, beside it"),
    "sandbox_memory": Key(
        str, "", "memory of a confined command, e.g. 4GiB, or unlimited; empty: half of the machine's, at least 2GiB"
    ),
    "sandbox_processes": Key(int, 0, "processes and threads of a confined command; 0: 64 for each core, at least 1024"),
    "oidc.issuer": Key(str, "", "`serve`: who people log in with beside tokens, an OpenID issuer; empty: tokens alone"),
    "oidc.client_id": Key(str, "", "what the server is called there"),
    "oidc.client_secret_file": Key(str, "", "a file with its secret; empty: it is a public client"),
    "oidc.audience": Key(list, (), "of tokens that programs send; none: the client's ID"),
    "oidc.principal_claim": Key(str, "sub", "the claim that names a person's principal"),
    "oidc.scope_claim": Key(str, "groups", "the claim that `scopes` is about"),
    "oidc.scopes": Key(list, (), 'who has which scopes by it: ["developers=read,prompt"]'),
    "oidc.default_scopes": Key(str, "read", "the scopes of everyone else there; none: no login"),
    "oidc.request": Key(str, "openid profile email", "what a login asks the issuer for"),
    "oidc.ca_file": Key(str, "", "the authorities that the issuer is believed by; empty: those of this machine"),
    "limits.sessions": Key(int, 0, "`serve`: sessions that a principal may have open at once; 0: as many as it likes"),
    "limits.turns": Key(int, 0, "turns of a principal that may run at once; 0: as many as it likes"),
    "limits.processes": Key(int, 0, "agents of a principal that may run at once, as processes; 0: as many as it likes"),
    "limits.tasks": Key(int, 0, "processes and threads of its agents and all they start; 0: as many as there are"),
    "limits.memory": Key(str, "", "memory of its agents and all they start, e.g. 2GiB; empty: as much as there is"),
    "limits.spend": Key(float, None, "dollars that a principal may spend on a day, as far as its agents report costs"),
    "spend.turn": Key(float, None, "dollars that one turn may cost; no model call is made beyond that"),
    "spend.session": Key(float, None, "dollars that a session may cost, over all its turns"),
    "spend.day": Key(float, None, "dollars that all sessions of a day may cost together"),
}
# Tables in the file whose keys are settings: `[spend] turn` is `spend.turn`, and `DRAGOMAN_SPEND_TURN`.
_GROUPS: Final = ("limits", "oidc", "spend")
# Tables, whose content others read.
TABLES: Final = ("providers", "mcp", "language_servers", "principals")


class Setting(NamedTuple):
    """A value, and where it comes from."""

    value: object
    source: str


class Settings(NamedTuple):
    """All settings, the tables of `config.toml`, and the path of that file."""

    keys: dict[str, Setting]
    tables: dict[str, dict[str, Any]]
    file: str

    def text(self, key: str) -> str:
        """Return a setting that is text."""
        return str(self.keys[key].value)

    def flag(self, key: str) -> bool:
        """Return a setting that is true or false."""
        return self.keys[key].value is True

    def texts(self, key: str) -> Sequence[str]:
        """Return a setting that is a list of texts."""
        value = self.keys[key].value
        assert isinstance(value, tuple)
        return value

    def dollars(self, key: str) -> float | None:
        """Return a setting that is an amount of dollars; None: it is not set."""
        value = self.keys[key].value
        return value if isinstance(value, float) else None

    def number(self, key: str) -> int:
        """Return a setting that is a number."""
        value = self.keys[key].value
        assert isinstance(value, int)
        return value


def read_settings(environment: Mapping[str, str] | None = None, file: str | None = None) -> Settings:
    """Read them; `SettingsError` names the place of the first mistake."""
    environment = os.environ if environment is None else environment
    file = file or own_path("config.toml")
    return _settings(_read(file), environment, file)


def check_settings(content: bytes, file: str) -> None:
    """Raise `SettingsError` if a file with this content could not be read as settings."""
    from dragoman.coder.mcp.config import read_servers
    from dragoman.errors import UsageError

    settings = _settings(_parsed(content, file), {}, file)
    try:
        read_servers(settings.tables["mcp"])
    except UsageError as error:
        raise SettingsError(f"{file}: {error}") from None


def _settings(parsed: dict[str, Any], environment: Mapping[str, str], file: str) -> Settings:
    written = _grouped(parsed, file)
    for name in written:
        if name not in KEYS and name not in TABLES:
            raise SettingsError(f"{file}: unknown key {name!r}; there are {', '.join([*KEYS, *TABLES])}")
    keys = {name: _setting(name, key, written, environment, file) for name, key in KEYS.items()}
    return Settings(keys, {name: _table(name, written, file) for name in TABLES}, file)


def _setting(name: str, key: Key, written: Mapping[str, Any], environment: Mapping[str, str], file: str) -> Setting:
    variable = f"DRAGOMAN_{name.upper().replace('.', '_')}"
    if environment.get(variable):
        return Setting(_converted(environment[variable], key, variable), variable)
    if name not in written:
        return Setting(key.default, "default")
    value = written[name]
    if key.kind is float:
        return Setting(_dollars(value, f"{file}: {name}"), file)
    is_right = _is_list_of_texts(value) if key.kind is list else type(value) is key.kind
    if not is_right:
        raise SettingsError(f"{file}: {name} must be {_NAMES[key.kind]}")
    return Setting(tuple(value) if key.kind is list else value, file)


_NAMES: Final = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list of texts",
    float: "dollars, 0 or more",
}


def _grouped(written: dict[str, Any], file: str) -> dict[str, Any]:
    """Return what is written with the keys of groups under their whole names."""
    flat = {name: value for name, value in written.items() if name not in _GROUPS}
    for group in _GROUPS:
        table = written.get(group, {})
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: [{group}] must be a table")
        flat |= {f"{group}.{name}": value for name, value in table.items()}
    return flat


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _dollars(value: object, place: str) -> float:
    """Return an amount; raise `SettingsError` for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise SettingsError(f"{place} must be {_NAMES[float]}")
    return float(value)


def converted(text: str, name: str) -> object:
    """Return the value of a setting that was typed; raise `SettingsError` if it has another type."""
    value = _converted(text, KEYS[name], name)
    return list(value) if isinstance(value, tuple) else value


def _converted(text: str, key: Key, variable: str) -> object:
    if key.kind is str:
        return text
    if key.kind is list:
        return tuple(text.replace(",", " ").split())
    if key.kind is float:
        try:
            return _dollars(float(text), variable)
        except ValueError:
            raise SettingsError(f"{variable} must be {_NAMES[float]}") from None
    if key.kind is bool and text in ("true", "false"):
        return text == "true"
    if key.kind is bool:
        raise SettingsError(f"{variable} must be {_NAMES[key.kind]}")
    if not text.isascii() or not text.isdigit():
        raise SettingsError(f"{variable} must be {_NAMES[key.kind]}")
    return int(text)


def _table(name: str, written: Mapping[str, Any], file: str) -> dict[str, Any]:
    table = written.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise SettingsError(f"{file}: [{name}.NAME] must be a table")
    return table


def _read(file: str) -> dict[str, Any]:
    try:
        data = read_regular(file, limits.CONFIG_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from error
    return _parsed(data, file)


def _parsed(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > limits.CONFIG_BYTES:
        raise SettingsError(f"{file}: longer than {limits.CONFIG_BYTES} bytes")
    import tomllib  # most people have no such file

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
