"""`acp.json`, changed: an agent put in or taken out, and nothing lost that we do not know."""

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
    """Put an agent into a file, or change the one that has its name. Everything else stays. True: it was there."""
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
    """An entry with what is new about it. What is started here has no address any more, and the other way round."""
    gone = OF_COMMANDS if "url" in entry else ("url", *OF_ADDRESSES)
    return {key: value for key, value in before.items() if key not in gone} | entry


def remove_entry(path: Path, name: str) -> bool:
    """Take an agent out of a file. False: it is not in it."""
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
    """A file as it is written. One that we cannot read is not written over."""
    data = file_bytes(path)
    if data is None:
        return {}
    read_file(RegistryFileFound(path, data))
    return cast(dict[str, Any], json.loads(data.decode("utf-8-sig")))


def _replace(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all."""
    path = path.resolve()  # the file that a link leads to, not the link
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        write_private(path, text.encode())  # `env` may hold keys
    except OSError as error:
        raise RegistryFileInvalid(f"{path}: {(error.strerror or 'cannot be written').lower()}") from error
