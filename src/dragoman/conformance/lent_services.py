"""The files and terminals that `check` lends an agent, and that the client lends which proves the judges.

A switch breaks one row; without one everything is served as the protocol has it, inside one folder.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dragoman.errors import INVALID_PARAMS, NOT_FOUND

Message = dict[str, Any]
_OTHER_CODE: Final = -32099


class ServiceRefused(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _LentTerminal:
    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process: Final = process
        self.limit: Final = limit
        self.output = b""
        self.reading: Final = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(65536):
            self.output += data


class LentServices:
    """What one connection is lent."""

    def __init__(self, folder: str, switch: str = "") -> None:
        self._folder: Final = Path(folder)
        self._switch: Final = switch
        self._terminals: Final[dict[str, _LentTerminal]] = {}
        self._all: Final[list[_LentTerminal]] = []

    async def serve(self, method: str, params: Message) -> Message:
        """Serve one request. Raise `ServiceRefused`."""
        match method:
            case "fs/read_text_file":
                return self._read(params)
            case "fs/write_text_file":
                return self._write(params)
            case "terminal/create":
                return await self._create(params)
        terminal = self._terminals.get(str(params.get("terminalId")))
        if terminal is None:
            if self._switch == "serves_unknown_terminals" and method == "terminal/output":
                return {"output": "", "truncated": False}
            raise ServiceRefused(INVALID_PARAMS, "There is no such terminal")
        return await self._serve_terminal(method, params, terminal)

    async def close(self) -> None:
        """Kill the commands that still run."""
        for terminal in self._all:
            if terminal.process.returncode is None:
                terminal.process.kill()
            await terminal.process.wait()
            await terminal.reading

    # -- files ---------------------------------------------------------------------------------------------------------

    def _place(self, params: Message, leaves: str) -> Path:
        """Return the file of a request; `leaves` is the switch that lets it lie outside of the folder."""
        path = Path(str(params.get("path")))
        if not path.is_absolute():
            if self._switch != "reads_relative":
                raise ServiceRefused(INVALID_PARAMS, "The path is not absolute")
            path = self._folder / path
        is_link = path.is_symlink() and self._switch == "follows_links"
        inside = path.resolve().is_relative_to(self._folder.resolve())
        if not inside and not is_link and self._switch != leaves:
            raise ServiceRefused(INVALID_PARAMS, "Outside of the folder")
        return path

    def _read(self, params: Message) -> Message:
        path = self._place(params, "reads_outside")
        try:
            text = path.read_text(encoding="latin-1" if self._switch == "reads_latin_1" else "utf-8")
        except OSError:
            if self._switch == "empty_for_missing":
                return {"content": ""}
            code = _OTHER_CODE if self._switch == "other_code_for_missing" else NOT_FOUND
            raise ServiceRefused(code, "There is no such file") from None
        line, limit = params.get("line"), params.get("limit")
        if (line or limit) and self._switch != "ignores_line":
            lines = text.splitlines(keepends=True)[(line or 1) - 1 :]
            text = "".join(lines[:limit])
        return {"content": text}

    def _write(self, params: Message) -> Message:
        path = self._place(params, "writes_outside")
        if self._switch == "writes_nothing" or (self._switch == "creates_nothing" and not path.exists()):
            return {}
        path.write_text(str(params.get("content")), encoding="utf-8")
        return {}

    # -- terminals -----------------------------------------------------------------------------------------------------

    async def _create(self, params: Message) -> Message:
        arguments = [str(one) for one in params.get("args") or []]
        if self._switch == "joins_arguments":
            arguments = [*arguments[:3], *" ".join(arguments[3:]).split()]
        place: dict[str, Any] = {}
        if self._switch != "ignores_place":
            given = {one["name"]: one["value"] for one in params.get("env") or []}
            place = {"cwd": params.get("cwd") or str(self._folder), "env": {**os.environ, **given}}
        process = await asyncio.create_subprocess_exec(
            str(params["command"]),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            **place,
        )
        terminal = _LentTerminal(process, params.get("outputByteLimit"))
        id = "terminal" if self._switch == "same_terminal_ids" else f"terminal-{len(self._all) + 1}"
        self._all.append(terminal)
        self._terminals[id] = terminal
        if self._switch == "waits_for_command":
            await process.wait()
        return {"terminalId": id}

    async def _serve_terminal(self, method: str, params: Message, terminal: _LentTerminal) -> Message:
        match method:
            case "terminal/output":
                return self._output(terminal)
            case "terminal/wait_for_exit":
                await terminal.process.wait()
                await terminal.reading
                return self._status(terminal)
            case "terminal/kill":
                self._kill(terminal)
                if self._switch == "kill_releases":
                    self._terminals.pop(str(params["terminalId"]))
                return {}
        if self._switch != "release_leaves_command":
            self._kill(terminal)
        if self._switch != "keeps_released":
            self._terminals.pop(str(params["terminalId"]))
        return {}

    def _kill(self, terminal: _LentTerminal) -> None:
        if terminal.process.returncode is None:
            terminal.process.kill()

    def _output(self, terminal: _LentTerminal) -> Message:
        data, limit = terminal.output, terminal.limit
        if self._switch == "loses_output":
            data = b""
        truncated = limit is not None and len(data) > limit and self._switch != "ignores_output_limit"
        if truncated and limit is not None:
            data = data[-limit:]
        text = data.decode(errors="replace" if self._switch == "tears_characters" else "ignore")
        status: Mapping[str, Any] = {}
        if terminal.process.returncode is not None and self._switch != "no_exit_status":
            status = {"exitStatus": self._status(terminal)}
        return {"output": text, "truncated": truncated, **status}

    def _status(self, terminal: _LentTerminal) -> Message:
        code = terminal.process.returncode
        if code is not None and code < 0:
            return {"signal": "SIGKILL"}
        return {"exitCode": 0 if self._switch == "wrong_exit_code" else code}
