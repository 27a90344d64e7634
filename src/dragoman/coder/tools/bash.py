"""`bash(command, cwd?, timeout?, background?)`: a command line in a shell of its own, shown while it runs.

It is dead when it should be: at its limit, when it is stopped, or with the session if it runs in the background.
"""

import asyncio
import json
import os
import re
import shlex
import signal
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dragoman.agent.tool import DisplayTerminal, ToolCall
from dragoman.coder.execution import Start, close_start
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, flag_input, only_known, schema, text_input
from dragoman.coder.tools.background import MOST_RUNNING, BackgroundCommands
from dragoman.coder.tools.background_tools import outcome_of
from dragoman.coder.tools.contract import BadInput, CommandPlace, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import user_home
from dragoman.coder.tools.overuse import OveruseWatch
from dragoman.coder.tools.result_text import shown_text
from dragoman.coder.tools.shell_output import KEPT_BYTES, SHOW_SECONDS, ShellOutput
from dragoman.errors import PeerError, StartFailed, WorldError
from dragoman.host.command_rules import is_unrecoverable, paths_in, paths_of
from dragoman.host.decoding import without_binary
from dragoman.host.failure_text import failure_text
from dragoman.host.paths import PathRefused
from dragoman.host.process import Child
from dragoman.host.safe_git import git_programs, runs_git, shows_changes
from dragoman.host.secrets import is_credential
from dragoman.host.shell import Parsed, Unparsed, parse
from dragoman.host.text import visible_line
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem

DEADLINE_SECONDS: Final = 120
# A command in the background is looked at so long before its call ends: most mistakes show by then.
FIRST_SECONDS: Final = 1.0
# What takes longer is not for a conversation to wait for.
MOST_SECONDS: Final = 3600
# More of the model's reason is not read by a user.
_REASON_CHARACTERS: Final = 500


_PURPOSE: Final = (
    "Run a command line in bash and return its output, errors included. Use it for builds, tests, linters, git and "
    "whatever has no tool of its own; to look for files and lines use glob and grep, to read and change files the "
    "file tools. Each call is a new shell in the working folder, or in cwd: cd and variables do not last. There is no "
    "terminal and no input: pass -y, --no-pager and the like. A command is ended at its time limit with all that it "
    f"started, {DEADLINE_SECONDS} seconds unless timeout says more. "
)
# What programs say where the confinement stops them, and how much of their output is looked at for it.
_FAILED_CONFINED: Final = re.compile(
    r"read-only file system|device or resource busy|operation not permitted|network is unreachable|could not resolve"
    r"|(temporary failure in|failure in) name resolution|name or service not known|\b(EROFS|ENETUNREACH|EAI_AGAIN)\b",
    re.IGNORECASE,
)
_LOOKED_AT: Final = 16_384
_HINT: Final = (
    "[It ran confined: no network, nothing written outside of the workspace, and protected files, such as notes for "
    "agents and settings, cannot be changed. If it needs more, call it again and say in `unconfined` why: the user is "
    "asked then. Files are written by write_file and edit_file.]"
)
_FOREGROUND: Final = "Nothing goes on in the background. "
_BACKGROUND: Final = (
    "With background it is not waited for: you get an id after a second, bash_output reads on and bash_stop ends it; "
    f"for servers, watchers and long builds, up to {MOST_RUNNING} at once, without a time limit unless timeout names "
    "one, ended with the session. Do not write `&`: what is left when the shell ends is killed. In mode "
    "workspace-write each command has a network of its own, so no other reaches a server there. "
)
_LIMITS: Final = (
    "Long output loses its middle, so ask for little. The user may be asked first. "
    'Example: {"command": "python -m pytest -q tests/test_api.py", "timeout": 300}'
)


def _schema(*, background: bool) -> dict[str, Any]:
    """Return the schema of the input, with or without `background`."""
    flag = {"type": "boolean", "description": "return at once, and let it run on"}
    return schema(
        ["command"],
        command={"type": "string"},
        cwd={"type": "string", "description": "the folder to run in, inside the workspace; its root if left out"},
        timeout={
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_SECONDS,
            "description": f"seconds; {DEADLINE_SECONDS} if left out",
        },
        unconfined={
            "type": "string",
            "description": "Why the command needs the network, or to write outside of the workspace. Only in mode "
            "workspace-write, where a command has neither, and best after it has failed for want of it: the user is "
            "asked whether it may run unconfined, and shown this.",
        },
        **({"background": flag} if background else {}),
    )


class Bash:
    """`bash(command, cwd?, timeout?, background?)`, the timeout in seconds."""

    name = "bash"
    kind = "execute"
    does: ActionKind = "execute"

    description = _PURPOSE + _BACKGROUND + _LIMITS
    schema = _schema(background=True)

    def __init__(self, commands: BackgroundCommands | None = None) -> None:
        """`commands`: where those in the background are kept; None: there is no `background`."""
        self._commands = commands
        if commands is None:
            self.description = _PURPOSE + _FOREGROUND + _LIMITS
            self.schema = _schema(background=False)

    def check(self, call: JudgedCall) -> None:
        only_known(call, *self.schema["properties"])
        flag_input(call, "background")
        if not text_input(call, "command").strip():
            raise BadInput("bash needs 'command' as a command line that is not empty.")
        if "cwd" in call.input:
            text_input(call, "cwd")
        _wanted_freedom(call)
        if (count_input(call, "timeout", 1) or 0) > MOST_SECONDS:
            raise BadInput(f"bash takes a 'timeout' of up to {MOST_SECONDS} seconds.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        line = _line_of(call, context)
        wanted = _wanted_freedom(call)
        act, reason = await asyncio.to_thread(command_action, line.judged, context, wanted)
        content = [ContentItem(Text(reason))] if reason else []
        marks = ["Unconfined: "] * bool(act.unconfined) + ["In the background: "] * flag_input(call, "background")
        title = "".join([*marks, shown_text(line.judged)])
        return Preview(title, [act], content=content, stamp=_stamp(line.judged, context))

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        line = _line_of(call, context)
        seconds = count_input(call, "timeout", 1) or DEADLINE_SECONDS
        if line.judged != call.acts[0].subject or _stamp(line.judged, context) != call.stamp:
            raise BadInput("A path in the command leads elsewhere than when it was shown.")
        looks = not approved.asked and all(act.harmless for act in call.acts)
        if looks and not (await asyncio.to_thread(command_action, line.judged, context))[0].harmless:
            raise BadInput("The configuration of git has changed meanwhile. Try again.")
        is_unasked = not approved.asked and all(act.confined for act in call.acts)
        commands = self._commands if flag_input(call, "background") else None
        if commands is not None:
            commands.check_room()
        elif not is_unasked and context.execution.terminal_of_editor(looks=looks):
            return await self._in_the_editor(line, seconds, shown, context)
        # `exec` joins stderr to stdout before anything is printed, so the order of the two is kept.
        argv = ["/bin/bash", "--noprofile", "--norc", "-c", f"exec 2>&1\n{line.script}"]
        try:
            if approved.asked and any(act.unconfined for act in call.acts):
                start = context.execution.start_unconfined(argv)
            elif looks:
                start = await context.execution.start_looking(argv)
            elif is_unasked:
                start = await context.execution.start_confined(argv)
            else:
                start = await context.execution.start(argv, asked=approved.asked)
        except WorldError as error:
            return ToolOutcome(f"The command was not run: {error}", failed=True)
        if commands is not None:
            return await _in_the_background(commands, line, start, count_input(call, "timeout", 1), shown, context)
        notes: Sequence[str] = ()
        try:
            outcome = await self._here(line, start, seconds, shown, context)
            if is_unasked:
                outcome = _with_hint(outcome)
        finally:
            notes = await close_start(start)
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
        output = ShellOutput(child)
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

    async def _follow(self, child: Child, output: ShellOutput, screen: DisplayTerminal, seconds: float) -> ToolOutcome:
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

    async def _show(self, output: ShellOutput, screen: DisplayTerminal) -> None:
        fresh = output.fresh()
        if fresh:
            await screen.write(fresh)


async def _in_the_background(
    commands: BackgroundCommands,
    line: "_Line",
    start: Start,
    seconds: float | None,
    shown: ToolCall,
    context: ToolContext,
) -> ToolOutcome:
    """Start a command and return what it prints first. One whose call is stopped meanwhile is killed."""
    try:
        child = context.guardian.start(start.argv, cwd=context.roots.folder, env=start.environment)
    except (StartFailed, PathRefused) as error:
        return ToolOutcome("\n".join([str(error), *await close_start(start)]), failed=True)
    command = commands.begin(
        line.judged, child, start, context.session.terminal(line.command, line.folder or None), context
    )
    if seconds is not None:
        command.limit(seconds)
    try:
        await shown.update(content=[command.screen.item])
        await command.wait(FIRST_SECONDS)
    except BaseException:
        command.kill("stopped with the call that started it")
        raise
    outcome = outcome_of(command)
    return outcome._replace(failed=command.has_failed) if command.has_ended else outcome


def _with_hint(outcome: ToolOutcome) -> ToolOutcome:
    """Return the outcome of a confined command, with a hint where it seems to have failed for that."""
    if not (outcome.failed and _FAILED_CONFINED.search(outcome.text[-_LOOKED_AT:])):
        return outcome
    return outcome._replace(text=f"{outcome.text}\n{_HINT}")


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


def _wanted_freedom(call: JudgedCall) -> str:
    """Return why the model wants a command to run unconfined; empty: it does not."""
    if call.input.get("unconfined") is None:
        return ""
    return visible_line(text_input(call, "unconfined").strip())[:_REASON_CHARACTERS]


def command_action(command: str, context: CommandPlace, wanted: str = "") -> tuple[Action, str]:
    """Return what running it is, and why that is more than it looks like, if it is.

    `wanted` is why the model wants to leave the confinement. Blocks: looks at git's configuration.
    """
    act = _act(command, context)
    parsed = parse(command)
    if wanted:
        act = act._replace(harmless=False)
    if act.harmless and (reason := context.execution.cannot_look()):
        return act._replace(harmless=False), f"It only looks, and nothing here would keep it to that: {reason}"
    if not act.harmless:
        reason = context.execution.needs_freedom(command, wanted)
        if reason:
            return act._replace(guarded=True, unconfined=reason), reason
        return act._replace(confined=_needs_no_question(parsed, context)), ""
    if not runs_git(parsed):
        return act, ""
    try:
        folder = context.roots.folder
    except PathRefused as error:
        raise BadInput(str(error)) from None
    reason = git_programs(folder, context.roots.real, context.environment, diffs=shows_changes(parsed))
    if not reason:
        return act, ""
    # Not even confined without a question: it would show what another repository holds, or run what the workspace says.
    return act._replace(harmless=False), f"Git may do more here than look at the workspace: {reason}."


def _needs_no_question(parsed: Parsed | Unparsed, context: CommandPlace) -> bool:
    """Return whether a command runs confined, and is not known to read credentials: those are hidden unless it asks."""
    home = user_home(context)
    named = [led for path in paths_of(parsed) or () for one in _names_in(path) if (led := _led(one, context))]
    reads_credentials = any(is_credential(path, home, is_folder=os.path.isdir(path)) for path in named)
    return not reads_credentials and context.execution.keeps_confined()


def _names_in(path: str) -> set[str]:
    """Return the paths that a word may mean: in `HEAD:.env` the one for git is behind the colon."""
    return {path, path.rpartition(":")[2] or path}


def _act(command: str, context: CommandPlace) -> Action:
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


def _is_free_to_read(path: str, context: CommandPlace, home: str) -> bool:
    """Return whether a path leads inside, and to no credentials."""
    led = [_led(one, context) for one in _names_in(path)]
    return all(one is not None and not is_credential(one, home, is_folder=os.path.isdir(one)) for one in led)


def _led(path: str, context: CommandPlace) -> str | None:
    """Return where a path leads, if that is inside."""
    try:
        return context.roots.place(path).path
    except PathRefused:
        return None


def command_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a command: no terminal features, and no pager or git prompt that waits for input."""
    # With a CDPATH, `cd src` goes elsewhere than it says.
    environment = {name: value for name, value in environment.items() if name != "CDPATH"}
    return environment | {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
