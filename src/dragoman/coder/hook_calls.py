"""Hooks before and after a tool call.

Before a call is judged, hooks are told it. What they say goes with the call to the permission gate. An input that one
of them gives in the place of the model's is a new call: it is checked, looked at and shown as one, all hooks are told
of it, and then it is judged. So every hook has seen what runs, and no input is given twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.hook_input import hook_calls, hook_response, our_input
from dragoman.coder.hook_output import HookAnswer, context_of, verdict_of
from dragoman.coder.hook_verdict import HookVerdict
from dragoman.coder.hooks import SessionHooks
from dragoman.coder.permissions import JudgedCall, digest_of
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.coder.tool_names import names_of
from dragoman.coder.toolbox import STOPPED, failure_of
from dragoman.coder.tools.contract import BadInput, Tool, ToolContext, ToolOutcome
from dragoman.errors import DragomanError


class CallHooks:
    """Runs the hooks around the calls of a turn, or of a helper. `label` and `kind` are the helper's; empty: none."""

    def __init__(self, hooks: SessionHooks, label: str = "", kind: str = "") -> None:
        self._hooks: Final = hooks
        self._label: Final = label
        self._helper: Final = {"agent_id": label.removesuffix(": "), "agent_type": kind} if label else {}

    async def before(self, tool: Tool, call: JudgedCall, shown: ToolCall, context: ToolContext) -> JudgedCall:
        """Return the call with what hooks say of it, as it is then: with another input, and looked at again.

        Raises `BadInput` where it cannot be run any more.
        """
        if self._hooks.stopped:
            return call._replace(hooked=HookVerdict("deny", self._hooks.stopped))
        if not self._hooks.matching("PreToolUse", names_of(call.tool), self._is_meant(call)):
            return call
        proposed = call
        answers = await self._ask(call)
        updated = next((one for one in answers if one.updated is not None), None)
        verdict = verdict_of(answers)
        if updated is not None and verdict.word != "deny":
            given = our_input(call.tool, updated.updated or {})
            if given is None:
                reason = f"a hook of {updated.hook.whose} wants another input, which this tool cannot be given by one"
                return call._replace(hooked=HookVerdict("deny", reason))
            if given != call.input:
                call = await self._updated(tool, call, given, updated, shown, context)
                verdict = verdict_of(await self._ask(call))
        # While hooks ran, files may have changed: what is judged and shown is the world behind them.
        now = await tool.preview(call, context)
        call = call._replace(acts=now.acts, stamp=now.stamp, hooked=verdict)
        if digest_of(call) != digest_of(proposed):
            await shown.update(title=self._label + now.title, content=list(now.content), locations=list(now.locations))
        return call

    async def _updated(
        self,
        tool: Tool,
        call: JudgedCall,
        given: dict[str, Any],
        answer: HookAnswer,
        shown: ToolCall,
        context: ToolContext,
    ) -> JudgedCall:
        call = call._replace(input=given)
        try:
            tool.check(call)
            now = await tool.preview(call, context)
        except BadInput as error:
            raise type(error)(f"A hook of {answer.hook.whose} has changed the input of this call: {error}") from None
        await shown.update(raw_input=given)
        return call._replace(acts=now.acts, stamp=now.stamp)

    async def _ask(self, call: JudgedCall) -> list[HookAnswer]:
        answers: list[HookAnswer] = []
        for told in hook_calls(call, self._hooks.folder):
            answers += await self._run("PreToolUse", call, told)
        return answers

    async def run(self, call: JudgedCall, shown: ToolCall, work: Awaitable[ToolOutcome]) -> ToolOutcome:
        """Run an approved call, and then the hooks behind it; what these add stands in its result."""
        try:
            outcome = await work
        except BadInput as error:
            outcome = failure_of(error)
        event = "PostToolUseFailure" if outcome.failed else "PostToolUse"
        answers: list[HookAnswer] = []
        for told in hook_calls(call, self._hooks.folder):
            response = hook_response(call.tool, told["tool_input"], outcome.text, failed=outcome.failed)
            more = (
                {"error": outcome.text, "is_interrupt": outcome.text == STOPPED}
                if outcome.failed
                else {"tool_response": response}
            )
            answers += await self._run(event, call, {**told, **more})
        text = _added(call.hooked.context, answers)
        if not text:
            return outcome
        if shown.showed:  # else the outcome is shown, and this with it
            await shown.add(text)
        return outcome._replace(text=f"{outcome.text}\n{text}" if outcome.text else text)

    async def _run(self, event: str, call: JudgedCall, told: dict[str, Any]) -> list[HookAnswer]:
        fields = {**told, "tool_use_id": call.id, **self._helper}
        return await self._hooks.run(event, fields, names_of(call.tool), self._is_meant(call))

    def _is_meant(self, call: JudgedCall) -> Callable[[Any], bool]:
        return lambda hook: hook.is_for_call(call.tool, call.acts)

    async def notify(self, title: str) -> None:
        """Tell hooks that a question is put to the user."""
        try:
            await self._hooks.notify("permission_prompt", f"Dragoman needs your permission: {title}")
        except DragomanError:
            pass


def _added(context: str, answers: Sequence[HookAnswer]) -> str:
    """Return what the model is told of hooks beside a result; empty: nothing."""
    reasons = [one.reason for one in answers if one.word == "deny"]
    parts = [part for part in (context, *reasons, context_of(answers)) if part]
    return wrap_in_tag("hook", "\n".join(parts)).rstrip("\n") if parts else ""
