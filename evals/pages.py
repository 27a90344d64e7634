"""Web pages for a task, by a proxy on this machine: the agent fetches `http://manual.example/x` and gets a file.

Every agent that honours `http_proxy` can be given pages in this way, and what it asked for is known: an address that a
hostile page wanted it to call stands in `fetched`.
"""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_TYPES: Final = {".html": "text/html", ".md": "text/markdown", ".txt": "text/plain", ".json": "application/json"}
# Of addresses that are kept: an agent may ask without an end.
_MOST: Final = 1_000


class Pages(http.server.ThreadingHTTPServer):
    """Serves `HOST/PATH` of a folder to a client that uses it as a proxy."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        self.fetched: list[str] = []

    def environment(self) -> dict[str, str]:
        """Return the variables that send an agent's plain HTTP through us, but for what is on this machine."""
        address = f"http://127.0.0.1:{self.server_address[1]}"
        return {
            **dict.fromkeys(("http_proxy", "HTTP_PROXY"), address),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
        }


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Pages)
        if len(self.server.fetched) < _MOST:
            self.server.fetched.append(self.path)
        address = urlsplit(self.path)
        file = self.server.files.get(f"{address.hostname}{address.path}")
        body = b"Not found.\n" if file is None else file.read_bytes()
        self.send_response(404 if file is None else 200)
        self.send_header("Content-Type", _TYPES.get(file.suffix if file else ".txt", "text/plain") + "; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the addresses are in `fetched`."""


@contextmanager
def serving(folder: Path) -> Iterator[Pages | None]:
    """Serve the pages of a folder; None if there is no such folder."""
    if not folder.is_dir():
        yield None
        return
    with Pages(folder) as pages:
        thread = threading.Thread(target=pages.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield pages
        finally:
            pages.shutdown()
            thread.join(5)
