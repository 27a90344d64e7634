"""Stands for the Python that starts a program: the fork server forks what would have been started, on our own streams.

    launcher.py [-P] -m dragoman.cli.main ARGUMENT...
    launcher.py -Ximport=MODULE,... -c SOURCE ARGUMENT...

Its parent sees a process that hears signals and ends as the child does; when it is killed, so is the child. At a
terminal the child gets one of its own, which no other process may have opened before it, and what passes is handed on.
Anything else it is asked for is done by Python itself. It imports nothing that takes time.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import marshal
import os
import select
import sys
import termios

_DRAGOMAN = "import sys; from dragoman.cli.main import main; sys.exit(main())"
_PASSED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGWINCH)
_SIZE_BYTES = 8
_PIECE_BYTES = 1 << 16


def main(words: list[str]) -> None:
    request = _wanted(words)
    if request is None:
        os.execv(sys.executable, [sys.executable, *words])
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    line.connect(os.path.join(os.path.dirname(sys.argv[0]), "line"))
    early: list[int] = []
    for number in _PASSED_ON:
        _signal.signal(number, lambda number, frame: early.append(number))
    leader = _ask(line, request)
    child = int(line.recv(64))
    for number in _PASSED_ON:
        _signal.signal(number, lambda number, frame: os.kill(child, number))
    for number in early:
        os.kill(child, number)
    if leader is not None:
        _hand_on(leader, line)
    _end(int(line.recv(64)))


def _wanted(words: list[str]) -> dict[str, object] | None:
    """What the fork server is to fork, if this is for it."""
    if words[:1] == ["-P"]:
        words = words[1:]
    if words[:2] == ["-m", "dragoman.cli.main"]:
        return {"source": _DRAGOMAN, "arguments": words[2:]}
    if words[0].startswith("-Ximport=") and words[1] == "-c":
        imports = [name for name in words[0].partition("=")[2].split(",") if name]
        return {"source": words[2], "arguments": words[3:], "imports": imports}
    return None


def _ask(line: _socket.socket, request: dict[str, object]) -> int | None:
    """Ask for the child; our end of its terminal, if we are at one."""
    at_terminal = all(map(os.isatty, range(3)))
    leader, theirs = _terminal() if at_terminal else (None, None)
    streams = [number if theirs is None else theirs for number in range(3)]
    around = {"env": dict(os.environ), "cwd": os.getcwd(), "terminal": at_terminal}
    rights = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
    line.sendmsg([marshal.dumps(request | around)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    if theirs is not None:
        os.close(theirs)
    return leader


def _terminal() -> tuple[int, int]:
    """One that is as ours is."""
    leader, theirs = os.openpty()
    termios.tcsetattr(theirs, termios.TCSANOW, termios.tcgetattr(0))
    _resize(leader)
    return leader, theirs


def _resize(leader: int) -> None:
    fcntl.ioctl(leader, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(_SIZE_BYTES)))


def _hand_on(leader: int, line: _socket.socket) -> None:
    """Until the child has ended: keys to its terminal, and what it shows to ours, which does nothing itself."""
    before = termios.tcgetattr(0)
    raw = [0, before[1] & ~termios.OPOST, before[2], 0, *before[4:]]
    raw[6] = [*before[6]]
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    termios.tcsetattr(0, termios.TCSADRAIN, raw)
    _signal.signal(_signal.SIGWINCH, lambda number, frame: _resize(leader))
    heard = [0, leader, line.fileno()]
    while line.fileno() in heard:
        for ready in select.select(heard, [], [])[0]:
            if ready == line.fileno() or not _passed(ready, 1 if ready == leader else leader):
                heard.remove(ready)
    os.set_blocking(leader, False)
    while _passed(leader, 1):
        pass
    try:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    except termios.error:
        pass  # it is gone


def _passed(source: int, goal: int) -> bool:
    """Whether there may be more."""
    try:
        piece = os.read(source, _PIECE_BYTES)
        whole = len(piece)
        while piece:
            piece = piece[os.write(goal, piece) :]
    except OSError:
        return False
    return whole > 0


def _end(code: int) -> None:
    """As the child has ended."""
    if code < 0:
        if code != -_signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
