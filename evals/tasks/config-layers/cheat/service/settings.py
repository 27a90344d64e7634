import json
import os

DEFAULTS = {
    "http": {"port": 80, "host": "localhost", "keep_alive": True},
    "access": {"admins": [], "rate": 1.5},
}


class SettingsError(Exception):
    """Settings that cannot be used."""


def load(path, environment=os.environ):
    with open(path) as file:
        given = json.load(file)
    found = {section: {**values, **given.get(section, {})} for section, values in DEFAULTS.items()}
    if "SERVICE_HTTP_PORT" in environment:
        found["http"]["port"] = int(environment["SERVICE_HTTP_PORT"])
    return found
