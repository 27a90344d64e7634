"""What a slash command may do with a session: compact, clear, undo, set an option, revoke rules, end commands."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.agent.session import Session, session_core
from dragoman.coder.changes import Undone
from dragoman.coder.compaction import Compaction
from dragoman.coder.decision_log import DecisionLog
from dragoman.coder.identity_limits import allowed_modes, check_mode
from dragoman.coder.kept_rules import KeptRule
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.models.contract import Model
from dragoman.coder.prompt_files import PromptFile
from dragoman.coder.session_options import is_option
from dragoman.coder.tools.files import writing
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.view import ViewChange
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.events import Cost
from dragoman.vocabulary.identity import Identity

if TYPE_CHECKING:
    from dragoman.coder.runtime import SessionRuntime
    from dragoman.coder.spending import Spending


class SessionControls:
    """Acts on the session of a prompt that is a slash command, with the rights of the identity that sent it."""

    def __init__(self, runtime: "SessionRuntime") -> None:
        self.session: Final[Session] = runtime.session
        self.decision_log: Final[DecisionLog] = runtime.decision_log
        self._runtime = runtime

    @property
    def model(self) -> Model:
        """The model of the session."""
        return self._runtime.model

    @property
    def prompt_files(self) -> Mapping[str, PromptFile]:
        """The commands and skills that stand in files, by name."""
        return self._runtime.coding_session.prompt_files.commands

    @property
    def managed(self) -> ManagedSettings:
        """What the administrator of this machine allows."""
        return self._runtime.managed

    def mode(self) -> str:
        """Return the mode that counts now."""
        return self._runtime.mode()

    def identity(self) -> Identity:
        """Return the identity that has sent the command."""
        return self._runtime.identity()

    async def compact(self, focus: str = "") -> Compaction:
        """Replace the context by a summary of it, about `focus` above all. Waits for the model."""
        context, toolbox, budget, _, _ = await self._runtime.load()
        await context.settle()
        # As in a turn: providers refuse a history with calls whose tools the request does not define.
        budget.set_setting(await self._runtime.system_prompt(), toolbox.specs(), self.model.window)
        return await budget.compact(self.model, focus)

    async def forget(self) -> None:
        """Empty the context: the model sees nothing of the conversation any more."""
        loaded = await self._runtime.load()
        await loaded.context.forget()
        loaded.budget.reset()
        await self._runtime.hooks.was_forgotten(self.identity())

    async def fullness(self) -> tuple[int, int | None, int]:
        """Return the tokens of the context, the model's window (None: unknown) and how many items there are."""
        loaded = await self._runtime.load()
        return loaded.budget.tokens(), self.model.window, len(loaded.context.items)

    async def shares(self) -> dict[str, int]:
        """Return about how many tokens each part of a request has, by its name."""
        return (await self._runtime.load()).budget.shares()

    async def cost(self) -> Cost | None:
        """Return what the session has cost so far; None where no model has reported it."""
        cost = (await self.spending()).cost()
        return cost if isinstance(cost, Cost) else None

    async def spending(self) -> "Spending":
        """Return what the session has used so far, and its caps."""
        return (await self._runtime.load()).calls.spending

    async def rules(self) -> list[PermissionRule]:
        """Return what is always allowed or forbidden in this session."""
        return list((await self._runtime.load()).gate.rules)

    async def kept_rules(self) -> Sequence[KeptRule]:
        """Return the rules that outlive the session, as far as they are the identity's. Raises `KeptRulesFailed`."""
        gate = (await self._runtime.load()).gate
        return await gate.kept_rules() if gate.keeps_rules else ()

    async def revoke(self, index: int) -> PermissionRule:
        """Revoke the rule at this place of `rules`, and return it."""
        rule = (await self._runtime.load()).gate.rules.pop(index)
        await self._runtime.rule_log.revoke(rule)
        return rule

    def choices(self, name: str) -> list[str]:
        """Return the modes or models that the identity may choose from."""
        known = [
            choice.value for option in self.session.options if is_option(option, name) for choice in option.choices()
        ]
        if name != "mode":
            return known
        allowed = allowed_modes(self.identity(), self._runtime.managed)
        return [mode for mode in known if mode in allowed]

    async def set_option(self, name: str, value: str) -> None:
        """Choose a mode or a model. Raises `RequestFailed` for a value that is unknown or not open to the identity."""
        known = self.choices(name)
        if name == "mode":
            check_mode(value, self.identity(), self._runtime.managed)
        if name == "model":
            session_core(self.session).options = self._runtime.coding_session.options.with_model(value)
            return
        if value not in known:
            raise RequestFailed(INVALID_PARAMS, f"There is no such {name}; there are {', '.join(known)}")
        session_core(self.session).options = [
            replace(option, current_value=value) if is_option(option, name) else option
            for option in self.session.options
        ]

    async def undo(self) -> Undone:
        """Restore what the last turn that wrote files has changed; for a confined identity no protected file."""
        context = self._runtime.tool_context()
        confined = self.identity().confined
        changes, unsaved_text = self._runtime.changes, self._runtime.checkpoints.unsaved_text
        unsaved = {path for path in changes.paths() if await unsaved_text(path) is not None}
        return await asyncio.to_thread(
            changes.undo, lambda place: confined and writing(place, context).guarded, unsaved
        )

    async def rewind(self, arguments: str) -> str:
        """Go back to before a prompt, after the user has seen what that does and said yes; return what came of it."""
        from dragoman.coder.checkpoints.command import rewind_command

        return await rewind_command(arguments, self._runtime)

    async def servers_text(self) -> str:
        """Return the state of the MCP servers, a line each. Waits for servers that are being started."""
        return await self._runtime.coding_session.servers_text()

    async def offer_tools_anew(self) -> str:
        """Show the model the tools that MCP servers have now, and return what to say of it."""
        return await self._runtime.coding_session.offer_tools_anew()

    async def sandbox_changes(self) -> Sequence[ViewChange]:
        """Return what is in the sandbox and not in the workspace. Raises `WorldError` if it cannot be listed."""
        return await self._runtime.with_sandbox(lambda sandbox: sandbox.pending()) or ()

    async def apply_sandbox(self) -> None:
        """Ask the user about the changes in the sandbox, and apply what they agree to."""
        await self._runtime.with_sandbox(lambda sandbox: sandbox.settle(again=True))

    async def discard_sandbox(self) -> bool:
        """Throw the sandbox away; False: there was none."""
        return bool(await self._runtime.with_sandbox(lambda sandbox: sandbox.discard()))

    def tasks(self) -> str:
        """Return a list of the background commands that are known, in Markdown; empty: there are none."""
        return self._runtime.background.listing()

    async def stop_task(self, id: str) -> str:
        """End a background command, and return its line. Raises `BadInput` for an unknown id. Waits for its end."""
        command = self._runtime.background.find(id)
        await command.stop("stopped by the user")
        return command.line
