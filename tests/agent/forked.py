"""Commands for those who start programs themselves: what would have been started is forked by the nursery.

    python -IS forked.py LINE IMPORTS SOURCE ARGUMENT...

The program runs on our own streams, when the nursery has imported these modules, which commas part. Whoever starts this
sees a process that ends as the program does; when it is killed, so is the program. It imports nothing that takes time.
"""

import _socket
import marshal
import os
import sys


def forked(source: str, *arguments: str, imports: str = "") -> list[str]:
    """The command that runs a program in Python."""
    from tests.agent.nursery import nursery

    line = os.path.join(os.path.dirname(nursery().python), "line")
    return [sys.executable, "-IS", __file__, line, imports, source, *arguments]


def main(place: str, imports: str, source: str, *arguments: str) -> None:
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    line.connect(place)
    request = {
        "source": source,
        "imports": [name for name in imports.split(",") if name],
        "arguments": list(arguments),
        "env": dict(os.environ),
        "cwd": os.getcwd(),
    }
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    line.sendmsg([marshal.dumps(request)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    line.recv(64)  # its process id
    code = int(line.recv(64))
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
