"""The gallery of the console's components (`console/tests/gallery`): built once, served under the page's policy."""

import fcntl
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dragoman.gateway.pages import _POLICY
from tests.support.needs import ROOT, lacking
from tools import console

SOURCES = console.FOLDER / "tests" / "gallery"
BUILT = ROOT / "build" / "gallery"


def build() -> Path:
    """The folder of the gallery, made anew where its sources have changed. Tests of other workers wait."""
    node = console.find_node()
    if node is None or not console.MODULES.is_dir():
        lacking("node and the packages of the console, which ./dev test installs")
    digest = hashlib.sha256(console.fingerprint().encode())
    for file in sorted(file for file in SOURCES.rglob("*") if file.is_file()):
        digest.update(file.read_bytes())
    BUILT.parent.mkdir(exist_ok=True)
    stamp = BUILT.parent / "gallery.sha256"
    with (BUILT.parent / "gallery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            console.run(
                *(node, "vite/bin/vite.js", "build"),
                *("--config", "tests/gallery/vite.config.ts", "--logLevel", "warn"),
            )
            stamp.write_text(digest.hexdigest())
    return BUILT


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Files of a folder under the policy of the page; the address they begin with."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def end_headers(self) -> None:
            self.send_header("content-security-policy", _POLICY.decode())
            super().end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
