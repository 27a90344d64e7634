"""The MCP servers that a project brings along in `.mcp.json`: none of them before the user has trusted exactly that.

A file that does not count says so: whoever wrote it waits for its servers.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.cli.home import home_folder
from dragoman.cli.plain import harmless_line
from dragoman.errors import UsageError
from dragoman.vocabulary.requests import McpServer

NAME: Final = ".mcp.json"


class OfProject(NamedTuple):
    """Its servers, and why there are none though there is a file."""

    servers: list[McpServer]
    remark: str = ""


def of_project(folder: str, environment: Mapping[str, str]) -> OfProject:
    """What counts of a folder's file."""
    from dragoman.coder.mcp import from_config
    from dragoman.host.trust import TrustFailed, covered, trusted_files

    try:
        tables_of(covered(Path(folder)).get(NAME, b"{}"))  # what nobody can read, nobody need trust first
        files = trusted_files(Path(home_folder(), "trust.json"), Path(folder))
        if files is None:
            return OfProject([], f"{NAME} is not used: nobody has trusted it here; dragoman trust {_shown(folder)}")
        return OfProject(from_config(tables_of(files[NAME]), environment) if NAME in files else [])
    except TrustFailed as error:
        return OfProject([], f"{NAME} is not used: {harmless_line(str(error))}")
    except UsageError as error:
        return OfProject([], f"{harmless_line(str(error)).rstrip('.')}; {NAME} is not used")


def tables_of(data: bytes) -> dict[str, object]:
    """The `mcpServers` of such a file; `UsageError` says what is wrong with it."""
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise UsageError(f"{NAME}, line {error.lineno}: this is not JSON") from None
    except (UnicodeDecodeError, RecursionError):
        raise UsageError(f"{NAME}: this is not JSON") from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise UsageError(f"{NAME}: its servers have to stand in an object mcpServers")
    return servers


def _shown(folder: str) -> str:
    import shlex

    return harmless_line(shlex.quote(folder))
