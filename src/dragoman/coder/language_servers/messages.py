"""The messages of the language server protocol, as a client sends and reads them. All of `lsprotocol` and `pygls`.

The types of what is sent, and of each diagnostic, are those of `lsprotocol`; positions and addresses of files are
converted by `pygls`. What a server sends is read field by field: one diagnostic that is not as the protocol says costs
itself and not the others. Importing this takes up to a second: for a thread, with the first server.
"""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec
from lsprotocol import converters, types
from msgspec import UNSET, Raw, Struct, UnsetType
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from dragoman.coder.language_servers.problems import MESSAGE_CHARACTERS, Problem, Severity
from dragoman.version import VERSION

# A file with more is broken as a whole.
MOST_PROBLEMS: Final = 500
# Of a longer line only the beginning has columns that are counted.
_LINE_CHARACTERS: Final = 10_000
_SEVERITIES: Final[dict[int, Severity]] = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_READ: Final = ("range", "severity", "code", "source")


class ServerMessage(Struct, forbid_unknown_fields=False):
    """A message as it arrives: a request has an id and a method, a notification a method, a response an id."""

    id: int | str | None = None
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class ServerAbilities(NamedTuple):
    """What a server said of itself: how it counts columns, whether it is asked for diagnostics (`pulls`), and whether
    it wants to know that a file was saved, with its text."""

    encoding: str = "utf-16"
    pulls: bool = False
    on_save: bool = True
    text_on_save: bool = False


class Published(NamedTuple):
    """Diagnostics that a server has sent by itself; `version` None: it does not say of which text."""

    path: str
    version: int | None
    items: Sequence[object]


class _Publish(Struct):
    uri: str
    diagnostics: list[Any]
    version: int | None = None


class _Report(Struct):
    kind: str = "full"
    items: list[Any] = []


class _Sync(Struct):
    save: bool | dict[str, Any] | None = None


class _Capabilities(Struct, rename="camel"):
    position_encoding: Any = None
    diagnostic_provider: Any = None
    text_document_sync: Any = None


class _Initialized(Struct):
    capabilities: _Capabilities


class _ConfigurationItem(Struct):
    section: str | None = None


class _ConfigurationParams(Struct):
    items: list[_ConfigurationItem] = []


class _Registration(Struct):
    method: str


class _RegistrationParams(Struct):
    registrations: list[_Registration] = []


@functools.cache
def _converter() -> Any:
    return converters.get_converter()


def encoded(params: object) -> Raw:
    """Return parameters as they stand in a message."""
    return Raw(msgspec.json.encode(_converter().unstructure(params)))


def decode_envelope(body: bytes) -> ServerMessage | None:
    """Return a message; None: it is none."""
    try:
        return msgspec.json.decode(body, type=ServerMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def initialize(roots: Sequence[str], options: Mapping[str, object]) -> Raw:
    """Return the parameters of `initialize`: what this client can do, and where the session works.

    `options` are the server's own, which the protocol says nothing of.
    """
    document = types.TextDocumentClientCapabilities(
        synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True),
        # Said at once, or not at all: what is registered later is not there when the first file is opened.
        diagnostic=types.DiagnosticClientCapabilities(dynamic_registration=False),
    )
    workspace = types.WorkspaceClientCapabilities(
        configuration=True,
        workspace_folders=True,
        apply_edit=False,
        # Nothing here watches files, and a server that knows it watches them itself.
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=False),
    )
    encodings = [types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16]
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(
            text_document=document,
            workspace=workspace,
            general=types.GeneralClientCapabilities(position_encodings=encodings),
        ),
        # Confined, a server cannot see our process, and would take us for dead.
        process_id=None,
        client_info=types.ClientInfo(name="dragoman", version=VERSION),
        root_uri=uri_of(roots[0]),
        workspace_folders=_folders(roots),
        initialization_options=dict(options) or None,
    )
    return encoded(params)


def did_open(path: str, language: str, version: int, text: str) -> Raw:
    """Return the parameters of `textDocument/didOpen`."""
    item = types.TextDocumentItem(uri=uri_of(path), language_id=language, version=version, text=text)
    return encoded(types.DidOpenTextDocumentParams(text_document=item))


def did_change(path: str, version: int, text: str) -> Raw:
    """Return the parameters of `textDocument/didChange`, with the whole text."""
    document = types.VersionedTextDocumentIdentifier(uri=uri_of(path), version=version)
    change = types.TextDocumentContentChangeWholeDocument(text=text)
    return encoded(types.DidChangeTextDocumentParams(text_document=document, content_changes=[change]))


def did_save(path: str, text: str | None) -> Raw:
    """Return the parameters of `textDocument/didSave`."""
    return encoded(types.DidSaveTextDocumentParams(text_document=_document(path), text=text))


def did_close(path: str) -> Raw:
    """Return the parameters of `textDocument/didClose`."""
    return encoded(types.DidCloseTextDocumentParams(text_document=_document(path)))


def files_changed(changes: Mapping[str, str]) -> Raw:
    """Return the parameters of `workspace/didChangeWatchedFiles`: paths, and `created`, `changed` or `deleted`."""
    kinds = {"created": types.FileChangeType.Created, "deleted": types.FileChangeType.Deleted}
    events = [
        types.FileEvent(uri=uri_of(path), type=kinds.get(kind, types.FileChangeType.Changed))
        for path, kind in changes.items()
    ]
    return encoded(types.DidChangeWatchedFilesParams(changes=events))


def pull(path: str) -> Raw:
    """Return the parameters of `textDocument/diagnostic`."""
    return encoded(types.DocumentDiagnosticParams(text_document=_document(path)))


def abilities(result: Raw) -> ServerAbilities:
    """Return what the answer to `initialize` says. Raises `msgspec.DecodeError` for what is no such answer."""
    said = msgspec.json.decode(result, type=_Initialized).capabilities
    sync = said.text_document_sync
    save = sync.get("save") if isinstance(sync, dict) else True
    return ServerAbilities(
        encoding=said.position_encoding if isinstance(said.position_encoding, str) else "utf-16",
        pulls=said.diagnostic_provider not in (None, False),
        on_save=save not in (None, False),
        text_on_save=isinstance(save, dict) and save.get("includeText") is True,
    )


def published(params: Raw) -> Published | None:
    """Return what `textDocument/publishDiagnostics` has; None: it is about no file."""
    try:
        said = msgspec.json.decode(params, type=_Publish)
    except msgspec.DecodeError:
        return None
    path = to_fs_path(said.uri)
    return Published(os.path.normpath(path), said.version, said.diagnostics) if path and path[0] == "/" else None


def pulled(result: Raw) -> Sequence[object] | None:
    """Return the diagnostics of an answer to `textDocument/diagnostic`; None: it has none."""
    try:
        report = msgspec.json.decode(result, type=_Report)
    except msgspec.DecodeError:
        return None
    return report.items if report.kind == "full" else None


def registers_pull(params: Raw) -> bool:
    """Return whether `client/registerCapability` says that the server is to be asked for diagnostics."""
    try:
        said = msgspec.json.decode(params, type=_RegistrationParams)
    except msgspec.DecodeError:
        return False
    return any(one.method == "textDocument/diagnostic" for one in said.registrations)


def problems(path: str, items: Sequence[object], text: str, encoding: str) -> list[Problem]:
    """Return diagnostics of a file as problems. `text` is what the server has of the file."""
    return list(_problems(path, items[:MOST_PROBLEMS], text.split("\n"), PositionCodec(encoding)))


def _problems(path: str, items: Sequence[object], lines: Sequence[str], codec: PositionCodec) -> Iterator[Problem]:
    for item in items:
        said = _diagnostic(item)
        if said is None:
            continue
        begins = said.range.start
        line = lines[begins.line] if begins.line < len(lines) else ""
        # Never more characters than units: what lies behind them need not be counted.
        piece = line[: min(begins.character, _LINE_CHARACTERS)]
        column = codec.position_from_client_units([piece], types.Position(0, begins.character)).character
        severity = _SEVERITIES.get(said.severity.value if said.severity else 1, "error")
        code = "" if said.code is None else str(said.code)
        yield Problem(path, begins.line + 1, column + 1, severity, said.message, said.source or "", code)


def _diagnostic(item: object) -> types.Diagnostic | None:
    """Return one diagnostic, with what is read of it alone; None: it is none."""
    if not isinstance(item, dict):
        return None
    said = {key: item[key] for key in _READ if item.get(key) is not None}
    message = item.get("message")
    if isinstance(message, dict):  # Markdown, from version 3.18 of the protocol on
        message = message.get("value")
    said["message"] = message[: 4 * MESSAGE_CHARACTERS] if isinstance(message, str) else ""
    try:
        return cast(types.Diagnostic, _converter().structure(said, types.Diagnostic))
    except Exception:  # cattrs groups whatever its hooks raise
        return None


# -- what a server asks us --------------------------------------------------------------------------------------------


def answer(method: str, params: Raw | UnsetType, roots: Sequence[str]) -> object:
    """Return the result for a request of a server. Raises `LookupError` for a method that is not served."""
    match method:
        case "workspace/configuration":
            return [_setting(item.section, roots) for item in _asked(params)]
        case "workspace/workspaceFolders":
            return _converter().unstructure(_folders(roots))
        case "workspace/applyEdit":
            # Files are changed by approved calls alone.
            return {"applied": False, "failureReason": "this client applies no edits"}
        case "window/showDocument":
            return {"success": False}
        case "client/registerCapability" | "client/unregisterCapability" | "window/workDoneProgress/create":
            return None
        case "window/showMessageRequest":
            return None
    if method.startswith("workspace/") and method.endswith("/refresh"):
        return None
    raise LookupError(method)


def _asked(params: Raw | UnsetType) -> list[_ConfigurationItem]:
    try:
        return msgspec.json.decode(params or b"{}", type=_ConfigurationParams).items
    except msgspec.DecodeError:
        return []


def _setting(section: str | None, roots: Sequence[str]) -> object:
    """Return the settings of a section. Of a project all that is said is which interpreter its packages are in."""
    if section == "python":
        python = _own_python(roots)
        return {"pythonPath": python} if python else {}
    return None


def _own_python(roots: Sequence[str]) -> str:
    places = [os.path.join(root, name, "bin", "python") for root in roots for name in (".venv", "venv")]
    return next((place for place in places if os.access(place, os.X_OK)), "")


def uri_of(path: str) -> str:
    """Return the address of a file."""
    return cast(str, from_fs_path(path))


def _document(path: str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=uri_of(path))


def _folders(roots: Sequence[str]) -> list[types.WorkspaceFolder]:
    return [types.WorkspaceFolder(uri=uri_of(root), name=os.path.basename(root) or "/") for root in roots]
