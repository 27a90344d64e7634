"""`dragoman trace record`: an editor on our stdin and stdout, an agent behind us, and every frame in a file."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import CommandError, print_error, print_notice
from dragoman.cli.trace_file import open_writer

if TYPE_CHECKING:
    from dragoman.trace.writer import TracedConnection
    from dragoman.transports.child import ChildTransport

# As a shell reports a program that a signal has ended.
_SIGNALLED: Final = 128
_AGENT_GONE: Final = 1
_LINE_BYTES: Final = 64 * 1024


def run(arguments: argparse.Namespace) -> int:
    """Pass everything on and write it down; return the exit code of the agent, or 1 where it has none."""
    from dragoman import background
    from dragoman.host.process_privacy import blank_secrets

    if (arguments.command_given is None) == (arguments.url is None):
        raise CommandError("which agent? Write its command behind --, or its URL, such as: -- gemini --acp")
    if arguments.command_given == []:
        raise CommandError("which command? Write it after the --, such as: -- gemini --acp")
    writer = open_writer(
        arguments.output,
        "dragoman trace record",
        redacts=not arguments.no_redact,
        max_bytes=arguments.max_size * 2**20,
        older_files=arguments.keep,
    )
    connection = writer.connect()
    blank_secrets()
    if os.isatty(0):
        print_notice("waiting for an editor on stdin; in its settings this command stands for the agent's own")
    if arguments.url is not None:
        return _record_address(arguments, connection)
    return background.run(_record_program(arguments.command_given, connection))


async def _record_program(command: list[str], connection: "TracedConnection") -> int:
    from dragoman.cli.guarded_agent import guarded, run_until_signal
    from dragoman.errors import StartFailed
    from dragoman.trace.recorder import Tap
    from dragoman.transports.child import ChildTransport
    from dragoman.transports.stdio import StdioTransport

    held = bytearray()

    def write_down(data: bytes) -> None:
        if data:
            connection.note("stderr", text=data.decode(errors="replace"))

    def on_stderr(data: bytes) -> None:
        held.extend(data)
        # Whole lines, which is how they are read; one without an end is not waited for without a bound.
        end = len(held) if len(held) > _LINE_BYTES else held.rfind(b"\n") + 1
        write_down(bytes(held[:end]))
        del held[:end]
        try:
            os.write(2, data)
        except OSError:
            pass  # nothing reads it: the agent goes on

    try:
        # With the whole environment: the program is to find what it finds when the editor starts it itself.
        agent = ChildTransport.spawn(command, env=os.environ, on_stderr=on_stderr)
    except StartFailed as failed:
        connection.note("process", event="not started", command=command, reason=str(failed))
        return print_error(str(failed), _AGENT_GONE)
    connection.note("process", event="started", command=command, pid=agent.child.pid)
    stopped_by = 0
    try:
        with guarded(agent):
            stopped_by = await run_until_signal(Tap(StdioTransport.of_this_process(), agent, connection).run())
    finally:
        write_down(bytes(held))
        connection.note("process", event="exited", code=agent.child.exit_code)
    return _SIGNALLED + stopped_by if stopped_by else _exit_code(agent)


def _exit_code(agent: "ChildTransport") -> int:
    code = agent.child.exit_code
    if code is None:
        return _AGENT_GONE
    return code if code >= 0 else _SIGNALLED - code


def _record_address(arguments: argparse.Namespace, connection: "TracedConnection") -> int:
    from dragoman import background
    from dragoman.cli.given_address import address_opener
    from dragoman.cli.stdio_relay import relay_stdio

    open_agent = address_opener(arguments)
    connection.note("process", event="connecting", url=arguments.url)
    reason = background.run(relay_stdio(open_agent, print_notice, connection))
    connection.note("process", event="ended", reason=reason)
    sys.stdout.flush()
    return 0 if reason is None else print_error(reason, _AGENT_GONE)
