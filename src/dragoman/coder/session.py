"""Open and close one session of our agent: its options, commands, model and MCP servers.

Most sessions are only opened. What works on prompts (`runtime`) is imported and made with the first one.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import UNSET

from dragoman import limits
from dragoman.agent.session import Prompt, Session, caller, session_core
from dragoman.coder import slash_commands
from dragoman.coder.identity_limits import check_folders, check_mode, check_not_private, is_unlimited
from dragoman.coder.models.contract import Model, Preparing
from dragoman.coder.prompt_files import PromptFiles, read_prompt_files
from dragoman.coder.session_options import SessionOptions
from dragoman.coder.setup import Setup
from dragoman.errors import RequestFailed
from dragoman.host.markdown_files import PROJECT_FOLDERS, project_folders
from dragoman.host.text import harmless
from dragoman.vocabulary.events import AnyEvent, Notice
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.options import AnyCommand
from dragoman.vocabulary.requests import McpStdio

# A prompt waits so long for servers, from the moment the session was opened; then it goes without those not there yet.
SERVERS_SECONDS: Final = 10.0
# Providers are asked for their models so long after a session was opened: what opens it must not wait for an import.
LISTING_SECONDS: Final = 0.3
# Sentences about hidden commands at once.
_MOST_HIDDEN: Final = 5
# Of one server in the text of `/mcp`, and of all in a notice.
_SHOWN_RESOURCES: Final = 20
_SHOWN_TOOLS: Final = 5

if TYPE_CHECKING:
    from dragoman.coder.decision_log import DecisionLog
    from dragoman.coder.hooks import SessionHooks
    from dragoman.coder.mcp import McpServers
    from dragoman.coder.runtime import SessionRuntime
    from dragoman.permissions.decision import Decision
    from dragoman.vocabulary.requests import McpServer, RewindSession, SessionRewound


_log = logging.getLogger(__name__)


class CodingSession:
    """One session of the coding agent, from its opening to its end."""

    def __init__(self, session: Session, setup: Setup) -> None:
        self.session: Final = session
        self.setup: Final = setup
        self.options: Final = SessionOptions(session, setup)
        self.prompt_files = PromptFiles()
        # Sentences about commands that others hide, which the user was told.
        self._hidden_told: set[str] = set()
        self._servers: McpServers | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._listing: asyncio.Task[None] | None = None
        self._runtime: SessionRuntime | None = None
        self._remarks_sent = False
        # Tells the client what the servers have now; set: they have changed since it was told.
        self._telling: asyncio.Task[None] | None = None
        self._changed = False
        self._tools_told: object = None
        # None: there are none, and nothing of them is imported.
        self.hooks: SessionHooks | None = None
        # Names of MCP servers that the administrator does not allow.
        self._refused_servers: list[str] = []

    async def open(self) -> None:
        """Set the options and commands that the client gets, check the folders, and start MCP servers and listings.

        Raises `RequestFailed` for folders that are not open to the caller, and for a model that cannot be had.
        """
        identity = caller()
        await asyncio.to_thread(check_folders, self.session.roots, identity)
        await asyncio.to_thread(check_not_private, self.session.roots, self.setup.private)
        identity.check_programs(self.session.mcp_servers)
        # A model that wants a login says so now, and not when the user has typed a prompt.
        current = self.options.first_model()
        model = self.options.find_model(current)
        session_core(self.session).options = self.options.initial(current, identity)
        self.prompt_files = await asyncio.to_thread(self._read_prompt_files, identity)
        session_core(self.session).commands = self._commands()
        if (hooks := await self.refresh_hooks(identity)) is not None:
            hooks.start("resume" if session_core(self.session).is_stored_again else "startup")
        self._prepare(model)
        client_servers = self.session.mcp_servers
        programs = {id(server) for server in client_servers if isinstance(server, McpStdio)}
        public_only = set() if identity.brings_programs else {id(server) for server in client_servers}
        named = [*client_servers, *self.setup.servers(self.session.cwd)]
        allows = self.setup.managed.mcp.allows
        configs = [server for server in named if allows(server)]
        self._refused_servers = [getattr(server, "name", "?") for server in named if not allows(server)]
        if configs:
            from dragoman.coder.mcp import McpServers
            from dragoman.coder.server_questions import ServerQuestions

            self._servers = McpServers(
                configs,
                environment=self.setup.environment,
                cwd=self.session.cwd,
                guardian=self.setup.guardian(),
                notice=self._warn,
                changed=self._servers_changed,
                roots=self.session.roots,
                allow=self._is_still_configured,
                guarded=lambda config: id(config) in programs,
                is_strange=lambda config: id(config) in public_only,
                logins=self.setup.mcp_logins,
                questions=ServerQuestions(self.session, self._warn),
                lent=session_core(self.session).sink.lent_servers(),
            )
            self._servers.start()
        _log.info(
            "session %s opened: model %s, %d MCP servers", self.session.id[limits.SHORT_ID], model.name, len(configs)
        )
        if self.setup.models.lists_due():
            self._listing = asyncio.get_running_loop().create_task(_ignore_failures(self._list_models()))

    async def _is_still_configured(self, server: "McpServer") -> bool:
        """Return whether a server may be started now: the editor's, or one that the settings still have as it is.

        A project's server is gone from there when a file that it starts has changed.
        """
        if server in self.session.mcp_servers:
            return True
        try:
            return server in await asyncio.to_thread(self.setup.servers, self.session.cwd)
        except RequestFailed:
            return False

    async def close(self) -> None:
        """Run the hooks of the end, and stop the servers, the runtime and the models of the session. Waits for them,
        within their own bounds."""
        ending = None if self.hooks is None else asyncio.ensure_future(self.hooks.close())
        for background in (self._preparing, self._listing, self._telling):
            if background is not None:
                background.cancel()
        if self._servers is not None:
            await self._servers.close()
        if self._runtime is not None:
            await self._runtime.close()
        await self.options.close_models()
        if ending is not None:
            await ending
        _log.info("session %s closed", self.session.id[limits.SHORT_ID])

    def __repr__(self) -> str:
        state = "opened" if self._runtime is None else "prompted"
        return f"<CodingSession {self.session.id[limits.SHORT_ID]} {state}, servers: {self._servers!r}>"

    def _prepare(self, model: Model) -> None:
        """Begin to load a model that takes a while, before the first prompt; the session does not wait for it."""
        if isinstance(model, Preparing):
            self._preparing = asyncio.get_running_loop().create_task(_ignore_failures(model.prepare()))

    async def _list_models(self) -> None:
        """Ask the providers for their models, and tell the client of them, well after the answer to its request."""
        await asyncio.sleep(LISTING_SECONDS)
        await self.setup.models.refresh(self._models_listed)

    async def _models_listed(self) -> None:
        await self.options.forget_unknown_windows()
        await session_core(self.session).show_options(
            lambda: self.options.with_model(str(self.session.option("model")))
        )

    async def _warn(self, text: str, description: str = "") -> None:
        await session_core(self.session).record(Notice("warning", text, description or UNSET))

    @cached_property
    def decision_log(self) -> "DecisionLog":
        """The log of what was allowed and refused in this session. Imported with its first entry."""
        from dragoman.coder.decision_log import DecisionLog

        return DecisionLog(self.session, content=self.setup.audit_content)

    def option_refused(self, config_id: str, value: str) -> Awaitable[NoReturn] | None:
        """Return the refusal of a mode that is not open to the caller, to be awaited; None: it may be set.

        Judged before the mode is set: the turn of another client may be running, and would have it meanwhile.
        """
        identity = caller()
        try:
            if config_id == "mode":
                check_mode(value, identity, self.setup.managed)
            return None
        except RequestFailed as failed:
            return self._refuse_mode(value, identity, failed)

    async def _refuse_mode(self, mode: str, identity: Identity, refusal: RequestFailed) -> NoReturn:
        from dragoman.permissions.decision import Decision

        await self._log_mode(mode, identity, Decision("deny", "", "policy"))
        raise refusal

    async def option_changed(self, config_id: str) -> None:
        """Record a mode, load a model, keep a level of thought for the models that have it."""
        if config_id == "mode":
            from dragoman.permissions.decision import Decision

            await self._log_mode(str(self.session.option("mode")), caller(), Decision("allow", "", "user"))
        if config_id == "model":
            self._prepare(self.options.model)
        if config_id == "thought_level":
            self.options.remember_thought_level()

    async def _log_mode(self, mode: str, identity: Identity, decision: "Decision") -> None:
        await self.decision_log.record(decision, identity, mode=mode, tool="mode", kind=mode, title=mode)

    def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """Return the events of one prompt, to the end of its turn."""
        return self.runtime().turn(prompt)

    async def rewind(self, request: "RewindSession") -> "SessionRewound":
        """Go back to the state before a prompt. No turn runs meanwhile."""
        from dragoman.coder.checkpoints.requests import answer_rewind

        return await answer_rewind(self.runtime(), request)

    def runtime(self) -> "SessionRuntime":
        """Return what runs the prompts, made now if there was none."""
        if self._runtime is None:
            from dragoman.coder.runtime import SessionRuntime

            self._runtime = SessionRuntime(self)
        return self._runtime

    def _commands(self) -> list[AnyCommand]:
        if self._servers is None:
            return slash_commands.available_commands(self.prompt_files)
        mentions = [(word, one.name) for word, one in self._servers.resources()]
        return slash_commands.available_commands(self.prompt_files, self._servers.typed_prompts(), mentions)

    def _read_prompt_files(self, identity: Identity) -> PromptFiles:
        """Read commands and skills. Of the user's skills an identity that is limited has none: it reads no other file
        of the user's. Blocks."""
        own, managed = self.setup, self.setup.managed.projects
        return read_prompt_files(
            own.commands,
            own.skills if is_unlimited(identity) else "",
            self.projects(identity) if managed.commands or managed.skills else (),
            slash_commands.BUILT_IN,
            with_commands=managed.commands,
            with_skills=managed.skills,
        )

    async def refresh_commands(self, identity: Identity) -> None:
        """Read commands and skills again, and tell the client where the menu has changed. Waits for the disk."""
        before = self._commands()
        self.prompt_files = await asyncio.to_thread(self._read_prompt_files, identity)
        if (now := self._commands()) != before:
            await self.session.set_commands(now)

    async def refresh_hooks(self, identity: Identity) -> "SessionHooks | None":
        """Read the hooks that count now, and return what runs them; None: there are none. Waits for the disk."""
        managed = self.setup.managed.hooks.managed
        projects = await asyncio.to_thread(self._projects_with_hooks, identity)
        if projects is None and not managed and self.hooks is None:
            return None
        if self.hooks is None:
            from dragoman.coder.hooks import SessionHooks

            self.hooks = SessionHooks(self.session, self.setup, self._mode)
        await self.hooks.refresh(projects or ())
        return self.hooks

    def _projects_with_hooks(self, identity: Identity) -> list[str] | None:
        """Return the folders whose hooks may count; None: neither they nor the user have a file of hooks. Blocks."""
        projects = self.projects(identity)
        if self.setup.hooks and os.path.lexists(self.setup.hooks):
            return projects
        # Most projects have neither of these folders, and their sessions open without a further import.
        if not any(os.path.lexists(os.path.join(one, folder)) for one in projects for folder in PROJECT_FOLDERS):
            return None
        from dragoman.host.trusted_parts import HOOK_FILES

        names = (os.path.join(one, name) for one in projects for name in HOOK_FILES)
        return projects if any(map(os.path.lexists, names)) else None

    def _mode(self) -> str:
        return str(self.session.option("mode")) if self._runtime is None else self._runtime.mode()

    def projects(self, identity: Identity) -> list[str]:
        """Return the folders of the project whose files for agents count in this session, nearest first. Blocks.

        An identity that is kept in its folders is not shown what lies above them.
        """
        found = project_folders(self.session.cwd, self.setup.user_home)
        return found if is_unlimited(identity) else found[:1]

    @property
    def servers(self) -> "McpServers | None":
        """The MCP servers of the session; None: there are none."""
        return self._servers

    def _servers_changed(self) -> None:
        """Tell the client soon what the servers have now. Changes that come together are told together."""
        self._changed = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(_ignore_failures(self._tell_changes()))

    async def _tell_changes(self) -> None:
        while self._changed and self._servers is not None:
            self._changed = False
            if (now := self._commands()) != self.session.commands:
                await self.session.set_commands(now)
            if (difference := self._servers.tools_not_offered()) != self._tools_told:
                self._tools_told = difference
                if text := tools_notice(*difference):
                    await session_core(self.session).record(Notice("info", text))

    def remarks(self) -> list[AnyEvent]:
        """Return warnings about a wide workspace, a lost model and unused servers: once, with the first prompt.

        And about commands that are hidden by others: once for each.
        """
        hidden = [one for one in self.prompt_files.hidden if one not in self._hidden_told]
        self._hidden_told.update(hidden)
        if self._remarks_sent:
            return [Notice("info", one) for one in hidden[:_MOST_HIDDEN]]
        self._remarks_sent = True
        remarks = list(self.setup.remarks(self.session.cwd))
        home = os.path.realpath(self.setup.environment.get("HOME") or os.path.expanduser("~"))
        wide = wide_workspace_notice([os.path.realpath(root) for root in self.session.roots], home)
        lost = (self.options.lost_model, self.options.lost_mode())
        refused = [f"{line}." for line in self._refused_lines()]
        warnings = [Notice("warning", remark) for remark in (wide, *lost, *refused, *remarks) if remark]
        return [*warnings, *(Notice("info", one) for one in hidden[:_MOST_HIDDEN])]

    def _refused_lines(self) -> list[str]:
        says = self.setup.managed.says
        return [f"{harmless(name)} is not used: {says('this MCP server')}" for name in self._refused_servers]

    async def wait_for_servers(self) -> None:
        """Wait at most `SERVERS_SECONDS` for servers that are being started: the prompt may need them."""
        if self._servers is not None:
            await self._servers.wait_until_started(SERVERS_SECONDS)

    async def servers_text(self) -> str:
        """Return the MCP servers, in words."""
        await self.wait_for_servers()
        remarks = [f"- {remark}" for remark in (*self._refused_lines(), *self.setup.remarks(self.session.cwd))]
        if self._servers is None:
            return "\n".join(["This session has no MCP servers.", *remarks])
        lines = remarks
        for server in self._servers.status():
            reason = f": {server.error}" if server.error else ""
            lines.append(f"- {server.name}: {server.state}, {len(server.tools)} tools{reason}")
            lines += [f"  - `{prompt}`" for prompt in server.prompts]
            more = len(server.resources) - _SHOWN_RESOURCES
            lines += [f"  - `{resource}`" for resource in server.resources[:_SHOWN_RESOURCES]]
            lines += [f"  - and {more} more resources"] if more > 0 else []
        told = tools_notice(*self._servers.tools_not_offered())
        return "\n".join([*lines, *([f"- {told}."] if told else [])])

    async def offer_tools_anew(self) -> str:
        """Show the model the tools that the servers have now, from its next request on; return what to say of it."""
        await self.wait_for_servers()
        if self._servers is None:
            return "This session has no MCP servers."
        self._servers.offer_anew()
        count = len(self._servers.tools())
        return f"The model is shown {count} {'tool' if count == 1 else 'tools'} of MCP servers from now on."


async def _ignore_failures(work: Awaitable[None]) -> None:
    with suppress(Exception):  # the first prompt will say what is wrong
        await work


def tools_notice(new: Sequence[str], gone: Sequence[str]) -> str:
    """Return a sentence about tools of MCP servers that a model is not shown as they are now; empty: it is."""
    if not new and not gone:
        return ""
    parts = [f"new: {_some(new)}"] if new else []
    parts += [f"gone: {_some(gone)}"] if gone else []
    return (
        f"The tools of MCP servers have changed ({'; '.join(parts)}). The model is shown them with the next change of "
        "mode or model, or after /mcp refresh"
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_TOOLS
    return ", ".join(names[:_SHOWN_TOOLS]) + (f" and {more} more" if more > 0 else "")


def wide_workspace_notice(roots: Sequence[str], home: str) -> str:
    """Return a sentence for the user if one of the real `roots` holds the whole home folder; else empty."""
    wide_roots = [root for root in roots if home and os.path.commonpath([root, home]) == root]
    if not wide_roots:
        return ""
    what = "your home folder" if wide_roots[0] == home else f"{wide_roots[0]}, which holds your home folder"
    return (
        f"This session works in {what}: the agent can look at everything in it and send what it reads to the model, "
        "and what it may change without a question can be any of your files. Files with keys and passwords, and files "
        "that run by themselves, ask first. To keep the rest out of reach, open a session in the folder of one project."
    )
