"""The settings of the service; see docs/settings.md."""

import json

DEFAULTS = {
    "http": {"port": 80, "host": "localhost", "keep_alive": True},
    "access": {"admins": [], "rate": 1.5},
}
PREFIX = "SERVICE_"
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class SettingsError(Exception):
    """Settings that cannot be used."""


def load(path, environment=None):
    """Return the settings of a file, over the defaults; variables of the environment come before both."""
    with open(path) as file:
        given = json.load(file)
    found = {section: {**values, **given.get(section, {})} for section, values in DEFAULTS.items()}
    for name, text in (environment or {}).items():
        if name.startswith(PREFIX):
            section, _, setting = name[len(PREFIX) :].lower().partition("_")
            if setting not in DEFAULTS.get(section, {}):
                raise SettingsError(f"{name}: there is no such setting")
            found[section][setting] = _value(name, text, DEFAULTS[section][setting])
    return found


def _value(name, text, default):
    try:
        if isinstance(default, bool):
            return BOOLEANS[text.lower()]
        if isinstance(default, list):
            return [item.strip() for item in text.split(",")] if text.strip() else []
        return type(default)(text)
    except (KeyError, ValueError):
        raise SettingsError(f"{name}: {text!r} is no {type(default).__name__}") from None
