"""Change `config.toml` as its owner would: what else stands there, comments too, stays as it is.

What could not be read as settings afterwards is not written.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import limits
from dragoman.cli.errors import CommandError
from dragoman.cli.settings import SettingsError, check_settings
from dragoman.host.private_file import write_private
from dragoman.host.regular_file import read_regular


class ConfigFile:
    """The file, read once and written once."""

    def __init__(self, path: str) -> None:
        """Read it. Raise `CommandError` if it cannot be read, or if what changes it is not installed."""
        self._path = path
        tomlkit = _library()
        try:
            content = read_regular(path, limits.CONFIG_BYTES + 1)
        except FileNotFoundError:
            content = b""
        except OSError as error:
            raise CommandError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
        check_settings(content, path)
        self._document = tomlkit.parse(content.decode())

    def set(self, keys: Sequence[str], value: object) -> None:
        """Set a value; the tables on the way are made."""
        tomlkit = _library()
        table: Any = self._document
        for key in keys[:-1]:
            if key not in table:
                table[key] = tomlkit.table(is_super_table=key == keys[0] and len(keys) > 2)
            table = table[key]
        table[keys[-1]] = value

    def remove(self, keys: Sequence[str]) -> bool:
        """Remove a value or a table. False: there was none."""
        table: Any = self._document
        for key in keys[:-1]:
            table = table.get(key, {})
        if keys[-1] not in table:
            return False
        del table[keys[-1]]
        if not table and len(keys) > 1:
            self.remove(keys[:-1])
        return True

    def save(self) -> None:
        """Write the file. Raise `CommandError` if it would not be one that can be read, or cannot be written."""
        content = _library().dumps(self._document).encode()
        try:
            check_settings(content, self._path)
            write_private(Path(os.path.realpath(self._path)), content)
        except SettingsError as error:
            raise CommandError(f"nothing was changed: {error}") from None
        except OSError as error:
            raise CommandError(f"{self._path}: {(error.strerror or 'cannot be written').lower()}") from None


def _library() -> Any:
    try:
        import tomlkit
    except ModuleNotFoundError:
        from dragoman.errors import how_to_install

        raise CommandError(f"this needs tomlkit, which is not installed: {how_to_install('agent')}") from None
    return tomlkit
