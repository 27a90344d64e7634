"""The settings of the service; see docs/settings.md."""

import json

DEFAULTS = {
    "http": {"port": 80, "host": "localhost", "keep_alive": True},
    "access": {"admins": [], "rate": 1.5},
}


class SettingsError(Exception):
    """Settings that cannot be used."""


def load(path):
    """Return the settings of a file, over the defaults."""
    with open(path) as file:
        given = json.load(file)
    return {section: {**values, **given.get(section, {})} for section, values in DEFAULTS.items()}
