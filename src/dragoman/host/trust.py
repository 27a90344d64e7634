"""What a project's own configuration may make us do: nothing, until the user has trusted exactly that configuration.

Trust is keyed by the real path of the folder and by the hash of what it covers: the configuration, hooks, what of
commands and skills does more than tell something (`trusted_parts`), and the files of the folder that configuration
and hooks start (`scripts`). When a pull changes one of them, or brings a new one, trust is gone and has to be
given again. Secrets of the user that a configuration names are allowed one by one, and kept with the trust they belong
to.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman import limits
from dragoman.errors import WorldError
from dragoman.host.launch_names import ScriptsRefused
from dragoman.host.private_file import write_private
from dragoman.host.regular_file import read_regular
from dragoman.host.scripts import shown_name, states
from dragoman.host.trusted_parts import covered_parts

# What can start programs: agents (`acp.json`) and MCP servers.
COVERED: Final = ("acp.json", ".mcp.json", ".dragoman/acp.json", ".dragoman/mcp.json")
_LIST_BYTES: Final = 16 * 1024 * 1024


class TrustFailed(WorldError):
    """The list of trusted folders cannot be read or written, or a folder cannot be looked at."""


class Trust(NamedTuple):
    """What the user has agreed to in a folder: the hash of its configuration, the files it starts, secrets by part."""

    digest: str
    # What `scripts.named_files` found: names, and what they led to.
    named: Mapping[str, str] = {}
    # Which part of the configuration (`acp.json claude`) may have which secrets of the user.
    secrets: Mapping[str, Sequence[str]] = {}


class TrustState(NamedTuple):
    """How a folder stands now. Without trust there are no files, and `reason` says why."""

    files: dict[str, bytes] | None
    reason: str = ""
    trust: Trust = Trust("")


def covered(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder that trust is about, and what is in them, or what of it trust is about."""
    found: dict[str, bytes] = {}
    for name in COVERED:
        try:
            found[name] = read_regular(folder / name, limits.CONFIG_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise TrustFailed(f"{folder / name}: {(error.strerror or 'cannot be read').lower()}") from error
        if len(found[name]) > limits.CONFIG_BYTES:
            raise TrustFailed(f"{folder / name}: longer than {limits.CONFIG_BYTES} bytes")
    try:
        return found | covered_parts(os.fspath(folder))
    except OSError as error:
        raise TrustFailed(f"{error.filename or folder}: {(error.strerror or 'cannot be read').lower()}") from error


def is_trusted(registry: Path, folder: Path) -> bool:
    """Return whether the user trusts what the folder says now."""
    try:
        return trusted_files(registry, folder) is not None
    except TrustFailed:
        return False


def trusted_files(registry: Path, folder: Path) -> dict[str, bytes] | None:
    """Return what the folder says, as far as the user trusts it: the very bytes that were trusted.

    None: it is not trusted.
    """
    return trust_state(registry, folder).files


def trust_state(registry: Path, folder: Path) -> TrustState:
    """Return whether the user trusts what the folder says and starts now; if not, why."""
    files = covered(folder)
    given = _read(registry).get(_key(folder))
    if given is None:
        return TrustState(None, "it has not been trusted here")
    if given.digest != _digest(files):
        return TrustState(
            None, "it has changed since it was trusted" if given.digest else "trust has to be given again"
        )
    try:
        now = states(_key(folder), given.named, os.environ)
    except ScriptsRefused as error:
        raise TrustFailed(str(error)) from error
    for name, state in given.named.items():
        if now[name] != state:
            return TrustState(None, f"{shown_name(_key(folder), name)} has changed since it was trusted")
    return TrustState(files, "", given)


def trust(
    registry: Path,
    folder: Path,
    files: dict[str, bytes] | None = None,
    *,
    named: Mapping[str, str] | None = None,
    secrets: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Trust what the folder says now, or `files`, which were shown; the names of the files that covers."""
    files = covered(folder) if files is None else files
    known = _read(registry)
    known[_key(folder)] = Trust(_digest(files), named or {}, secrets or {})
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
    """Return every folder that was trusted, whether or not it still says the same."""
    return sorted(_read(registry))


def started_files(registry: Path) -> list[str]:
    """Return the files that trusted configurations start, wherever they are: as they are named, and where that leads.

    Nothing that runs unasked may write them. A list that cannot be read trusts nothing, so nothing is started.
    """
    try:
        known = _read(registry)
    except TrustFailed:
        return []
    paths = [name for trusted in known.values() for name, state in trusted.named.items() if state and "\0" not in name]
    return list(dict.fromkeys(path for name in paths for path in (os.path.normpath(name), os.path.realpath(name))))


def _key(folder: Path) -> str:
    return os.path.realpath(folder)


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _read(registry: Path) -> dict[str, Trust]:
    try:
        known = json.loads(read_regular(registry, _LIST_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise TrustFailed(f"{registry}: the list of trusted folders cannot be read") from error
    if not isinstance(known, dict):
        raise _no_list(registry)
    return {folder: _entry(registry, value) for folder, value in known.items()}


def _entry(registry: Path, value: Any) -> Trust:
    if isinstance(value, str):
        return Trust("")  # of an earlier release, which looked at less: it was trust in something else
    if not isinstance(value, dict):
        raise _no_list(registry)
    digest, named, secrets = value.get("digest"), value.get("named"), value.get("secrets")
    if not isinstance(digest, str) or not isinstance(named, dict) or not isinstance(secrets, dict):
        raise _no_list(registry)
    if not _are_texts(named.values()) or not all(isinstance(one, list) and _are_texts(one) for one in secrets.values()):
        raise _no_list(registry)
    return Trust(digest, named, secrets)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _no_list(registry: Path) -> TrustFailed:
    return TrustFailed(f"{registry}: this is no list of trusted folders")


def _write(registry: Path, known: Mapping[str, Trust]) -> None:
    text = json.dumps({folder: one._asdict() for folder, one in known.items()}, indent=2, sort_keys=True) + "\n"
    if len(text.encode()) > _LIST_BYTES:
        raise TrustFailed(f"{registry}: the list of trusted folders is full; take some out: dragoman trust --revoke")
    try:
        write_private(registry, text.encode())
    except OSError as error:
        raise TrustFailed(f"{registry}: {(error.strerror or 'cannot be written').lower()}") from error
