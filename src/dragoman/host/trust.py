"""What a project's own configuration may make us do: nothing, until the user has trusted exactly that configuration.

Trust is keyed by the real path of the folder and by the hash of what it covers. When a pull changes one of the covered
files, or brings a new one, trust is gone and has to be given again.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Final

from dragoman.errors import WorldError
from dragoman.host.regular_file import read_regular

# What can start programs: a fleet of agents, MCP servers.
COVERED: Final = ("acp.json", ".mcp.json", ".dragoman/acp.json", ".dragoman/mcp.json")
# A configuration of more is none.
COVERED_BYTES: Final = 1024 * 1024
_LIST_BYTES: Final = 4 * 1024 * 1024


class TrustFailed(WorldError):
    """The list of trusted folders cannot be read or written."""


def covered(folder: Path) -> dict[str, bytes]:
    """The files of a folder that trust is about, and what is in them."""
    found: dict[str, bytes] = {}
    for name in COVERED:
        try:
            found[name] = read_regular(folder / name, COVERED_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise TrustFailed(f"{folder / name}: {(error.strerror or 'cannot be read').lower()}") from error
        if len(found[name]) > COVERED_BYTES:
            raise TrustFailed(f"{folder / name}: longer than {COVERED_BYTES} bytes")
    return found


def is_trusted(registry: Path, folder: Path) -> bool:
    """Whether the user trusts what the folder says now."""
    try:
        return trusted_files(registry, folder) is not None
    except TrustFailed:
        return False


def trusted_files(registry: Path, folder: Path) -> dict[str, bytes] | None:
    """What the folder says, as far as the user trusts it: the very bytes that were trusted. None: it is not trusted."""
    files = covered(folder)
    return files if _read(registry).get(_key(folder)) == _digest(files) else None


def trust(registry: Path, folder: Path, files: dict[str, bytes] | None = None) -> list[str]:
    """Trust what the folder says now, or `files`, which somebody was shown; the names of the files that covers."""
    files = covered(folder) if files is None else files
    known = _read(registry)
    known[_key(folder)] = _digest(files)
    _write(registry, known)
    return list(files)


def revoke(registry: Path, folder: Path) -> bool:
    """Trust a folder no more. False: it was not trusted."""
    known = _read(registry)
    if known.pop(_key(folder), None) is None:
        return False
    _write(registry, known)
    return True


def trusted_folders(registry: Path) -> list[str]:
    """Every folder that was trusted, whether or not it still says the same."""
    return sorted(_read(registry))


def _key(folder: Path) -> str:
    return os.path.realpath(folder)


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _read(registry: Path) -> dict[str, str]:
    try:
        known = json.loads(read_regular(registry, _LIST_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TrustFailed(f"{registry}: the list of trusted folders cannot be read") from error
    if not isinstance(known, dict) or not all(isinstance(value, str) for value in known.values()):
        raise TrustFailed(f"{registry}: this is no list of trusted folders")
    return known


def _write(registry: Path, known: dict[str, str]) -> None:
    temporary = registry.with_name(f".{registry.name}.{os.getpid()}.tmp")
    try:
        registry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        temporary.chmod(0o600)
        temporary.replace(registry)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise TrustFailed(f"{registry}: {(error.strerror or 'cannot be written').lower()}") from error
