"""Changes `acp.json`: adds or removes an agent, and keeps everything in it that we do not know."""

import json
from pathlib import Path
from typing import Any, cast

from dragoman.client.registry_file import (
    OF_ADDRESSES,
    OF_COMMANDS,
    RegistryFileFound,
    RegistryFileInvalid,
    file_bytes,
    read_file,
)
from dragoman.host.private_file import write_private


def add_entry(path: Path, name: str, entry: dict[str, object]) -> bool:
    """Add an agent to a file, or change the one of that name. Everything else stays. Return whether it was there."""
    document = _document(path)
    servers = document.setdefault("servers", {})
    if isinstance(servers, list):
        at = next((at for at, one in enumerate(servers) if one.get("name") == name), len(servers))
        known = at < len(servers)
        servers[at : at + 1] = [_changed(servers[at] if known else {"name": name}, entry)]
    else:
        known = name in servers
        servers[name] = _changed(servers.get(name, {}), entry)
    _replace(path, document)
    return known


def _changed(before: dict[str, Any], entry: dict[str, object]) -> dict[str, Any]:
    """Return an entry with its new values. A command removes the address, and the other way round."""
    gone = OF_COMMANDS if "url" in entry else ("url", *OF_ADDRESSES)
    return {key: value for key, value in before.items() if key not in gone} | entry


def remove_entry(path: Path, name: str) -> bool:
    """Remove an agent from a file. Return whether it was there."""
    document = _document(path)
    servers = document.get("servers", {})
    if isinstance(servers, list):
        kept = [one for one in servers if one.get("name") != name]
        gone = len(kept) < len(servers)
        document["servers"] = kept
        if not kept:
            del document["servers"]  # an empty list is remarked upon when it is read
    else:
        gone = servers.pop(name, None) is not None
    if gone:
        if document.get("defaultServer") == name:
            del document["defaultServer"]
        _replace(path, document)
    return gone


def _document(path: Path) -> dict[str, Any]:
    """Return a file as it is written. Raise `RegistryFileInvalid` for one that cannot be read, and so not changed."""
    data = file_bytes(path)
    if data is None:
        return {}
    read_file(RegistryFileFound(path, data))
    return cast(dict[str, Any], json.loads(data.decode("utf-8-sig")))


def _replace(path: Path, document: dict[str, Any]) -> None:
    """Write the file, whole or not at all. Raise `RegistryFileInvalid` if that fails."""
    path = path.resolve()  # the file that a link leads to, not the link
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        write_private(path, text.encode())  # `env` may hold keys
    except OSError as error:
        raise RegistryFileInvalid(f"{path}: {(error.strerror or 'cannot be written').lower()}") from error
