"""The MCP servers that a project brings along in `.mcp.json`: none of them before the user has trusted exactly that.

A file that does not count says so, and so does a server that is left out: its author waits for its servers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.cli.home import own_file
from dragoman.cli.text_width import harmless_line
from dragoman.errors import UsageError
from dragoman.vocabulary.requests import McpServer

if TYPE_CHECKING:
    from dragoman.host.trust import TrustState

NAME: Final = ".mcp.json"


class ProjectServers(NamedTuple):
    """The servers of a project, and why some or all of them are left out."""

    servers: Sequence[McpServer]
    remarks: Sequence[str] = ()


def read_project_servers(folder: str, environment: Mapping[str, str]) -> ProjectServers:
    """Return what counts of a folder's file."""
    from dragoman.host.trust import TrustFailed, covered, trust_state

    try:
        tables_of(covered(Path(folder)).get(NAME, b"{}"))  # an invalid file is reported before trust is asked for
        found = trust_state(own_file("trust.json"), Path(folder))
        if found.files is None:
            reason = harmless_line(found.reason)
            return ProjectServers([], [f"{NAME} is not used: {reason}; dragoman trust {_shown(folder)}"])
        return _allowed(found, folder, environment)
    except TrustFailed as error:
        return ProjectServers([], [f"{NAME} is not used: {harmless_line(str(error))}"])
    except UsageError as error:
        return ProjectServers([], [f"{harmless_line(str(error)).rstrip('.')}; {NAME} is not used"])


def _allowed(found: "TrustState", folder: str, environment: Mapping[str, str]) -> ProjectServers:
    """Return the servers of a trusted file that get no secret of the user, or only those that the user allows."""
    from dragoman.coder.mcp.config import fill_variables, name_of, read_servers, texts_of
    from dragoman.host.variables import secret_variables

    servers: list[McpServer] = []
    remarks: list[str] = []
    assert found.files is not None
    for server in read_servers(tables_of(found.files[NAME])) if NAME in found.files else ():
        name = name_of(server)
        allowed = found.trust.secrets.get(part_of(name), ())
        kept_back = [secret for secret in secret_variables(texts_of(server), environment) if secret not in allowed]
        try:
            if kept_back:
                asks = f"which you have not allowed; to be asked: dragoman trust {_shown(folder)}"
                raise UsageError(f"{NAME} would give it {', '.join(kept_back)}, {asks}")
            servers.append(fill_variables(server, environment))
        except UsageError as error:
            remarks.append(f"MCP server {harmless_line(name)} is not used: {harmless_line(str(error)).rstrip('.')}")
    return ProjectServers(servers, remarks)


def part_of(name: str) -> str:
    """Return how trust names a server of a project's file."""
    return f"{NAME} {name}"


def tables_of(data: bytes) -> dict[str, object]:
    """Return the `mcpServers` of such a file; `UsageError` says what is wrong with it."""
    servers = document_of(data).get("mcpServers")
    if not isinstance(servers, dict):
        raise UsageError(f"{NAME}: its servers have to stand in an object mcpServers")
    return servers


def document_of(data: bytes) -> dict[str, object]:
    """Return the whole of such a file; `UsageError` says what is wrong with it."""
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise UsageError(f"{NAME}, line {error.lineno}: this is not JSON") from None
    except (UnicodeDecodeError, RecursionError):
        raise UsageError(f"{NAME}: this is not JSON") from None
    return document if isinstance(document, dict) else {}


def _shown(folder: str) -> str:
    import shlex

    return harmless_line(shlex.quote(folder))
