"""`bash(command, cwd?, timeout?)`: a command line in a shell of its own, shown while it runs, dead when it should be."""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.agent.terminal import DisplayTerminal
from dragoman.agent.tool import ToolCall
from dragoman.coder.execution import Start
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import user_home
from dragoman.coder.tools.overuse import OveruseWatch
from dragoman.coder.tools.result_text import shown_text
from dragoman.errors import PeerError, StartFailed, WorldError
from dragoman.host.command_rules import is_unrecoverable, paths_in, paths_of
from dragoman.host.decoding import without_binary
from dragoman.host.failure_text import failure_text
from dragoman.host.paths import PathRefused
from dragoman.host.pipes import PolledReadEnd
from dragoman.host.process import Child
from dragoman.host.safe_git import git_programs, runs_git, shows_changes
from dragoman.host.secrets import is_credential
from dragoman.host.shell import parse
from dragoman.host.text import visible_line
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem

DEADLINE_SECONDS: Final = 120
# What takes longer is not for a conversation to wait for.
MOST_SECONDS: Final = 3600
# Kept for the model: the head says what was tried, the tail how it ended.
KEPT_BYTES: Final = 1024 * 1024
# Output is shown at most this often; a million tiny lines are a few hundred updates.
SHOW_SECONDS: Final = 0.05


class Bash:
    """`bash(command, cwd?, timeout?)`, the timeout in seconds."""

    name = "bash"
    kind = "execute"
    does: ActionKind = "execute"
    description = (
        "Run a command line in bash and return its output, errors included. Use it for builds, tests, linters, git and "
        "whatever has no tool of its own; to look for files and lines use glob and grep, to read and change files the "
        "file tools. Each call is a new shell in the working folder, or in cwd: cd and variables do not last. There is no terminal and no input: pass -y, --no-pager and the like. A command is "
        f"ended at its time limit with all that it started, {DEADLINE_SECONDS} seconds unless timeout says more; "
        "nothing goes on in the background. Long output loses its middle, so ask for little. The user may be asked "
        'first. Example: {"command": "python -m pytest -q tests/test_api.py", "timeout": 300}'
    )
    schema = schema(
        ["command"],
        command={"type": "string"},
        cwd={"type": "string", "description": "the folder to run in, inside the workspace; its root if left out"},
        timeout={
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_SECONDS,
            "description": f"seconds; {DEADLINE_SECONDS} if left out",
        },
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "command", "cwd", "timeout")
        if not text_input(call, "command").strip():
            raise BadInput("bash needs 'command' as a command line that is not empty.")
        if "cwd" in call.input:
            text_input(call, "cwd")
        if (count_input(call, "timeout", 1) or 0) > MOST_SECONDS:
            raise BadInput(f"bash takes a 'timeout' of up to {MOST_SECONDS} seconds.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        line = _line_of(call, context)
        act, reason = await asyncio.to_thread(_action_of, line.judged, context)
        content = [ContentItem(Text(reason))] if reason else []
        title = f"Unconfined: {shown_text(line.judged)}" if act.unconfined else shown_text(line.judged)
        return Preview(title, [act], content=content, stamp=_stamp(line.judged, context))

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        line = _line_of(call, context)
        seconds = count_input(call, "timeout", 1) or DEADLINE_SECONDS
        if line.judged != call.acts[0].subject or _stamp(line.judged, context) != call.stamp:
            raise BadInput("A path in the command leads elsewhere than when it was shown.")
        looks = not approved.asked and all(act.harmless for act in call.acts)
        if looks and not (await asyncio.to_thread(_action_of, line.judged, context))[0].harmless:
            raise BadInput("The configuration of git has changed meanwhile. Try again.")
        if context.execution.terminal_of_editor():
            return await self._in_the_editor(line, seconds, shown, context)
        # `exec` joins stderr to stdout before anything is printed, so the order of the two is kept.
        argv = ["/bin/bash", "--noprofile", "--norc", "-c", f"exec 2>&1\n{line.script}"]
        try:
            if approved.asked and any(act.unconfined for act in call.acts):
                start = context.execution.start_unconfined(argv)
            elif looks:
                start = await context.execution.start_looking(argv)
            else:
                start = await context.execution.start(argv, asked=approved.asked)
        except WorldError as error:
            return ToolOutcome(f"The command was not run: {error}", failed=True)
        notes: Sequence[str] = ()
        try:
            outcome = await self._here(line, start, seconds, shown, context)
        finally:
            notes = [visible_line(note) for note in await _close(start)]  # with names that the command has chosen
            for note in notes:
                await shown.add(note)
        return outcome._replace(text="\n".join([outcome.text, *(f"[{note}]" for note in notes)])) if notes else outcome

    async def _in_the_editor(self, line: "_Line", seconds: float, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        """Run the command in a terminal of the client, where the user sees it as any other."""
        try:
            terminal = await context.session.client_terminal(
                "/bin/bash",
                ["--noprofile", "--norc", "-c", line.command],
                cwd=line.folder or None,
                output_byte_limit=KEPT_BYTES,
            )
            async with terminal:
                await shown.update(content=[terminal.item])
                try:
                    exited = await asyncio.wait_for(terminal.wait(), seconds)
                except TimeoutError:
                    await terminal.kill()
                    exited = None
                output = await terminal.output()
        except PeerError as error:
            return ToolOutcome(f"The editor's terminal failed: {failure_text(error)}", failed=True)
        text = without_binary(output.output) + ("\n[the beginning was cut]" if output.truncated else "")
        if exited is None:
            return ToolOutcome(f"{text}\n[stopped after {seconds} s]", failed=True)
        return _ended(text, exited.exit_code or 0, exited.signal or None)

    async def _here(
        self, line: "_Line", start: Start, seconds: float, shown: ToolCall, context: ToolContext
    ) -> ToolOutcome:
        try:
            child = context.guardian.start(start.argv, cwd=context.roots.folder, env=start.environment)
        except (StartFailed, PathRefused) as error:
            return ToolOutcome(str(error), failed=True)
        screen = context.session.terminal(line.command, line.folder or None)
        output = _Output(child)
        overuse = OveruseWatch(child, start)
        try:
            await shown.update(content=[screen.item])
            async with screen:
                await screen.allow_stopping(child.kill_now)
                return overuse.with_excess(await self._follow(child, output, screen, seconds))
        finally:
            overuse.close()
            output.stop()
            # SIGKILL at once: the deadline has passed, or the user has cancelled and waits, or it has exited.
            child.kill_now()
            await child.stop()
            context.guardian.leave(child.pid)

    async def _follow(self, child: Child, output: "_Output", screen: DisplayTerminal, seconds: float) -> ToolOutcome:
        child.close_stdin()
        exited = asyncio.ensure_future(child.wait())
        late = asyncio.get_running_loop().time() + seconds
        try:
            while not exited.done():
                left = late - asyncio.get_running_loop().time()
                if left <= 0:
                    child.kill_now()
                    await self._show(output, screen)
                    await screen.exit(None, "SIGKILL")
                    return ToolOutcome(output.text() + f"\n[stopped after {seconds} s]", failed=True)
                await asyncio.wait([exited], timeout=min(SHOW_SECONDS, left))
                await self._show(output, screen)
        except asyncio.CancelledError:
            child.kill_now()
            await screen.exit(None, "SIGKILL")
            raise
        finally:
            exited.cancel()
        output.finish()
        await self._show(output, screen)
        code = child.exit_code or 0
        name = signal.Signals(-code).name if code < 0 else None
        await screen.exit(None if name else code, name)
        # The command itself writes its errors to stdout; what is left on stderr is of the programs that start it.
        stderr_text = child.stderr_tail().strip() if code else ""
        return _ended(
            output.text() + (f"\n[said while it was started: {stderr_text}]" if stderr_text else ""), code, name
        )

    async def _show(self, output: "_Output", screen: DisplayTerminal) -> None:
        fresh = output.fresh()
        if fresh:
            await screen.write(fresh)


async def _close(start: Start) -> Sequence[str]:
    """Close a start to its end, even if the turn is cancelled once more meanwhile."""
    closing = asyncio.ensure_future(asyncio.to_thread(start.close))
    try:
        return await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise


def _ended(text: str, code: int, signal_name: str | None) -> ToolOutcome:
    if signal_name:
        return ToolOutcome(f"{text}\n[ended by {signal_name}]", failed=True, raw={"signal": signal_name})
    ending = "" if code == 0 else f"\n[exit code {code}]"
    return ToolOutcome(text + ending, failed=code != 0, raw={"exitCode": code})


class _Line(NamedTuple):
    """A command, and the folder it is to run in, by its whole path; empty: the folder of the session."""

    command: str
    folder: str

    @property
    def judged(self) -> str:
        """The line that is shown, judged and remembered: a rule about it is about this folder alone."""
        return f"cd {shlex.quote(self.folder)} && {self.command}" if self.folder else self.command

    @property
    def script(self) -> str:
        """The text for the shell. Nothing of it runs where the folder cannot be entered, also of `a; b` and `a & b`."""
        return f"cd {shlex.quote(self.folder)} || exit\n{self.command}" if self.folder else self.command


def _line_of(call: JudgedCall, context: ToolContext) -> _Line:
    """Return the line of a call. Raises `BadInput` for a folder outside of the workspace."""
    command = text_input(call, "command")
    if "cwd" not in call.input:
        return _Line(command, "")
    try:
        folder = context.roots.place(text_input(call, "cwd")).path
        return _Line(command, "" if folder == context.roots.folder else folder)
    except PathRefused as error:
        raise BadInput(str(error)) from None


def _action_of(command: str, context: ToolContext) -> tuple[Action, str]:
    """Return what running it is, and why that is more than it looks like, if it is.

    Blocks: looks at git's configuration.
    """
    act = _act(command, context)
    parsed = parse(command)
    if not act.harmless:
        reason = context.execution.needs_freedom(command)
        return (act._replace(guarded=True, unconfined=reason), reason) if reason else (act, "")
    if not runs_git(parsed):
        return act, ""
    try:
        folder = context.roots.folder
    except PathRefused as error:
        raise BadInput(str(error)) from None
    reason = git_programs(folder, context.roots.real, context.environment, diffs=shows_changes(parsed))
    return (
        (act._replace(harmless=False), f"Git may do more here than look at the workspace: {reason}.")
        if reason
        else (act, "")
    )


def _act(command: str, context: ToolContext) -> Action:
    """Return the action of running a command, judged by its text."""
    parsed = parse(command)
    blocked_reason = is_unrecoverable(command)
    reads = paths_of(parsed)
    home = user_home(context)
    inside = tuple(path for path in dict.fromkeys(paths_in(parsed)) if _is_free_to_read(path, context, home))
    return Action(
        "execute",
        command,
        harmless=reads is not None and set(inside) >= set(reads),
        blocked_reason=f"it cannot be undone: {blocked_reason}" if blocked_reason else "",
        paths_in_workspace=inside,
    )


def _stamp(command: str, context: ToolContext) -> str:
    """Return where it runs, and where the paths lead that it is known to read: links can be turned."""
    try:
        folder = context.roots.folder
    except PathRefused as error:
        raise BadInput(str(error)) from None
    return json.dumps([folder, *(_led(path, context) for path in paths_in(parse(command)))])


def _is_free_to_read(path: str, context: ToolContext, home: str) -> bool:
    """Return whether a path leads inside, and to no credentials.

    In `HEAD:.env` the path for git is behind the colon.
    """
    led = [_led(one, context) for one in {path, path.rpartition(":")[2] or path}]
    return all(one is not None and not is_credential(one, home, is_folder=os.path.isdir(one)) for one in led)


def _led(path: str, context: ToolContext) -> str | None:
    """Return where a path leads, if that is inside."""
    try:
        return context.roots.place(path).path
    except PathRefused:
        return None


class _Output:
    """What a command prints: head and tail kept, the rest read and thrown away."""

    def __init__(self, child: Child) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._fresh = bytearray()
        self._shown = 0
        self._end = PolledReadEnd(child.stdout, self._take, lambda error: None)
        self._end.resume()

    def fresh(self) -> bytes:
        """Return what came since the last time, as far as it is still worth showing."""
        data, self._fresh = bytes(self._fresh), bytearray()
        return data

    def text(self) -> str:
        """Return the output that is kept; of binary output a sentence."""
        middle = f"\n[… {self._dropped} bytes cut …]\n".encode() if self._dropped else b""
        return without_binary((bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "replace"))

    def finish(self) -> None:
        """Read what the exited command has left in its pipe, and wait for no more."""
        self._end.finish()

    def stop(self) -> None:
        """Stop reading."""
        self._end.pause()

    def _take(self, data: bytes) -> None:
        half = KEPT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * half:
            self._dropped += len(self._tail) - half
            del self._tail[:-half]
        # A screen shows the last of a flood, not all of it.
        if self._shown < KEPT_BYTES:
            self._fresh += data[: KEPT_BYTES - self._shown]
            self._shown += len(data)


def command_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a command: no terminal features, and no pager or git prompt that waits for input."""
    # With a CDPATH, `cd src` goes elsewhere than it says.
    environment = {name: value for name, value in environment.items() if name != "CDPATH"}
    return environment | {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
