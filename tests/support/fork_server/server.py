"""The program of the fork server.

    python server.py FD LISTENING

On the first socket come requests, each with its stdin, stdout and stderr, and a socket for its process id and its exit
code; a process that connects to the second asks there (`launcher`), and when it is gone, its child is killed. It ends
when no process can ask on the first any more.
"""

import atexit
import fcntl
import gc
import importlib
import io
import marshal
import os
import select
import signal
import socket
import sys
import termios
import threading
import time
from contextlib import suppress
from typing import Any, Final

# With what these import: an agent in its first turn, in either version. What is dear and seldom needed (MCP, a
# provider's client) the code that needs it imports.
_NEEDED: Final = (
    "dragoman.agent.process",
    "dragoman.agent.connection",
    "dragoman.cli.acp",
    "dragoman.cli.main",
    "dragoman.cli.builtin_agent",
    "dragoman.coder.agent",
    "dragoman.coder.session",
    "dragoman.coder.models.demo",
    "dragoman.coder.models.script",
    "dragoman.coder.model_registry",
    "dragoman.coder.runtime",
    "dragoman.dialects.v1.agent",
    "dragoman.dialects.v2.agent",
    "dragoman.host.process_privacy",
    "dragoman.store.sqlite",
)
# What else a command needs, once one of them is asked for. These start agents themselves, and have them forked.
_CLIENT: Final = (
    "dragoman.cli.one_turn",
    "dragoman.cli.offered_services",
    "dragoman.client.connect",
    "dragoman.client.call_facts",
    "dragoman.client.permission_handler",
    "dragoman.dialects.v1.client",
    "dragoman.transports.child",
)
_GATEWAY: Final = (
    "dragoman.gateway.hub",
    "dragoman.gateway.agent_source",
    "dragoman.gateway.session_directory",
    "dragoman.gateway.server",
    "dragoman.gateway.token_store",
    "granian.server.embed",
)
_NEEDED_BY: Final = {
    "run": ("dragoman.cli.run", "dragoman.cli.terminal.questions", "dragoman.cli.terminal.turn_screen", *_CLIENT),
    "chat": (
        "dragoman.cli.chat",
        "dragoman.cli.terminal.chat_session",
        "dragoman.cli.terminal.screen",
        "rich.markdown",
        *_CLIENT,
    ),
    "sessions": ("dragoman.cli.sessions",),
    "demo": ("dragoman.cli.demo", *_CLIENT),
    "serve": ("dragoman.cli.serve", "dragoman.cli.served_gateway", *_GATEWAY),
    "connect": (
        "dragoman.cli.connect",
        "dragoman.cli.stdio_relay",
        "dragoman.gateway.token_store",
        "dragoman.transports.http",
        "dragoman.transports.websocket",
        "httpx2",
        "websockets.asyncio.client",
    ),
}
_REQUEST_BYTES: Final = 1 << 20
_MODES: Final = {"stdin": "rb", "stdout": "wb", "stderr": "wb"}


class _ForkServer:
    """What is open in the fork server: who can ask, and who waits for which child."""

    def __init__(self, line: socket.socket, door: socket.socket) -> None:
        self._line, self._door = line, door
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._askers: dict[int, socket.socket] = {}  # they have connected and said nothing yet
        self._tellers: dict[int, socket.socket] = {}  # by the child
        self._holders: dict[int, int] = {}  # children that die with a connection, by its number
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)

    def serve(self) -> str:
        """In a child, the program it is to run; in the fork server nothing, at the end."""
        while True:
            heard = [self._wake[0], self._line.fileno(), self._door.fileno(), *self._askers, *self._holders]
            for ready in select.select(heard, [], [])[0]:
                if ready == self._wake[0]:
                    os.read(ready, 4096)
                    self._reap()
                elif ready == self._door.fileno():
                    asker, _ = self._door.accept()
                    self._askers[asker.fileno()] = asker
                elif ready in self._holders:
                    os.kill(self._holders.pop(ready), signal.SIGKILL)
                elif ready in self._askers or ready == self._line.fileno():  # or gone with a child that has just ended
                    source = self._asked(ready)
                    if source is not None:
                        return source

    def _asked(self, ready: int) -> str | None:
        asker = self._askers.pop(ready, None)
        request, fds, _, _ = socket.recv_fds(asker or self._line, _REQUEST_BYTES, 4)
        if not request:
            if asker is None:
                return ""
            asker.close()
            return None
        teller = asker or socket.socket(fileno=fds.pop())
        asked = marshal.loads(request)
        _import((*_NEEDED_BY.get(_command(asked), ()), *asked.get("imports", ())))
        child = os.fork()
        if not child:
            folder = self._door.getsockname()
            teller.close()
            self._forget()
            if _command(asked) in _NEEDED_BY:
                sys.executable = os.path.join(os.path.dirname(folder), "python")
            return _prepared(asked, fds)
        for fd in fds:
            os.close(fd)
        self._tellers[child] = teller
        if asker is not None:
            self._holders[ready] = child
        with suppress(BrokenPipeError):
            teller.send(b"%d" % child)
        return None

    def _reap(self) -> None:
        for child in list(self._tellers):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                with self._tellers.pop(child) as teller, suppress(BrokenPipeError):
                    self._holders.pop(teller.fileno(), None)
                    teller.send(b"%d" % os.waitstatus_to_exitcode(status))

    def _forget(self) -> None:
        """In a child: nothing of the fork server is open."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd in self._wake:
            os.close(fd)
        for held in (self._line, self._door, *self._askers.values(), *self._tellers.values()):
            held.close()


def _command(request: dict[str, Any]) -> str:
    """The first word of its command line."""
    return "".join(request["arguments"][:1])


def _import(names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        importlib.import_module(name)
    if missing:
        gc.collect()
        gc.freeze()


def _prepared(request: dict[str, Any], fds: list[int]) -> str:
    """The program, when everything around it is as if it had been started."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    if request.get("terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number, (name, mode) in enumerate(_MODES.items()):
        _open_stream(number, name, mode)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.argv = ["-c", *request["arguments"]]
    source: str = request["source"]
    return source


def _open_stream(number: int, name: str, mode: str) -> None:
    """As Python opens it when it starts: a terminal is written line by line."""
    old = getattr(sys, name)
    by_line = name == "stderr" or os.isatty(number)
    file = open(number, mode, closefd=False)  # noqa: SIM115
    stream = io.TextIOWrapper(file, encoding=old.encoding, errors=old.errors, line_buffering=by_line)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def _run(source: str) -> int:
    """Run a child's program to its end, and what it wants done then; its exit code."""
    code = 0
    try:
        exec(source, {"__name__": "__main__"})
    except SystemExit as left:
        code = _exit_code(left.code)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    return code


def _exit_code(given: object) -> int:
    """Of what was given to `sys.exit`: what is no number is said, as Python does."""
    if given is None or isinstance(given, int):
        return given or 0
    print(given, file=sys.stderr)
    return 1


if __name__ == "__main__":
    _import(_NEEDED)
    program = _ForkServer(*(socket.socket(fileno=int(fd)) for fd in sys.argv[1:])).serve()
    if program:
        os._exit(_run(program))  # the memory of a fork is copied when it is taken apart
