"""A small language server, as a real process: every line with BAD has an error, every line with WORRY a warning.

    python language_server.py [--pull] [--gate FILE] [--crash WORD] [--grow] [--flood] [--junk] [--mute]
                              [--ask]

It sends what it sees with the version of the text, and with `--pull` when it is asked. `--gate FILE`: nothing is sent
of a text with SLOW before that file is there. `--crash WORD`: it ends at a text with that word. `--grow`, `--flood`: it
takes memory, or writes without an end, at the first text. `--junk`: it prints words between its messages. `--mute`: it
reads and never answers. `--ask`: its error is what the client has answered to requests of its own.
"""

import os
import sys
import threading
import time
from urllib.parse import urlparse

SWITCHES = sys.argv[1:]
MUTE, FLOOD = "--mute" in SWITCHES, "--flood" in SWITCHES


def value_of(switch: str) -> str:
    return SWITCHES[SWITCHES.index(switch) + 1] if switch in SWITCHES else ""


def mute() -> None:
    while os.read(0, 65536):
        pass


def serve() -> None:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("small", "1", text_document_sync_kind=types.TextDocumentSyncKind.Full)
    kept: list[bytes] = []
    asked: list[str] = []

    def seen(text: str) -> list[types.Diagnostic]:
        found = []
        for number, line in enumerate(text.split("\n")):
            for word, severity in (
                ("BAD", types.DiagnosticSeverity.Error),
                ("WORRY", types.DiagnosticSeverity.Warning),
            ):
                if word not in line:
                    continue
                column = server.workspace.position_codec.client_num_units(line[: line.index(word)])
                place = types.Range(types.Position(number, column), types.Position(number, column + len(word)))
                message = f"{line.strip()} is not good" if not asked else " ".join(asked)
                found.append(types.Diagnostic(place, message, severity, code=f"{word}1", source="small"))
        return found

    def publish(uri: str, version: int | None, text: str) -> None:
        gate = value_of("--gate")
        while gate and "SLOW" in text and not os.path.exists(gate):
            time.sleep(0.01)
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=seen(text), version=version)
        server.text_document_publish_diagnostics(params)

    def look(uri: str, version: int | None) -> None:
        text = server.workspace.get_text_document(uri).source
        if value_of("--crash") and value_of("--crash") in text:
            os._exit(3)
        if "--grow" in SWITCHES:
            try:
                while len(kept) < 64:
                    kept.append(os.urandom(16 * 1024 * 1024))
            except MemoryError:
                os._exit(4)
        if FLOOD:
            while True:
                server.window_log_message(types.LogMessageParams(types.MessageType.Info, "x" * 100_000))
        if "--junk" in SWITCHES:
            sys.stdout.buffer.write(b"a word that is no message\n")
            sys.stdout.buffer.flush()
        if "--pull" not in SWITCHES:
            threading.Thread(target=publish, args=(uri, version, text), daemon=True).start()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        if "--ask" in SWITCHES:
            edit = types.WorkspaceEdit(changes={})
            answer = await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit))
            asked.append(f"applied={answer.applied}")
            items = [types.ConfigurationItem(section="python")]
            settings = await server.workspace_configuration_async(types.ConfigurationParams(items))
            python: dict[str, str] = settings[0] or {}
            asked.append(os.path.relpath(python["pythonPath"], os.getcwd()))
        look(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        look(params.text_document.uri, params.text_document.version)

    if "--pull" in SWITCHES:
        options = types.DiagnosticOptions(inter_file_dependencies=False, workspace_diagnostics=False)

        @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
        def pulled(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
            document = server.workspace.get_text_document(params.text_document.uri)
            assert urlparse(params.text_document.uri).scheme == "file"
            return types.RelatedFullDocumentDiagnosticReport(items=seen(document.source))

    server.start_io()


if __name__ == "__main__":
    mute() if MUTE else serve()
