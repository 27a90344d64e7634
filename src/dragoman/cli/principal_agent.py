"""Our own agent as the process of one principal of `dragoman serve`: `python -m dragoman.cli.principal_agent FD`.

FD is the control socket (`gateway.principal_processes`): the first message says which agent it is, each further one
brings the descriptor of a connection. Its end is our end, and so is that of stdin, which is noticed also while a
handler blocks the loop. What is printed goes to the server's stderr.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.process import ExitGuard
    from dragoman.coder.setup import Setup

# The setup has some paths in it; a message of this size is sent whole.
_MESSAGE_BYTES: Final = 64 * 1024
# Connections that are over are waited for so long at the end: their turns are cancelled, their sessions released.
_END_SECONDS: Final = 1.5


class AgentOptions(msgspec.Struct, frozen=True):
    """What `dragoman serve` was told about our own agent. `private`: paths that none of its tools reaches."""

    model: str | None
    mode: str | None
    thinking: str | None
    protocol: int | None
    elephant: bool
    audit_content: bool
    private: list[str]

    def setup(self) -> "Setup":
        """Return what the agent is made of. Raise `DragomanError` for what can be seen to be wrong."""
        from dragoman.agent.agent import rules_of
        from dragoman.cli import builtin_agent

        # Its clients know four modes, and none that does not ask.
        rules = rules_of("elephant" if self.elephant else None)
        return builtin_agent.our_setup(
            self.model,
            self.mode,
            rules,
            audit_content=self.audit_content,
            private=self.private,
            thinking=self.thinking,
        )

    def agent(self) -> "Agent":
        """Make the agent, with the sessions of this user."""
        from dragoman.cli.home import open_store
        from dragoman.coder.agent import coding_agent

        return coding_agent(self.setup(), store=open_store, protocol=self.protocol)


def main(words: Sequence[str]) -> int:
    """Serve until the control socket is closed."""
    from dragoman.host.process_privacy import make_undumpable

    make_undumpable()
    if words[0] == "--group":
        with open(words[1], "w", encoding="ascii") as entrance:
            entrance.write(str(os.getpid()))
    os.dup2(2, 1)  # what a library prints is no message
    control = socket.socket(fileno=int(words[-1]))
    options = msgspec.json.decode(control.recv(_MESSAGE_BYTES), type=AgentOptions)
    from dragoman.cli.key_variables import hide_keys
    from dragoman.cli.log_lines import logging_to_stderr

    hide_keys()
    # As the server's own lines, which these stand between.
    with logging_to_stderr("serve", None, os.environ, as_json=True):
        return _run(options.agent(), control)


def _run(agent: "Agent", control: socket.socket) -> int:
    from dragoman import background
    from dragoman.agent.process import ExitGuard
    from dragoman.host.sandbox import probe

    # Needed with the first prompt: tried out while the client opens its session.
    background.start_in_background(probe)
    guard = ExitGuard(0)
    background.run(_serve(agent, control, guard))
    guard.finish()
    return 0


async def _serve(agent: "Agent", control: socket.socket, guard: "ExitGuard") -> None:
    over = asyncio.Event()
    guard.start(lambda number: over.set())
    guard.catch_signals()
    serving: set[asyncio.Task[None]] = set()
    control.setblocking(False)

    def on_control() -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            asyncio.get_running_loop().remove_reader(control)
            over.set()
        for descriptor in descriptors:
            task = asyncio.create_task(_serve_connection(agent, descriptor))
            serving.add(task)
            task.add_done_callback(serving.discard)

    asyncio.get_running_loop().add_reader(control, on_control)
    await over.wait()
    if serving:
        await asyncio.wait(serving, timeout=_END_SECONDS)
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


async def _serve_connection(agent: "Agent", descriptor: int) -> None:
    """Serve one connection. The gateway reads its end when the sessions of it are released, and not before."""
    from dragoman.transports.unix_socket import UnixSocketTransport

    until_released = os.dup(descriptor)
    try:
        await agent.serve(UnixSocketTransport(socket.socket(fileno=descriptor)), trusted=True)
    except Exception as error:
        _report(error)
    finally:
        os.close(until_released)


def _report(error: Exception) -> None:
    """Write down a failure of ours: its kind and place, never the text of the exception."""
    from dragoman.agent.author_handlers import warn
    from dragoman.cli.failure_log import places

    warn(f"dragoman: a connection failed: {type(error).__name__} {places(error.__traceback__)}\n")


if __name__ == "__main__":
    from dragoman.background import end_process

    end_process(main(sys.argv[1:]))
