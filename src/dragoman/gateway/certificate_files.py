"""The certificate and key of a server, read again when they are renewed: a restart would end running turns.

Programs that renew certificates write two files, or let two links point elsewhere, one after the other; in between they
do not fit each other. So files that have changed count once they fit, and until then the server goes on with what it
has. It looks at them at intervals, because a file system of another machine reports no change.
"""

import ssl
from pathlib import Path
from typing import Final

# Certificates are renewed days before they end.
CHECK_SECONDS: Final = 20.0

_Marks = tuple[tuple[int, int, int, int], ...]


class CertificateFiles:
    """Two files, and what was seen of them last. The server has read them once, and so they were whole."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate: Final = certificate
        self.key: Final = key
        self._marks = self._look()

    def __repr__(self) -> str:
        return f"<CertificateFiles {self.certificate} {self.key}>"

    def renewed(self) -> str | None:
        """Return None while the files are as they were; once they have changed "", or why they cannot be used. Blocks.

        Files that cannot be used are reported by every call until they can, or are as they were.
        """
        marks = self._look()
        if marks == self._marks:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # OpenSSL would ask for a password at the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:  # an SSLError is one as well
            return getattr(error, "reason", None) or error.strerror or "cannot be read"
        self._marks = marks
        return ""

    def _look(self) -> _Marks:
        return tuple(map(_mark, (self.certificate, self.key)))


def _mark(file: Path) -> tuple[int, int, int, int]:
    """Return what is another when a file was written or replaced; zeros where there is none."""
    try:
        status = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
