"""What agents do in the world, in the order in which they do it: a file that every act is appended to.

An act is a line, written at once by a process that an agent has started. The kernel puts each at the end of the file,
whatever becomes of the process or its network a moment later: no partition cuts the file off, and unlike with a server
that is sent the acts none of them waits in a socket and arrives behind a later one.
"""

from pathlib import Path
from typing import Final, NamedTuple

# The session's folder, the operation, the number of the act; every `PAUSE` seconds, as long as the count says. The
# pause is the shell's own: a process for each would cost more than the rest of a campaign. It prints nothing: output
# goes into the log, where the fence would end a turn that only the freezing of its processes can end in time.
PAUSE: Final = 0.1
_PROGRAM: Final = """\
exec 9<> <(:)
for ((n = 1; n <= $2; n++)); do
    echo "${PWD##*/} $1 $n $$" >> FILE
    read -r -t PAUSE -u 9
done
exit 0
"""


class Act(NamedTuple):
    """One act: for which session (the name of its folder) and operation, which of it, and by which process."""

    session: str
    operation: str
    number: int
    pid: int


class ActFile:
    """The file of a campaign, and the program that appends to it."""

    def __init__(self, folder: Path) -> None:
        self._file: Final = folder / "acts"
        self._file.touch()
        self.program: Final = folder / "act.sh"
        self.program.write_text(_PROGRAM.replace("FILE", str(self._file)).replace("PAUSE", str(PAUSE)))

    def __repr__(self) -> str:
        return f"<ActFile {self._file}>"

    def read(self) -> list[Act]:
        """Return every act so far, in order."""
        words = [line.split() for line in self._file.read_text().splitlines()]
        return [Act(session, operation, int(number), int(pid)) for session, operation, number, pid in words]
