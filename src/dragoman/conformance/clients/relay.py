"""The program that a client starts as its agent: it passes stdin and stdout to the process of `dragoman check`.

Standard library only, and started by its path, so that it is up before an editor has lost patience. It ends when its
connection does. One byte from the other side says whether it stays when it is told to end.
"""

import os
import select
import signal
import socket
import sys

ORDINARY = b"o"
STUBBORN = b"s"
_PIECE = 65536


def main() -> None:
    """Pass bytes both ways until the other side has closed."""
    other = socket.socket(socket.AF_UNIX)
    other.connect(sys.argv[1])
    if other.recv(1) == STUBBORN:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    watched: list[int | socket.socket] = [0, other]
    while True:
        ready, _, _ = select.select(watched, (), ())
        if 0 in ready:
            data = os.read(0, _PIECE)
            if data:
                other.sendall(data)
            else:
                watched.remove(0)
                other.shutdown(socket.SHUT_WR)
        if other in ready:
            data = other.recv(_PIECE)
            if not data:
                return
            while data:
                data = data[os.write(1, data) :]


if __name__ == "__main__":
    try:
        main()
    except OSError:
        sys.exit(1)
