"""What a client offers its agent: permission, forms, files, terminals, extensions. What is not given is not offered.

Everything fails closed: without a permission callback every request is rejected, and an answer that names no offered
option is a rejection too.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import NoneType
from typing import Final, Protocol

from msgspec import UNSET

from dragoman.client.ask_user import ADVERTISED, AskUserCallback, answer_question, asks_user
from dragoman.client.checks import check_async, check_plain
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RequestFailed, UsageError
from dragoman.vocabulary.asking import Done, Extension, ExtensionNote, ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.services import (
    CreateTerminal,
    Dismissed,
    Elicit,
    ElicitationAnswer,
    FileText,
    Form,
    GetTerminalOutput,
    KillTerminal,
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    ReleaseTerminal,
    RequestPermission,
    Selected,
    TerminalCreated,
    TerminalExited,
    TerminalText,
    Url,
    WaitForTerminalExit,
    WriteTextFile,
    rejection,
)

# The chosen option or its id; None is no. An answer, where there is more to say than the choice.
PermissionCallback = Callable[[RequestPermission], Awaitable["PermissionOption | PermissionAnswer | str | None"]]
# The filled form; None declines.
ElicitationCallback = Callable[[Elicit], Awaitable["dict[str, object] | ElicitationAnswer | None"]]
ReadCallback = Callable[[ReadTextFile], Awaitable[str]]
WriteCallback = Callable[[WriteTextFile], Awaitable[None]]
ExtensionCallback = Callable[[object], Awaitable[object]]
NotificationCallback = Callable[[str, object], None]


class Terminals(Protocol):
    """Runs commands for the agent."""

    async def create(self, request: CreateTerminal) -> str:
        """Start a command; its terminal id."""

    async def output(self, request: GetTerminalOutput) -> TerminalText: ...

    async def wait_for_exit(self, request: WaitForTerminalExit) -> TerminalExited: ...

    async def kill(self, request: KillTerminal) -> None: ...

    async def release(self, request: ReleaseTerminal) -> None: ...


class ClientHandlers:
    """The callbacks of one client."""

    def __init__(
        self,
        *,
        permission: PermissionCallback | None = None,
        elicitation: ElicitationCallback | None = None,
        read_text_file: ReadCallback | None = None,
        write_text_file: WriteCallback | None = None,
        terminals: Terminals | None = None,
        ask_user: AskUserCallback | None = None,
        extensions: Mapping[str, ExtensionCallback] | None = None,
        on_notification: NotificationCallback | None = None,
    ) -> None:
        check_async(permission, "permission", "request")
        check_async(ask_user, "ask_user", "question")
        check_async(elicitation, "elicitation", "request")
        check_async(read_text_file, "read_text_file", "request")
        check_async(write_text_file, "write_text_file", "request")
        check_plain(on_notification, "on_notification", "method", "params")
        for method, callback in (extensions or {}).items():
            if not method.startswith("_"):
                raise UsageError(f"extension methods start with an underscore: use {'_' + method!r}")
            check_async(callback, f"extensions[{method!r}]", "params")
        self._permission = permission
        self._elicitation = elicitation
        self._read = read_text_file
        self._write = write_text_file
        self._terminals = terminals
        self._ask_user = ask_user
        self._extensions: Final = dict(extensions or {})
        self._on_notification = on_notification

    def capabilities(self) -> ClientCapabilities:
        """Return the capabilities to announce: exactly those that have a callback."""
        return ClientCapabilities(
            read_text_file=self._read is not None,
            write_text_file=self._write is not None,
            terminal=self._terminals is not None,
            elicitation_form=self._elicitation is not None,
            elicitation_url=self._elicitation is not None,
            boolean_options=True,
            compaction=True,
            notices=True,
            plans=True,
            meta=UNSET if self._ask_user is None else dict(ADVERTISED),
        )

    async def answer(self, request: Request) -> Reply:
        """Do what the agent asks, or refuse."""
        match request:
            case RequestPermission():
                return await self._decide(request)
            case Elicit():
                return await self._elicit(request)
            case ReadTextFile() if self._read is not None:
                return FileText(await self._read(request))
            case WriteTextFile() if self._write is not None:
                await self._write(request)
                return Done()
            case Extension() if request.method in self._extensions:
                return ExtensionResult(await self._extensions[request.method](request.params))
            case Extension() if asks_user(request):
                return await answer_question(self._ask_user, request)
            case _ if self._terminals is not None:
                return await self._terminal(self._terminals, request)
            case _:
                raise RequestFailed(METHOD_NOT_FOUND, "Method not found")

    def on_notification(self, note: Note) -> None:
        """Give a notification outside the protocol to the `on_notification` callback."""
        if isinstance(note, ExtensionNote) and self._on_notification is not None:
            self._on_notification(note.method, note.params)

    async def _decide(self, request: RequestPermission) -> PermissionAnswer:
        choice = None if self._permission is None else await self._permission(request)
        if not isinstance(choice, (PermissionOption, PermissionAnswer, str, NoneType)):
            raise UsageError(f"a permission callback returns one of request.options or None, not {choice!r}")
        if isinstance(choice, PermissionAnswer):
            if isinstance(choice.outcome, Dismissed):
                return choice
            wanted = choice.outcome.option_id if isinstance(choice.outcome, Selected) else None
        else:
            wanted = choice.option_id if isinstance(choice, PermissionOption) else choice
        if wanted is None or [option.option_id for option in request.options].count(wanted) != 1:
            return PermissionAnswer(rejection(request))
        return choice if isinstance(choice, PermissionAnswer) else PermissionAnswer(Selected(wanted))

    async def _elicit(self, request: Elicit) -> Reply:
        if self._elicitation is None or not isinstance(request.mode, (Form, Url)):
            raise RequestFailed(INVALID_PARAMS, "This kind of question is not supported")
        answer = await self._elicitation(request)
        if isinstance(answer, ElicitationAnswer):
            return answer
        return ElicitationAnswer("decline") if answer is None else ElicitationAnswer("accept", answer)

    async def _terminal(self, terminals: Terminals, request: Request) -> Reply:
        match request:
            case CreateTerminal():
                from dragoman.client.command_lines import check_terminal  # most agents never ask for a terminal

                check_terminal(request)
                return TerminalCreated(await terminals.create(request))
            case GetTerminalOutput():
                return await terminals.output(request)
            case WaitForTerminalExit():
                return await terminals.wait_for_exit(request)
            case KillTerminal():
                await terminals.kill(request)
            case ReleaseTerminal():
                await terminals.release(request)
            case _:
                raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        return Done()
