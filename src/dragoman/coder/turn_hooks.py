"""How the turns of a session come to its hooks. Cheap: where there are none, nothing of them is imported here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from dragoman.agent.session import Prompt
from dragoman.vocabulary.identity import Identity

if TYPE_CHECKING:
    from dragoman.coder.hook_calls import CallHooks
    from dragoman.coder.hooks import TurnHooks
    from dragoman.coder.session import CodingSession


class HookAccess:
    """Finds the hooks of a session, if it has any, for its runtime."""

    def __init__(self, coding_session: "CodingSession") -> None:
        self._session: Final = coding_session

    async def refusal(self, prompt: Prompt, identity: Identity) -> str:
        """Read the hooks anew for a turn, and return why its prompt does not go to the model; empty: it does."""
        hooks = await self._session.refresh_hooks(identity)
        if hooks is None:
            return ""
        await hooks.begin_turn()
        return await hooks.on_prompt(prompt.text)

    async def let_through(self, prompts: Sequence[Prompt]) -> tuple[list[Prompt], list[str]]:
        """Return which of these prompts go to the model, that came while a turn runs, and why the others do not."""
        hooks = self._session.hooks
        if hooks is None:
            return list(prompts), []
        refusals = [await hooks.on_prompt(prompt.text) for prompt in prompts]
        kept = [prompt for prompt, refusal in zip(prompts, refusals, strict=True) if not refusal]
        return kept, [refusal for refusal in refusals if refusal]

    def of_turn(self, helper: str = "") -> "TurnHooks | None":
        """Return the hooks at the end of a turn, or of the work of a kind of helper; None: there are none."""
        if (hooks := self._session.hooks) is None:
            return None
        from dragoman.coder.hooks import TurnHooks

        return TurnHooks(hooks, helper)

    def of_calls(self, label: str = "", kind: str = "") -> "CallHooks | None":
        """Return the hooks around the calls of a turn, or of a helper of this kind; None: there are none."""
        if (hooks := self._session.hooks) is None:
            return None
        from dragoman.coder.hook_calls import CallHooks

        return CallHooks(hooks, label, kind)

    async def summary_changed(self, stage: Literal["before", "after"], *, is_asked: bool, focus: str) -> None:
        """Tell hooks of a summary: a `SummaryWatch`."""
        if (hooks := self._session.hooks) is not None:
            await hooks.compacting(stage, is_asked=is_asked, focus=focus)

    async def was_forgotten(self, identity: Identity) -> None:
        """Run the hooks of a start again: the model has forgotten what they have told it."""
        if (hooks := await self._session.refresh_hooks(identity)) is not None:
            await hooks.begin_turn()
            await hooks.end("clear")
            await hooks.restart("clear")

    @property
    def started_files(self) -> Sequence[str]:
        """The files of the workspace that hooks of the user start."""
        hooks = self._session.hooks
        return () if hooks is None else hooks.protected
