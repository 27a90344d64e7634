"""One turn with an agent, from its start to an exit code: what `dragoman run` does.

Promise: however it ends, the agent and what it started are gone, and in JSON the last line is the result. Ctrl-C, a
signal and a timeout cancel politely first; a second Ctrl-C leaves at once.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.cli.agent_connection import connect_to, find_own_session, reopen_session, set_chosen_options
from dragoman.cli.agent_failures import error_fields, failure_sentence, is_a_bug, refusal_of_own_agent
from dragoman.cli.common_options import NEWEST
from dragoman.cli.errors import FAILED, USAGE, CommandError, print_error
from dragoman.cli.failed_changes import FailedChanges
from dragoman.cli.offered_services import Offer, denial_summary
from dragoman.cli.recordings import recordings_of
from dragoman.cli.target import Target
from dragoman.cli.terminal.interrupts import Interrupts
from dragoman.cli.terminal.sanitize import sanitize, sanitize_line
from dragoman.cli.terminal.stderr import Stderr
from dragoman.errors import DragomanError, RequestFailed, TimedOut, UsageError
from dragoman.host.failure_text import failure_text
from dragoman.vocabulary.events import (
    AgentMessage,
    AgentMessageChunk,
    Notice,
    ToolCallContentChunk,
    ToolCallUpdate,
    UsageChanged,
)
from dragoman.vocabulary.state import SessionState

if TYPE_CHECKING:
    from dragoman.cli.handoff import SessionRecord
    from dragoman.cli.output_schema import OutputSchema
    from dragoman.cli.terminal.event_text import EventText
    from dragoman.cli.terminal.json_lines import JsonLines
    from dragoman.cli.terminal.json_result import JsonResult
    from dragoman.cli.terminal.notifier import Notifier
    from dragoman.cli.terminal.questions import TerminalQuestions
    from dragoman.cli.terminal.turn_screen import TurnScreen
    from dragoman.client.connect import Client
    from dragoman.client.conversation import Conversation, Turn
    from dragoman.store.recording import SessionRecorder
    from dragoman.vocabulary.content import Content
    from dragoman.vocabulary.events import AnyEvent, Cost, Usage
    from dragoman.vocabulary.services import PermissionAnswer, PermissionOption, RequestPermission

# With those of `errors` the exit codes of `dragoman run`, a promise to scripts: its `--help` lists them.
OK: Final = 0
UNWRITTEN: Final = 1
DENIED: Final = 5
TIMED_OUT: Final = 124
CANCELLED: Final = 130
_CODES: Final = {"end_turn": OK, "refusal": 3, "max_tokens": 4, "max_turn_requests": 4, "cancelled": CANCELLED}
# A turn that was cancelled may take so long to end by itself.
CANCEL_SECONDS: Final = 3.0
# Turns in all that an answer which has to fit a schema may take.
ATTEMPTS: Final = 3
# Denials and pieces of noise that are told one by one.
_MOST_LINES: Final = 5
# Refusals of a person that the result in JSON names.
_REFUSALS: Final = 100
# Of one notice, or one piece of trouble.
_SENTENCE: Final = 1000


class OneTurn:
    """One run of `dragoman run`: a prompt, its turn and the exit code."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        target: Target,
        folder: str,
        words: Sequence[str],
        piped: str | None,
        schema: "OutputSchema | None" = None,
    ) -> None:
        self._arguments = arguments
        self._target = target
        self._folder = folder
        self._prompt_words = words
        self._piped = piped
        self._json: JsonLines | JsonResult | None = None
        self._screen: TurnScreen
        self._event_text: EventText
        self._offer: Offer | None = None  # until the agent is being connected
        self._stderr = Stderr(self._show_stderr if arguments.show_stderr else None)
        self._is_initialized = False
        self._turn: Turn | None = None
        self._session_id: str | None = None
        self._stop_reason = ""
        self._usage: Usage | None = None
        self._schema = schema
        self._answer = SessionState()  # the agent's messages of the turn that runs, where they have to fit the schema
        self._output: object = None  # what was answered, by that schema
        self._misfit = "there was no answer"  # what is wrong with it
        self._cost: Cost | None = None  # of the session, as the agent has told it last
        self._error: dict[str, object] | None = None
        self._noise = 0
        self._changes = FailedChanges()
        self._record: SessionRecord | None = None  # of the session that this one goes on with
        self._recorder: SessionRecorder | None = None
        self._notifier: Notifier | None = None  # where stderr is a terminal
        self._is_called_off = False  # by a signal or the clock
        self._refusals: list[dict[str, str]] = []  # what a person has refused
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def perform(self) -> int:
        """Run the turn and return the exit code."""
        from dragoman.cli.terminal.event_text import EventText
        from dragoman.cli.terminal.turn_screen import TurnScreen

        if sys.stdout is None:  # started without one
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, ASYNC230
        self._screen = TurnScreen(sys.stdout, sys.stderr)
        self._event_text = EventText()
        if self._arguments.format == "stream-json":
            from dragoman.cli.terminal.json_lines import JsonLines

            self._json = JsonLines(sys.stdout.write)
        elif self._arguments.format == "json" or self._schema is not None:
            from dragoman.cli.terminal.json_result import JsonResult

            self._json = JsonResult(sys.stdout.write, output_alone=self._arguments.format == "text")
        try:
            code = await self._run_supervised()
            if self._json is not None:
                denied = [] if self._offer is None else [denial.as_json() for denial in self._offer.denials]
                denied += self._refusals
                self._json.result(
                    self._session_id,
                    self._stop_reason or "error",
                    self._usage,
                    self._error,
                    denied,
                    self._cost,
                    output=UNSET if self._schema is None or self._misfit else self._output,
                )
            sys.stdout.flush()
        except BrokenPipeError:
            raise  # the reader of stdout has closed its pipe; `main` ends quietly
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again, at exit
            return print_error(f"stdout: cannot write there: {error.strerror}", UNWRITTEN)
        return code

    async def _run_supervised(self) -> int:
        """Run the turn, and end it early at a signal or after the time limit."""
        with Interrupts() as interrupts:
            work = asyncio.ensure_future(self._run())
            calling_off = asyncio.ensure_future(interrupts.wait())
            either: list[asyncio.Future[Any]] = [work, calling_off]
            await asyncio.wait(either, timeout=self._arguments.timeout, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                calling_off.cancel()
                return work.result()
            code = CANCELLED if calling_off.done() else TIMED_OUT
            calling_off.cancel()
            if code == CANCELLED and self._notifier is not None:
                self._notifier.user_acted()
            await self._call_off(work)
            self._stop_reason = "cancelled"
            if code == TIMED_OUT:
                sentence = f"not done after {self._arguments.timeout:g} s: cancelled"
                self._fail(sentence, {"message": sentence})
            return code

    async def _call_off(self, work: "asyncio.Future[int]") -> None:
        self._is_called_off = True
        if self._turn is not None and self._offer is not None:
            # First: a question that comes from now on is of a cancelled turn, whatever the policy says to it.
            self._offer.dismiss()
            await self._turn.cancel()
            await asyncio.wait([work], timeout=CANCEL_SECONDS)
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()

    # -- the work ----------------------------------------------------------------------------------------------------

    async def _run(self) -> int:
        try:
            async with AsyncExitStack() as stack:
                await self._converse(stack)
        except (CommandError, UsageError) as error:
            # A request that the agent has answered with an error is told whole to programs.
            cause = error.__cause__ if isinstance(error.__cause__, RequestFailed) else error
            return self._fail(str(error), error_fields(cause), USAGE)
        except DragomanError as error:
            return self._report_failure(error, await self._stderr.last_words() if is_a_bug(error) else "")
        return self._exit_code()

    async def _converse(self, stack: AsyncExitStack) -> None:
        wanted = await self._session_to_resume()
        self._notifier = self._find_notifier(stack)
        client = await self._connect(stack)
        self._is_initialized = True
        conversation = await self._session(client, wanted)
        self._session_id = conversation.id
        recordings = recordings_of(self._target.recorded_as, self._print_warning)
        if recordings is not None:
            stack.push_async_callback(recordings.close)
            self._recorder = recordings.of(conversation.id, self._folder)
        await set_chosen_options(conversation, self._target, self._arguments, is_reopened=wanted is not None)
        await self._prompt_until_it_fits(conversation, self._prompt(client), stack)

    async def _prompt_until_it_fits(
        self, conversation: "Conversation", prompt: "str | list[Content]", stack: AsyncExitStack
    ) -> None:
        """Run the turn; where the answer has to fit a schema and does not, run another that says so."""
        self._stderr.begin()
        for attempt in range(1, ATTEMPTS + 1):
            await self._take_turn(conversation, prompt, stack)
            if self._schema is None or self._stop_reason != "end_turn":
                return
            checked = self._schema.check(self._answer.text(AgentMessage))
            self._output, self._misfit = checked
            if not checked.complaint or attempt == ATTEMPTS:
                return
            self._print_warning(f"asking again, because the answer does not fit: {checked.complaint}")
            prompt = self._schema.again(checked.complaint)

    async def _take_turn(
        self, conversation: "Conversation", prompt: "str | list[Content]", stack: AsyncExitStack
    ) -> None:
        self._answer = SessionState()
        ticking = asyncio.ensure_future(self._screen.tick(lambda: self._event_text.running))
        stack.callback(ticking.cancel)
        turn = self._turn = conversation.prompt(prompt)
        try:
            async for event in turn:
                await self._quiet.wait()
                self._show([event, *turn.ready()])
        finally:
            ticking.cancel()
            self._stop_reason, self._usage = turn.stop_reason, _sum(self._usage, turn.usage)
            self._note_usage(turn.usage)
            if self._json is None:
                self._screen.show(self._event_text.finish())
                self._screen.finish()
                self._print_used()
            if self._notifier is not None:
                self._notifier.turn_ended()

    def _find_notifier(self, stack: AsyncExitStack) -> "Notifier | None":
        """Return what calls the user back, until the stack ends; None where stderr is no terminal."""
        from dragoman.cli.terminal.turn_screen import is_terminal

        if not is_terminal(sys.stderr):
            return None
        from dragoman.cli.settings import read_settings
        from dragoman.cli.terminal.notifier import Notifier

        notifier = Notifier(sys.stderr, self._folder, read_settings(), os.environ)
        stack.push_async_callback(notifier.close)
        return notifier

    def _prompt(self, client: "Client") -> "str | list[Content]":
        prompt = self._words(client)
        if self._record is None:
            return prompt
        from dragoman.vocabulary.content import Text

        blocks = [Text(prompt)] if isinstance(prompt, str) else prompt
        return [*blocks, *self._record.blocks(client.agent.capabilities)]

    def _words(self, client: "Client") -> "str | list[Content]":
        text = self._text() + ("" if self._schema is None else self._schema.instructions)
        typed = " ".join([*self._prompt_words, *self._arguments.image])
        if "@" not in typed:
            return text
        from dragoman.cli.terminal.attachments import prompt_with_files

        prompt = prompt_with_files(text, self._folder, client.agent.capabilities, typed=typed)
        if prompt.problems:
            raise CommandError(f"{sanitize_line('; '.join(prompt.problems))}. Nothing was sent")
        for name in prompt.missing:
            self._screen.say(f"dragoman: @{sanitize_line(name)} is no file here; it is sent as a word")
        return prompt.blocks

    def _text(self) -> str:
        """Return the words as they were typed; what came on stdin stands apart."""
        piped = "" if self._piped is None else self._piped.rstrip("\n")
        if self._prompt_words[:1] == ["-"] and len(self._prompt_words) > 1 and piped.lstrip().startswith("/"):
            piped = f"Piped in:\n{piped}"  # beside words of the user it is data, and no slash command
        parts = [piped if word == "-" else word for word in self._prompt_words]
        return " ".join(parts) if self._piped is None else "\n\n".join(part for part in parts if part)

    async def _connect(self, stack: AsyncExitStack) -> "Client":
        questions = self._terminal_questions(stack)
        settings: dict[str, Any] = {
            "on_noise": self._on_noise,
            "on_trouble": self._print_warning,
            "on_stderr": self._stderr.receive,
            "on_event": lambda conversation, event: self._hear_outside(event),
        }
        if questions is not None:
            from dragoman.cli.terminal.forms import form_callbacks

            settings |= form_callbacks(questions)
        level, target = self._arguments.allow, self._target
        ask = None if questions is None else partial(self._ask, questions)
        self._offer = Offer(
            self._folder,
            lambda: target.run_policy(level, self._folder),
            ask,
            self._terminal_output,
            agent=target.recorded_as,
        )
        return await connect_to(stack, target, self._folder, self._offer, self._arguments, settings)

    def _terminal_questions(self, stack: AsyncExitStack) -> "TerminalQuestions | None":
        """Return the questions on the terminal that stderr is.

        None without a terminal there, or if stdin is a pipe with other data.
        """
        from dragoman.cli.terminal.turn_screen import is_terminal, size

        if not is_terminal(sys.stderr) or (self._piped is None and not is_terminal(sys.stdin)):
            return None
        from dragoman.cli.terminal.permission_box import secret_word
        from dragoman.cli.terminal.questions import TerminalQuestions

        return TerminalQuestions.find(
            stack, sys.stderr, self._screen.ask, size, secret_word(), self._hold, folder=self._folder
        )

    async def _ask(
        self, questions: "TerminalQuestions", request: "RequestPermission"
    ) -> "PermissionOption | PermissionAnswer | None":
        from dragoman.vocabulary.services import PermissionOption

        self._event_text.on_question(request)
        option = await questions.permission(request)
        is_yes = isinstance(option, PermissionOption) and option.allows
        if not is_yes and len(self._refusals) < _REFUSALS:
            self._refusals.append({"what": request.title, "reason": "you said no"})
        return option

    def _hold(self, asking: bool) -> None:
        """While a question stands there, nothing is written under it; what came before it is shown first."""
        if asking and self._turn is not None:
            self._show(self._turn.ready())
        self._screen.asking = asking
        if asking:
            self._quiet.clear()
        else:
            self._quiet.set()
        if self._notifier is not None:
            notify = self._notifier.question_shown if asking else self._notifier.user_acted
            notify()

    async def _session_to_resume(self) -> str | None:
        """Return the session to go on with. Where it is one of ours we know its folder, and work there."""
        wanted: str | None = self._arguments.resume
        if self._arguments.from_session is not None:
            from dragoman.cli.handoff import read_from_session

            wanted, self._record, self._folder = await read_from_session(
                self._arguments, "--resume", wanted, self._folder, self._target
            )
        if not wanted or not self._target.ours:
            return wanted
        wanted, stored_folder = await find_own_session(wanted, self._folder)
        if self._arguments.cwd is None:
            self._folder = stored_folder
        return wanted

    async def _session(self, client: "Client", wanted: str | None) -> "Conversation":
        if wanted is None:
            return await client.new_session(self._folder, additional_directories=self._arguments.add_dir)
        if wanted == NEWEST:
            from dragoman.cli.terminal.folder_sessions import FolderSessions

            wanted = await FolderSessions(self._target, self._folder).newest(client)
        try:
            return await reopen_session(client, wanted, self._folder, replay=False)
        except RequestFailed as error:
            raise CommandError(f"--resume {wanted}: {sanitize_line(failure_text(error))}") from error

    def _show(self, events: "Sequence[AnyEvent]") -> None:
        for event in events:
            if self._recorder is not None:
                self._recorder.record(event)
            if event.__class__ is UsageChanged:
                self._note_cost(event)
            if self._schema is not None and isinstance(event, AgentMessage | AgentMessageChunk):
                self._answer.apply(event)
            if event.__class__ is ToolCallUpdate or event.__class__ is ToolCallContentChunk:
                self._changes.apply(event)
        if self._json is not None:
            self._screen.pause()
            for event in events:
                self._json.event(event)
            sys.stdout.flush()
            return
        for event in events:
            pieces = self._event_text.render(event)
            if self._screen.answer_alone:
                self._warn(event)
                if any(piece.form == "break" for piece in pieces):
                    self._print_warning("the answer so far is broken off; the whole of it follows on a new line")
            self._screen.show(pieces)
        self._screen.flush()

    def _hear_outside(self, event: "AnyEvent") -> None:
        if self._recorder is not None:
            self._recorder.record(event)
        if isinstance(event, UsageChanged):
            self._note_cost(event)
        self._warn(event)

    def _note_cost(self, event: UsageChanged) -> None:
        if event.cost is not UNSET:  # absent leaves what was said before
            self._cost = event.cost

    def _note_usage(self, usage: "Usage | None") -> None:
        from dragoman.cli.terminal.event_text import cost_in

        self._cost = cost_in(usage) or self._cost

    def _print_used(self) -> None:
        """Print what the turn has used and the session has cost, on stderr, as far as the agent has said it."""
        from dragoman.cli.terminal.event_text import cost_text

        words = []
        if self._usage is not None and self._usage.total_tokens:
            words.append(f"{self._usage.input_tokens:,} tokens in, {self._usage.output_tokens:,} out")
        if self._cost is not None:
            words.append(f"the session has cost {cost_text(self._cost)}")
        if words and self._json is None:
            self._screen.say(f"dragoman: {'; '.join(words)}")

    def _warn(self, event: "AnyEvent") -> None:
        """Print a warning on stderr, also where nothing but the answer is shown."""
        if isinstance(event, Notice) and event.severity != "info":
            from dragoman.cli.terminal.event_text import notice_text

            self._print_warning(notice_text(event))

    def _print_warning(self, sentence: str) -> None:
        if self._quiet.is_set():
            self._screen.say(f"dragoman: {sanitize_line(sentence)[:_SENTENCE]}")

    def _show_stderr(self, line: str) -> None:
        if self._quiet.is_set():
            self._screen.say(line)

    def _terminal_output(self, terminal_id: str, text: str, ended: bool) -> None:
        if self._json is None and self._turn is not None and self._quiet.is_set():
            self._screen.show(self._event_text.client_terminal(terminal_id, text, ended=ended))
            self._screen.flush()

    def _on_noise(self, reason: str) -> None:
        self._noise += 1
        if self._noise <= _MOST_LINES and self._quiet.is_set():
            self._screen.say(f"dragoman: skipped what the agent wrote: {sanitize_line(reason)[:200]}")

    # -- how it ended ------------------------------------------------------------------------------------------------

    def _exit_code(self) -> int:
        code = _CODES.get(self._stop_reason)
        if code is None:
            return self._fail(f"the turn ended for a reason this release does not know: {self._stop_reason}", None)
        offer = self._offer
        assert offer is not None  # a turn has ended, so the agent was connected
        for denial in offer.denials[:_MOST_LINES]:
            self._screen.say(
                f"dragoman: not allowed: {sanitize_line(denial.what)[:200]} ({sanitize_line(denial.reason)})"
            )
        # Some agents end a turn as cancelled when something is not allowed. That is no Ctrl-C of ours.
        is_over = code == OK or (code == CANCELLED and not self._is_called_off)
        if offer.denied and is_over:
            self._screen.say(f"dragoman: {denial_summary(offer)}")
            return DENIED
        if offer.refused and is_over:
            count = "1 request" if offer.refused == 1 else f"{offer.refused} requests"
            self._screen.say(f"dragoman: you refused {count}")
            return DENIED
        if code not in (OK, CANCELLED):
            self._screen.say(f"dragoman: the turn ended early: {self._stop_reason}")
        if self._schema is not None and code == OK and self._misfit:
            sentence = f"the answer does not fit the schema: {self._misfit}"
            return self._fail(sentence, {"message": sentence})
        if self._screen.answer_alone or self._json is not None:  # else each call was shown, and how it ended
            for sentence in self._changes.sentences()[:_MOST_LINES]:
                self._screen.say(f"dragoman: a change failed: {sanitize_line(sentence)[:_SENTENCE]}")
        return code

    def _report_failure(self, error: DragomanError, last_words: str) -> int:
        """Return the exit code for a failed agent. One of ours that refused its command line has said why."""
        self._stop_reason = "error"
        words = failure_sentence(error, self._target, greeted=self._is_initialized) + last_words
        fields = error_fields(error)
        complaint = refusal_of_own_agent(error, self._target)
        if complaint is not None and self._session_id is None:
            return self._fail(complaint, fields, USAGE)
        if isinstance(error, TimedOut):
            return self._fail(words, fields, TIMED_OUT)
        return self._fail(words, fields)

    def _fail(self, sentence: str, error: dict[str, object] | None, code: int = FAILED) -> int:
        self._error = error
        self._screen.pause()
        return print_error(sanitize(sentence), code)


def _sum(one: "Usage | None", other: "Usage | None") -> "Usage | None":
    """Return what two turns have used together."""
    if one is None or other is None:
        return one or other
    names = one.__struct_fields__
    found = {name: (getattr(one, name), getattr(other, name)) for name in names}
    sums = {name: a + b for name, (a, b) in found.items() if isinstance(a, int) and isinstance(b, int)}
    return replace(other, **sums)
