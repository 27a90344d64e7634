"""`dragoman trace shrink`: the shortest trace that still fails, by leaving out what is not needed for that."""

import argparse
import asyncio
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dragoman.cli.errors import CommandError, print_error, print_notice
from dragoman.cli.trace_diff import NOT_RUN, recorded_exchanges

if TYPE_CHECKING:
    from dragoman.trace.attempt import AttemptResult, ClientMessage
    from dragoman.trace.exchanges import Exchange
    from dragoman.trace.records import TraceFrame

FOUND, DOES_NOT_FAIL = 0, 1
# In the command of a test, what stands for the trace that is tried.
_PLACE: Final = "{trace}"


class _Shortest(NamedTuple):
    """What was found: the frames, and the failure that they show."""

    frames: "Sequence[TraceFrame]"
    failure: str


def run(arguments: argparse.Namespace) -> int:
    """Shrink, write what was found, and return the exit code."""
    from dragoman import background
    from dragoman.errors import StartFailed
    from dragoman.trace.records import TraceFault

    command = arguments.command_given
    if not command:
        raise CommandError(f"what fails? Write an agent behind --, or a test with {_PLACE} in its words")
    if os.path.lexists(arguments.output):
        raise CommandError(f"{arguments.output}: is there already")
    try:
        recorded = recorded_exchanges(arguments.file, arguments.connection)
        work = _shrink_for_test if any(_PLACE in word for word in command) else _shrink_for_agent
        found = background.run(work(arguments, recorded))
    except (TraceFault, StartFailed) as fault:
        return print_error(str(fault), NOT_RUN)
    except OSError as error:
        return print_error(f"{command[0]}: {error.strerror}", NOT_RUN)
    if found is None:
        return print_error(_why_nothing(arguments), DOES_NOT_FAIL)
    _write(arguments.output, found.frames)
    before, after = len(recorded), len(found.frames)
    print(f"{found.failure}\n{before} messages before, {after} now: {arguments.output}")
    return FOUND


def _why_nothing(arguments: argparse.Namespace) -> str:
    meant = f" with {arguments.failure!r}" if arguments.failure else ""
    return f"{arguments.file} does not fail{meant} here, so there is nothing to look for"


# -- an agent that fails -----------------------------------------------------------------------------------------------


async def _shrink_for_agent(arguments: argparse.Namespace, recorded: "list[Exchange]") -> _Shortest | None:
    from dragoman.trace.attempt import client_messages
    from dragoman.trace.shrinking import Shrinker

    messages = client_messages(recorded)
    first = await _attempt(arguments, messages, recorded)
    failure = next((one for one in first.failures if arguments.failure in one), None)
    if failure is None:
        return None
    print_notice(f"the failure is: {failure}")

    async def fails(kept: "Sequence[ClientMessage]") -> bool:
        return failure in (await _attempt(arguments, kept, recorded)).failures

    shrinker = Shrinker(fails, arguments.runs)
    kept = await shrinker.shrink(messages)
    kept = await _with_shorter_prompts(arguments, recorded, kept, failure, shrinker.runs_left)
    last = await _attempt(arguments, kept, recorded)
    if failure not in last.failures:
        print_notice("the failure does not come every time; the shortest trace is the last one in which it came")
    return _Shortest(last.frames, failure)


async def _with_shorter_prompts(
    arguments: argparse.Namespace,
    recorded: "list[Exchange]",
    kept: "list[ClientMessage]",
    failure: str,
    runs: int,
) -> "list[ClientMessage]":
    """Return the messages with as few words in each prompt as still fail."""
    from dragoman.trace.shrinking import Shrinker

    for at, one in enumerate(kept):
        words = _prompt_words(one)
        if len(words) < 2:
            continue

        async def fails(fewer: Sequence[str], at: int = at, one: "ClientMessage" = one) -> bool:
            tried = [*kept[:at], _with_words(one, fewer), *kept[at + 1 :]]
            return failure in (await _attempt(arguments, tried, recorded)).failures

        shrinker = Shrinker(fails, runs)
        kept[at] = _with_words(one, await shrinker.shrink(words))
        runs = shrinker.runs_left
    return kept


def _prompt_words(one: "ClientMessage") -> list[str]:
    blocks = one.message.get("params", {}).get("prompt")
    if one.exchange.method != "session/prompt" or not isinstance(blocks, list) or len(blocks) != 1:
        return []
    text = blocks[0].get("text") if isinstance(blocks[0], dict) else None
    return text.split() if isinstance(text, str) else []


def _with_words(one: "ClientMessage", words: Sequence[str]) -> "ClientMessage":
    params = one.message["params"]
    block = {**params["prompt"][0], "text": " ".join(words)}
    return one._replace(message={**one.message, "params": {**params, "prompt": [block]}})


async def _attempt(
    arguments: argparse.Namespace, messages: "Sequence[ClientMessage]", recorded: "list[Exchange]"
) -> "AttemptResult":
    from dragoman.trace.attempt import Attempt
    from dragoman.transports.child import ChildTransport

    agent = ChildTransport.spawn(arguments.command_given, env=os.environ)
    attempt = Attempt(
        agent, messages, recorded, seconds=arguments.timeout, judge=_broken_rows, paths=_paths(arguments, recorded)
    )
    return await attempt.run()


def _broken_rows(frames: "Sequence[TraceFrame]") -> list[str]:
    """Return the rows that must hold and that the agent of a recording breaks."""
    from dragoman.conformance.passive import judge_trace
    from dragoman.trace.records import TO_CLIENT

    found = judge_trace(frames).counted()
    return list(dict.fromkeys(f"{one.row.id} is broken" for one in found if one.frame.direction == TO_CLIENT))


def _paths(arguments: argparse.Namespace, recorded: "list[Exchange]") -> list[tuple[str, str]]:
    from dragoman.cli.trace_replay import folders_in

    return list(folders_in(arguments, recorded).items())


# -- a test that fails -------------------------------------------------------------------------------------------------


async def _shrink_for_test(arguments: argparse.Namespace, recorded: "list[Exchange]") -> _Shortest | None:
    from dragoman.trace.shrinking import Shrinker

    with tempfile.TemporaryDirectory() as folder:
        wanted = await _test_code(arguments, recorded, folder)
        if wanted == 0:
            return None
        print_notice(f"the failure is: the test ends with {wanted}")
        # A request and its response are one part: half of an exchange is another failure.
        parts = [one for one in recorded if one.request is None]

        async def fails(kept: "Sequence[Exchange]") -> bool:
            return await _test_code(arguments, _whole(recorded, kept), folder) == wanted

        kept = await Shrinker(fails, arguments.runs).shrink(parts)
    frames = [one.frame for one in _whole(recorded, kept)]
    return _Shortest(frames, f"the test ends with {wanted}")


def _whole(recorded: "Sequence[Exchange]", kept: "Sequence[Exchange]") -> "list[Exchange]":
    chosen = {id(one) for one in kept}
    return [one for one in recorded if id(one if one.request is None else one.request) in chosen]


async def _test_code(arguments: argparse.Namespace, exchanges: "Sequence[Exchange]", folder: str) -> int:
    """Return how the test ends with these messages; a test that takes too long ends with 124, as of `timeout`."""
    file = os.path.join(folder, "trace.jsonl")
    if os.path.lexists(file):
        os.unlink(file)
    _write(file, [one.frame for one in exchanges], redacts=False)
    command = [word.replace(_PLACE, file) for word in arguments.command_given]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        async with asyncio.timeout(arguments.timeout):
            return await process.wait()
    except TimeoutError:
        return 124
    finally:
        _end_group(process)
        await process.wait()


def _end_group(process: Any) -> None:
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended with everything it started


def _write(path: str, frames: "Sequence[TraceFrame]", *, redacts: bool = True) -> None:
    from dragoman.cli.trace_file import open_writer

    writer = open_writer(path, "dragoman trace shrink", redacts=redacts)
    connection = writer.connect()
    for frame in frames:
        connection.frame(frame.direction, frame.data)
    writer.close()
