"""The whole text of results that were too long for the model: a file each, for one session, in our data folder.

The model is shown the beginning and the end of such a result, and the path of the file; its `read_file` reads parts of
it, and no other tool, command or client reads there. The folder goes when the session is deleted.
"""

import hashlib
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from dragoman.host.openat import remove_tree
from dragoman.host.private_file import write_private

# About 10,000 tokens: of a longer result the model is shown this much.
RESULT_CHARACTERS: Final = 40_000
# One file of a session, and all of them: the oldest go first.
FILE_BYTES: Final = 4 * 1024 * 1024
FOLDER_BYTES: Final = 64 * 1024 * 1024
_FOLDER: Final = "results"
_NAME: Final = re.compile(r"([0-9]{1,9})\.txt")


class KeptResults:
    """The folder of one session; made with its first file. `home` is our data folder."""

    def __init__(self, home: str, session_id: str) -> None:
        self.path: Final = _folder(os.path.realpath(home), session_id)
        # Calls that run together write at the same time, each in a thread.
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return f"<KeptResults {self.path}>"

    def shorten(self, text: str) -> str:
        """Return a text as the model is shown it; a long one without its middle, and with the path of the whole.

        Blocks: writes the file. Where it cannot be written, the text says only how much was cut.
        """
        if len(text) <= RESULT_CHARACTERS:
            return text
        with self._lock:
            path = self._keep(text)
        where = f"; read_file reads parts of the whole: {path}" if path else ""
        half = RESULT_CHARACTERS // 2
        return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters cut here{where} …]\n{text[-half:]}"

    def _keep(self, text: str) -> str:
        data = text.encode("utf-8", "replace")[:FILE_BYTES]
        try:
            names = sorted(os.listdir(self.path), key=lambda name: (len(name), name))
        except FileNotFoundError:
            names = []
        except OSError:
            return ""
        number = 1 + max((int(found[1]) for name in names if (found := _NAME.fullmatch(name))), default=0)
        path = os.path.join(self.path, f"{number}.txt")
        try:
            self._make_room(names, len(data))
            write_private(Path(path), data)
        except OSError:
            return ""
        return path

    def _make_room(self, names: list[str], size: int) -> None:
        sizes = {name: os.stat(os.path.join(self.path, name)).st_size for name in names}
        for name in names:
            if sum(sizes.values()) + size <= FOLDER_BYTES:
                return
            os.unlink(os.path.join(self.path, name))
            del sizes[name]


def delete_results(home: str, session_id: str) -> None:
    """Delete what was kept for a session. Blocks; what cannot be deleted stays."""
    with suppress(OSError):
        remove_tree(_folder(home, session_id))


def _folder(home: str, session_id: str) -> str:
    # An id is what some client or store has made of it, and not always a file name.
    return os.path.join(home, _FOLDER, hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:32])
