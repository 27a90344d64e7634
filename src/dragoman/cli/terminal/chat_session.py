"""A conversation at a terminal, from the first connection to the last: what `dragoman chat` does."""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from functools import partial
from types import FrameType
from typing import Final

from dragoman.cli.agent_connection import (
    chosen_option,
    connect_to,
    find_own_session,
    reopen_session,
    set_chosen_options,
)
from dragoman.cli.agent_failures import failure_sentence, is_a_bug, refusal_of_own_agent
from dragoman.cli.common_options import CHOOSE, NEWEST
from dragoman.cli.errors import FAILED, USAGE, CommandError, print_error
from dragoman.cli.handoff import SessionRecord, check_successor, find_record, read_from_session
from dragoman.cli.home import own_file
from dragoman.cli.offered_services import Offer
from dragoman.cli.recordings import recordings_of
from dragoman.cli.settings import read_settings
from dragoman.cli.target import Target
from dragoman.cli.terminal.attachments import prompt_with_files
from dragoman.cli.terminal.chat_commands import (
    CONTINUE_WITH,
    LEAVING,
    OPTIONS,
    ChatCommand,
    Choosing,
    all_option_lines,
    as_sent,
    choosing,
    commands_of,
    help_lines,
    is_announced,
    is_ours,
    is_path,
    mentions_of,
    option_lines,
    order_in,
    unknown_order,
    values_of,
)
from dragoman.cli.terminal.composer import Composer
from dragoman.cli.terminal.event_text import EventText, title
from dragoman.cli.terminal.folder_sessions import FolderSessions
from dragoman.cli.terminal.forms import form_callbacks
from dragoman.cli.terminal.interrupts import LEFT, Interrupts
from dragoman.cli.terminal.notifier import Notifier
from dragoman.cli.terminal.permission_box import secret_word
from dragoman.cli.terminal.questions import TerminalQuestions
from dragoman.cli.terminal.recap import Recap
from dragoman.cli.terminal.sanitize import sanitize, sanitize_line
from dragoman.cli.terminal.screen import ChatScreen
from dragoman.cli.terminal.stderr import Stderr
from dragoman.cli.terminal.theme import find_theme
from dragoman.cli.terminal.turn_screen import columns, size
from dragoman.cli.terminal.user_command import UserCommands
from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation, Turn
from dragoman.coder.model_registry import DEMO
from dragoman.errors import DragomanError, LinkClosed, RequestFailed, UsageError
from dragoman.host.failure_text import failure_text
from dragoman.store.recording import Recordings, SessionRecorder
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent, CommandsChanged, UsageChanged
from dragoman.vocabulary.options import Select
from dragoman.vocabulary.services import PermissionAnswer, PermissionOption, RequestPermission

# How long a word with a slash waits for an agent that has not announced any command yet.
ANNOUNCE_SECONDS: Final = 2.0
_ENDS: Final = {
    "cancelled": "Stopped.",
    "refusal": "The agent refuses to go on with this.",
    "max_tokens": "The model's limit of tokens is reached.",
    "max_turn_requests": "The limit of model calls in one turn is reached.",
}


class ChatSession:
    """One run of `dragoman chat`: a conversation, over any number of connections."""

    def __init__(self, arguments: argparse.Namespace, target: Target, folder: str) -> None:
        self._arguments = arguments
        self._target = target
        self._folder = folder
        settings = read_settings()
        self._plain = arguments.plain or settings.flag("plain")
        theme = find_theme(settings.text("theme"))
        self._screen = ChatScreen(self._steer, theme=theme, plain=self._plain)
        self._renderer = self._screen.renderer
        self._word = secret_word()
        self._offer: Offer
        self._client: Client
        self._sessions: FolderSessions
        self._here: Conversation | None = None  # the session we are in
        self._recap: Recap | None = None
        self._stderr = Stderr(self._screen.say_or_keep if arguments.show_stderr else None)
        self._greeted = False
        self._recordings: Recordings | None = None
        self._record: SessionRecord | None = None  # of the session that this one goes on with
        # After the end: the agent that is to go on, and the stored session that it goes on with.
        self.successor: tuple[str, str] | None = None
        self._commands_known = asyncio.Event()  # the agent has told its commands, or has had the time for it
        self._goes_on = False  # the last turn ended well: lines that were typed meanwhile are sent
        self._own_commands = UserCommands(self._renderer, self._screen.type_ahead)
        self._is_pressed = False  # Ctrl-C, while neither the line was read nor anything was done

    @property
    def _conversation(self) -> Conversation:
        assert self._here is not None
        return self._here

    async def perform(self) -> int:
        """Chat until the user leaves, a signal comes or the agent fails; return the exit code."""
        loop, talking = asyncio.get_running_loop(), asyncio.current_task()
        assert talking is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, talking.cancel)
        try:
            async with AsyncExitStack() as stack:
                stack.callback(self._screen.leave)
                self._recordings = recordings_of(self._target.recorded_as, self._screen.say_or_keep)
                if self._recordings is not None:
                    stack.push_async_callback(self._recordings.close)
                wanted = await self._wanted()
                notifier = self._screen.notifier = Notifier(sys.stdout, self._folder, read_settings(), os.environ)
                stack.push_async_callback(notifier.close)
                await self._connect(stack)
                await self._begin(wanted)
                return await self._converse(stack)
        except (CommandError, UsageError) as error:
            return print_error(sanitize(str(error)))
        except DragomanError as error:
            complaint = refusal_of_own_agent(error, self._target)
            if complaint is not None and not self._greeted:
                return print_error(sanitize(complaint), USAGE)
            return print_error(sanitize(self._words(error) + self._how_to_go_on()), FAILED)
        except asyncio.CancelledError:
            return LEFT

    # -- beginning ---------------------------------------------------------------------------------------------------

    async def _connect(self, stack: AsyncExitStack) -> None:
        screen = self._screen
        asker = TerminalQuestions.find(
            stack,
            sys.stdout,
            self._renderer.ask,
            lambda: (self._renderer.console.width, size()[1]),
            self._word,
            screen.hold,
            folder=self._folder,
            plain=self._plain,
        )
        settings: dict[str, object] = {
            "on_event": self._heard_outside,
            "on_noise": screen.noise,
            "on_trouble": screen.in_trouble,
            "on_stderr": self._stderr.receive,
        }
        if asker is not None:
            settings |= form_callbacks(asker)
        target = self._target
        ask = None if asker is None else partial(self._ask, asker)
        self._offer = Offer(
            self._folder, lambda: target.policy(""), ask, screen.terminal_output, agent=target.recorded_as
        )
        self._client = await connect_to(stack, target, self._folder, self._offer, self._arguments, settings)
        self._greeted = True

    async def _ask(
        self, asker: TerminalQuestions, request: RequestPermission
    ) -> PermissionOption | PermissionAnswer | None:
        self._screen.event_text.on_question(request)
        return await asker.permission(request)

    async def _connect_again(self, stack: AsyncExitStack, lost: LinkClosed) -> None:
        """Reconnect once to a server that does not know us any more, as after a restart, and go on with the session."""
        if not self._target.is_remote:
            raise lost
        self._screen.unreachable_reason = ""
        self._renderer.say(f"{sanitize(str(lost))}; connecting again…", "yellow")
        try:
            await self._connect(stack)
            self._here = await reopen_session(self._client, self._conversation.id, self._folder, replay=False)
        except (DragomanError, CommandError) as error:
            raise LinkClosed(failure_text(error) if isinstance(error, DragomanError) else str(error)) from lost
        self._screen.event_text = EventText()
        self._renderer.say("Connected again; the session goes on. What ran was perhaps cut off.", "yellow")

    async def _wanted(self) -> str | None:
        """Return the session to go on with, `NEWEST` or `CHOOSE`. The folder of one of ours is known: we talk there."""
        wanted: str | None = self._arguments.resume
        if self._arguments.from_session is not None:
            wanted, self._record, self._folder = await read_from_session(
                self._arguments, "--resume", wanted, self._folder, self._target
            )
        if wanted not in (None, NEWEST, CHOOSE) and self._target.ours:
            wanted, stored_folder = await find_own_session(wanted, self._folder)
            self._folder = stored_folder if self._arguments.cwd is None else self._folder
        return wanted

    async def _begin(self, wanted: str | None) -> None:
        self._sessions = FolderSessions(self._target, self._folder)
        if wanted is None:
            await self._begin_session()
        elif wanted == CHOOSE:
            await self._resume(await self._sessions.choose(self._client, self._renderer.say))
        else:
            await self._resume(wanted or await self._sessions.newest(self._client))
        await set_chosen_options(self._conversation, self._target, self._arguments, is_reopened=wanted is not None)
        info = self._client.agent.info
        name = self._name() if info is None else f"{self._name()} {info.version}"
        self._renderer.say(f"{title(name)} in {sanitize_line(self._folder)}")
        self._renderer.say("/help shows what there is.")
        if self._record is not None:
            self._renderer.say(f"Your first prompt is sent with {self._record.sentence()}.")
        model = chosen_option(self._conversation, "model")
        if self._target.ours and model is not None and model.current_value == DEMO:
            from dragoman.coder.models.demo import introduction

            self._renderer.say(await introduction(), "yellow")
        self._renderer.say(f"Questions of dragoman itself stand in a double frame, with the word {self._word}.")

    async def _begin_session(self) -> None:
        self._screen.set_usage(None)
        self._here = await self._client.new_session(self._folder)
        self._screen.recorder = self._recorder_of(self._here.id)

    def _recorder_of(self, session_id: str) -> SessionRecorder | None:
        """Begin to record a session, in place of the one that we are in."""
        if self._screen.recorder is not None:
            self._screen.recorder.end()
        return None if self._recordings is None else self._recordings.of(session_id, self._folder)

    async def _resume(self, session_id: str) -> None:
        recap = self._recap = Recap()
        usage = self._screen.usage
        self._screen.set_usage(None)
        recorder = None if self._recordings is None else self._recordings.of(session_id, self._folder)
        before, self._screen.recorder = self._screen.recorder, recorder
        try:
            self._here = await reopen_session(self._client, session_id, self._folder, replay=True)
        except RequestFailed as error:
            self._screen.recorder = before
            self._screen.set_usage(usage)
            if recorder is not None:
                recorder.end()
            raise CommandError(f"session {sanitize_line(session_id)}: {sanitize_line(failure_text(error))}") from None
        finally:
            self._recap = None
        if before is not None:
            before.end()
        self._screen.event_text = EventText()
        for role, text in recap.messages():
            self._renderer.say(f"{role}:")
            self._renderer.markdown(text)
        name = sanitize_line(self._conversation.title) or session_id
        self._renderer.say(f"({recap.count} messages so far in “{title(name)}”)")

    # -- talking -----------------------------------------------------------------------------------------------------

    async def _converse(self, stack: AsyncExitStack) -> int:
        composer = self._screen.composer = Composer(
            own_file("history"),
            self._folder,
            lambda: commands_of(self._conversation),
            lambda order: values_of(self._conversation, order),
            lambda: self._screen.status(self._name(), self._conversation),
            lambda: self._renderer.say("Ctrl-C once more leaves, and so does Ctrl-D."),
            lambda: mentions_of(self._conversation),
            plain=self._plain,
        )
        before = signal.signal(signal.SIGINT, self._on_press)
        stack.callback(signal.signal, signal.SIGINT, before)
        typed = ""
        while True:
            self._screen.say_what_waited()
            waiting = self._next_waiting()
            if waiting is not None:
                text = waiting
            else:
                try:
                    if self._is_pressed:
                        composer.press()
                    text = await composer.read(self._screen.take_typed(typed))
                except EOFError:
                    return 0
                finally:
                    typed = ""
                    self._is_pressed = False
            if not text.strip():
                continue
            if text.startswith("!"):
                await self._own_commands.run(text[1:].strip(), self._folder)
                continue
            order = await self._order(text)
            if order is not None and order.name in LEAVING:
                return 0
            if order is not None and order.name == CONTINUE_WITH:
                if await self._hand_over(order.rest):
                    return 0
                continue
            try:
                if order is not None:
                    await self._obey_or_stop(order)
                else:
                    typed = "" if await self._prompt(as_sent(text)) else text
            except LinkClosed as lost:
                await self._connect_again(stack, lost)
                typed = text  # the user decides whether to send it again

    def _next_waiting(self) -> str | None:
        """Return the line that was typed while the last turn ran and is to be sent now; None where the user decides."""
        if not self._goes_on:
            return None
        text = self._screen.queue.next()
        if text is not None:
            self._renderer.say(f"> {sanitize_line(text)}", "bold")
        return text

    async def _steer(self, text: str) -> bool:
        """Add a line to the running turn; False: the agent takes none, or something about the line has to be told."""
        prompt = prompt_with_files(text, self._folder, self._client.agent.capabilities)
        if prompt.problems or prompt.missing:
            return False
        try:
            return await self._conversation.steer(prompt.blocks)
        except DragomanError:
            return False  # the turn ends with the same failure, which is told then

    def _on_press(self, number: int, frame: FrameType | None) -> None:
        """Keep a Ctrl-C that comes between a turn and the line: it is the first of two at an empty line."""
        self._is_pressed = True

    async def _prompt(self, text: str) -> bool:
        """Send a prompt and follow its turn; False: it cannot be sent as it is, and the user was told why."""
        prompt = prompt_with_files(text, self._folder, self._client.agent.capabilities)
        for problem in prompt.problems:
            self._renderer.say(sanitize_line(f"{problem}. Nothing was sent."), "red")
        if prompt.problems:
            return False
        for name in prompt.missing:
            self._renderer.say(f"(@{sanitize_line(name)} is no file here; it is sent as a word)")
        self._goes_on = False
        self._offer.new_turn()
        self._stderr.begin()
        self._renderer.begin()
        with Interrupts([signal.SIGINT]) as interrupts:
            turn = self._conversation.prompt(
                [
                    *([] if text.startswith("/") else self._own_commands.take()),
                    *prompt.blocks,
                    *self._record_blocks(text),
                ]
            )
            stopping = asyncio.ensure_future(self._stop_when_told(turn, interrupts))
            with self._screen.playing(turn):
                try:
                    await self._screen.follow(turn)
                except LinkClosed:
                    raise
                except DragomanError as error:
                    last_words = await self._stderr.last_words() if is_a_bug(error) else ""
                    self._screen.end_turn()
                    self._renderer.say(sanitize(self._words(error) + last_words), "red")
                finally:
                    stopping.cancel()
                    await self._screen.queue.wait_until_placed()
        self._goes_on = turn.stop_reason not in ("", "cancelled")
        if turn.stop_reason and not text.startswith("/"):
            self._record = None  # the agent has it now
        if turn.stop_reason in _ENDS:
            self._renderer.say(_ENDS[turn.stop_reason])
        return True

    def _record_blocks(self, text: str) -> list[Content]:
        """Return the record of an earlier session that goes with this prompt; with a slash command it does not."""
        if self._record is None or text.startswith("/"):
            return []
        return self._record.blocks(self._client.agent.capabilities)

    async def _stop_when_told(self, turn: Turn, interrupts: Interrupts) -> None:
        await interrupts.wait()
        if self._screen.notifier is not None:
            self._screen.notifier.user_acted()
        self._offer.dismiss()  # first: a question that comes from now on is of a cancelled turn
        await turn.cancel()
        await self._screen.free()  # a question that stood there has gone away
        self._renderer.say("(stopping; Ctrl-C once more leaves at once)")

    def _heard_outside(self, conversation: Conversation, event: AnyEvent) -> None:
        if isinstance(event, CommandsChanged):
            self._commands_known.set()
        if self._recap is not None:
            self._recap.apply(event)
            if isinstance(event, UsageChanged):
                self._screen.set_usage(event)
            if self._screen.recorder is not None:
                self._screen.recorder.record(event, is_replay=True)
        else:
            self._screen.hear_outside(event)

    # -- orders ------------------------------------------------------------------------------------------------------

    async def _order(self, text: str) -> ChatCommand | None:
        """Return the order for the chat itself that a line is, a mistyped one included; None: it is for the agent."""
        order = order_in(text)
        if order is None or is_ours(order):
            return order
        if is_path(order):
            return None
        if not self._conversation.commands and not self._commands_known.is_set():
            # Agents announce their commands after they have opened a session.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._commands_known.wait(), ANNOUNCE_SECONDS)
            self._commands_known.set()
        return None if is_announced(self._conversation, order) else order

    async def _obey_or_stop(self, order: ChatCommand) -> None:
        """Run a command of the chat itself; Ctrl-C cancels it."""
        with Interrupts([signal.SIGINT]) as interrupts:
            obeying = asyncio.ensure_future(self._obey(order))
            stopping = asyncio.ensure_future(interrupts.wait())
            try:
                await asyncio.wait([obeying, stopping], return_when=asyncio.FIRST_COMPLETED)
                if not obeying.done():
                    obeying.cancel()
                    await asyncio.wait([obeying])
                if obeying.cancelled():
                    self._renderer.say(_ENDS["cancelled"])
                else:
                    obeying.result()
            finally:
                obeying.cancel()
                stopping.cancel()

    async def _obey(self, order: ChatCommand) -> None:
        try:
            match order.name:
                case "/help":
                    for line in help_lines(self._conversation, columns()):
                        self._renderer.say(line)
                case "/mode" | "/model" | "/thinking":
                    await self._choose(order)
                case "/option":
                    await self._choose_by_name(*order.rest.split(maxsplit=1))
                case "/sessions":
                    await self._go(order.rest)
                case "/new":
                    before = self._conversation
                    await self._begin_session()
                    self._renderer.say("A new session.")
                    await self._leave(before)
                case _:
                    self._renderer.say(unknown_order(self._conversation, order), "yellow")
        except LinkClosed:
            raise
        except DragomanError as error:
            self._renderer.say(sanitize(failure_text(error)), "red")
        except CommandError as error:
            self._renderer.say(sanitize(str(error)), "red")

    async def _choose(self, order: ChatCommand) -> None:
        category, name = OPTIONS[order.name], order.name.removeprefix("/")
        option = chosen_option(self._conversation, category)
        if option is None:
            self._renderer.say(self._nothing_to_choose(category, name), "yellow")
            return
        wanted = choosing(option, order.rest) if category == "model" else Choosing(order.rest)
        if not order.rest or wanted.several:
            for line in option_lines(option, wanted.several or None):
                self._renderer.say(line)
            if order.rest:
                self._renderer.say(f"Several have “{sanitize_line(order.rest)}” in them; nothing was changed.")
            return
        await self._conversation.set_option(option.config_id, wanted.value)
        now = chosen_option(self._conversation, category)
        self._renderer.say(f"{name}: {sanitize_line(now.current_value if now else wanted.value)}")

    async def _choose_by_name(self, name: str = "", value: str = "") -> None:
        """Set the option of this name; without a value show its values, without an option show what there is."""
        options = (one for one in self._conversation.options if isinstance(one, Select))
        option = next((one for one in options if one.config_id == name), None)
        if option is None:
            for line in all_option_lines(self._conversation, name):
                self._renderer.say(line)
        elif not value:
            for line in option_lines(option):
                self._renderer.say(line)
        else:
            await self._conversation.set_option(option.config_id, value)
            now = chosen_option(self._conversation, name)
            self._renderer.say(f"{sanitize_line(name)}: {sanitize_line(now.current_value if now else value)}")

    def _nothing_to_choose(self, category: str, name: str) -> str:
        model = chosen_option(self._conversation, "model")
        if category == "thought_level" and model is not None:
            return f"How hard {sanitize_line(model.current_value)} thinks cannot be chosen."
        return f"This agent has no {name} to choose."

    async def _hand_over(self, name: str) -> bool:
        """Choose the agent that goes on with this session; False: it cannot, and the user was told why."""
        try:
            check_successor(self._arguments, name)
            recorder = self._screen.recorder
            if self._target.ours:
                session_id = self._conversation.id
            elif recorder is None:
                raise CommandError("this session is not recorded: record_sessions is off in config.toml")
            else:
                await recorder.flush()
                session_id = recorder.id
            await find_record(session_id)
        except CommandError as error:
            self._renderer.say(sanitize(str(error)), "red")
            return False
        self.successor = (name, session_id)
        return True

    async def _go(self, wanted: str) -> None:
        if not wanted:
            for line in await self._sessions.lines(self._client, self._conversation.id):
                self._renderer.say(line)
            return
        session_id = await self._sessions.named(wanted)
        if session_id == self._conversation.id:
            self._renderer.say("You are there.")
            return
        before = self._conversation
        await self._resume(session_id)
        await self._leave(before)

    async def _leave(self, conversation: Conversation) -> None:
        """Free a session that we have left; its history stays."""
        if self._client.agent.capabilities.close:
            with suppress(RequestFailed):
                await conversation.close()

    def _name(self) -> str:
        """Return what the agent calls itself."""
        info = self._client.agent.info
        return self._target.name if info is None else info.title or info.name

    def _words(self, error: DragomanError) -> str:
        return failure_sentence(error, self._target, greeted=self._greeted)

    def _how_to_go_on(self) -> str:
        """Return what to type for the same conversation with an agent that may be there again."""
        if self._here is None or not self._target.is_remote:
            return ""
        return f"\ngo on with: dragoman chat --agent {self._target.name} --resume {self._here.id}"
