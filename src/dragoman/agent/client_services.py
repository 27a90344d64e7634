"""The client, as far as it lends its files and its terminals to a session.

What it has not said it can do is never asked for: that is the author's mistake, and is named as one. Nothing is
borrowed for a turn that has ended.
"""

from collections.abc import Iterable

from msgspec import UNSET

from dragoman.agent.checks import absolute, check_list, check_text
from dragoman.agent.current_turn import check_turn
from dragoman.agent.event_sink import EventSink
from dragoman.agent.plain_values import exact_text
from dragoman.agent.terminal import ClientTerminal
from dragoman.errors import UsageError
from dragoman.vocabulary.services import CreateTerminal, FileText, ReadTextFile, TerminalCreated, WriteTextFile


class ClientServices:
    """What one session borrows."""

    def __init__(self, session_id: str, cwd: str, speech: EventSink) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._speech = speech

    async def read_text_file(self, path: str, line: int | None, limit: int | None) -> str:
        """A file as the editor has it."""
        if not self._speech.client.read_text_file:
            raise UsageError("the client lends no files; look at session.client.read_text_file first")
        place = absolute(path, "path")
        first, most = UNSET if line is None else line, UNSET if limit is None else limit
        check_turn()
        reply = await self._speech.ask(ReadTextFile(self._session_id, place, first, most))
        assert isinstance(reply, FileText)
        return reply.content

    async def write_text_file(self, path: str, content: str) -> None:
        """A file as the editor shall have it."""
        if not self._speech.client.write_text_file:
            raise UsageError("the client takes no files; look at session.client.write_text_file first")
        place = absolute(path, "path")
        check_text(content, "the content of a file", "session.write_text_file(path, 'text')")
        check_turn()
        await self._speech.ask(WriteTextFile(self._session_id, place, exact_text(content)))

    async def terminal(
        self, command: str, args: Iterable[str], cwd: str | None, output_byte_limit: int | None
    ) -> ClientTerminal:
        """A command that runs there."""
        if not self._speech.client.terminal:
            raise UsageError("the client lends no terminals; look at session.client.terminal first")
        check_text(command, "a command", 'session.client_terminal("make", ["test"])')
        words = check_list(args, "args", 'session.client_terminal("make", ["test"])')
        for word in words:
            check_text(word, "an argument of a command", 'session.client_terminal("make", ["test"])')
        request = CreateTerminal(
            self._session_id,
            exact_text(command),
            [exact_text(word) for word in words],
            cwd=self._cwd if cwd is None else absolute(cwd, "cwd"),
            output_byte_limit=UNSET if output_byte_limit is None else output_byte_limit,
        )
        check_turn()
        reply = await self._speech.ask(request)
        assert isinstance(reply, TerminalCreated)
        return ClientTerminal(self._speech, self._session_id, reply.terminal_id)
