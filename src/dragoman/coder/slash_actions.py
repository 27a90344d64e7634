"""Run our slash commands. Their text goes to the user and is no part of the model's context."""

from collections.abc import AsyncGenerator
from typing import Final

from msgspec import UNSET

from dragoman.agent.permission import YES_OR_NO
from dragoman.agent.session import session_core
from dragoman.agent.session_core import store_option
from dragoman.coder.compaction import Compaction
from dragoman.coder.decision_log import answered_by
from dragoman.coder.identity_limits import may_answer, may_write
from dragoman.coder.kept_rules import KeptRulesFailed
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.modes import MODES, asks_less
from dragoman.coder.session_controls import SessionControls
from dragoman.coder.slash_commands import BUILT_IN
from dragoman.coder.spend_caps import dollars
from dragoman.coder.spending import Spending
from dragoman.coder.spent import NOTHING_SPENT, SpentInSession
from dragoman.coder.tools.contract import BadInput
from dragoman.coder.tools.result_text import title_text
from dragoman.errors import RequestFailed, WorldError
from dragoman.permissions.decision import Decision
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, OptionsChanged, UsageChanged
from dragoman.vocabulary.identity import Needs

# Lines about changes in the sandbox.
_MOST_CHANGES: Final = 100


async def run(name: str, arguments: str, controls: SessionControls) -> AsyncGenerator[AnyEvent, None]:
    """Run the command `name` and yield the events of its turn, the end included."""
    match name:
        case "help":
            text = _help(controls)
        case "compact":
            compaction = await controls.compact(arguments)
            text = _compaction_text(compaction)
            # A summary that failed has its cost too.
            if compaction.outcome != "nothing" and (usage := await _usage(controls)):
                yield usage
        case "context":
            text = await _context(controls)
        case "cost":
            text = await _cost(await controls.spending())
        case "permissions":
            text = await _permissions(arguments, controls)
        case "mode" | "model":
            yield_after, text = await _option(name, arguments, controls)
            if yield_after is not None:
                yield yield_after
        case "mcp":
            text = await (controls.offer_tools_anew() if arguments == "refresh" else controls.servers_text())
        case "tasks":
            text = await _tasks(arguments, controls)
        case "sandbox":
            text = await _sandbox(arguments, controls)
        case "undo":
            text = await _undo(controls)
        case "rewind":
            text = await controls.rewind(arguments)
            if usage := await _usage(controls):
                yield usage
        case "clear":
            await controls.forget()
            if usage := await _usage(controls):
                yield usage
            text = "The model has forgotten the conversation so far. You still see it."
        case _:  # `/plan` with something to plan is a turn of its own
            text = "Nothing to plan was named. Write `/plan TASK`."
    yield AgentMessageChunk(Text(text + "\n"))
    yield Idle(stop_reason="end_turn")


def _help(controls: SessionControls) -> str:
    lines = [f"- `/{name}` {description}" for name, (description, _) in BUILT_IN.items()]
    lines += [f"- `/{one.name}` {one.about}" for one in controls.prompt_files.values()]
    where = f"Model: {controls.model.name}. Mode: {controls.mode()}."
    return "\n".join([where, "", "Commands:", *lines])


def _compaction_text(compaction: Compaction) -> str:
    if compaction.outcome == "nothing":
        return "There is nothing to sum up."
    if compaction.failure is not None:
        return f"The conversation could not be summed up: {compaction.failure}. Nothing was changed."
    return (
        f"The conversation was summed up: it had about {compaction.before:,} tokens and has about "
        f"{compaction.after:,} now. What you said yourself was kept word for word as far as it fits."
    )


async def _usage(controls: SessionControls) -> UsageChanged | None:
    """Return how full the window is now, and the cost; None where no window is known."""
    used, window, _ = await controls.fullness()
    return None if window is None else UsageChanged(used, window, await controls.cost() or UNSET)


async def _context(controls: SessionControls) -> str:
    used, window, items = await controls.fullness()
    of = f"about {used:,} tokens" + (f" of {window:,} ({100 * used // window} %)" if window else "")
    cost = await controls.cost()
    # Updates tell it only beside a window, which not every model is known to have.
    spent = f" The session has cost {cost.amount:.4f} {cost.currency} so far." if cost else ""
    shares = [f"- about {tokens:,}: {part}" for part, tokens in (await controls.shares()).items()]
    return "\n".join([f"The model sees {items} items, {of}.{spent}", *([""] if shares else []), *shares])


async def _cost(spending: Spending) -> str:
    total, turn, caps = spending.total, spending.this_turn, spending.caps
    lines = [f"- This session{_has_cost(total)}"]
    if turn != NOTHING_SPENT:
        lines.append(f"- Since your last prompt it{_has_cost(turn)}")
    if (today := await spending.spent_today()) is not None:
        lines.append(f"- All sessions of today have cost {dollars(today)}.")
    limits = [
        f"{dollars(cap.dollars)} for a {what}{f' (by {cap.file})' if cap.file else ''}"
        for what, cap in (("turn", caps.turn), ("session", caps.session), ("day", caps.day))
        if cap is not None
    ]
    if limits:
        lines.append(f"- No more may be spent than {', '.join(limits)}.")
    return "\n".join(lines)


def _has_cost(spent: SpentInSession) -> str:
    """Return the rest of a sentence about what was used."""
    tokens = spent.tokens_text()
    if spent.cost is None:
        return (
            f" has used {tokens}; what that costs is not known."
            if tokens
            else " has used nothing that a provider has reported."
        )
    more = f" What {spent.unpriced:,} of these tokens cost is not known and not in it." if spent.unpriced else ""
    return f" has cost {dollars(spent.cost)}{f': {tokens}' if tokens else ''}.{more}"


async def _permissions(arguments: str, controls: SessionControls) -> str:
    rules = await controls.rules()
    word, _, number = arguments.partition(" ")
    if word == "revoke":
        if not number.strip().isdecimal() or not 0 < int(number) <= len(rules):
            return (
                f"`/permissions revoke N`, where N is from 1 to {len(rules)}." if rules else "There is none to revoke."
            )
        rule = await controls.revoke(int(number) - 1)
        return f"Revoked: {rule}"
    lines = [f"{n}. {rule.verdict} `{rule.tool}` {rule.subject}" for n, rule in enumerate(rules, 1)]
    if not lines:
        lines.append("Nothing is always allowed or forbidden in this session.")
    return "\n".join([*lines, *await _kept_rules(controls), *_managed_rules(controls.managed)])


def _managed_rules(managed: ManagedSettings) -> list[str]:
    """Return the administrator's rules in lines; none where there are none."""
    rules = [*managed.rules.against(), *managed.rules.allowing()]
    lines = [f"- {rule.verdict} {rule.pattern()}" for rule in rules]
    if managed.rules.only_managed:
        lines.append("- what you always allow does not count")
    return ["", f"Of the administrator's file {managed.file}, before all others:", "", *lines] if lines else []


async def _kept_rules(controls: SessionControls) -> list[str]:
    """Return the rules that outlive the session in lines; none where there are none."""
    try:
        kept = await controls.kept_rules()
    except KeptRulesFailed as error:
        return ["", f"Nothing is allowed, because {error}."]
    lines = [
        f"- {one.id}: {one.rule.verdict} `{one.rule.tool}` {one.rule.subject}, "
        f"{'in this project' if one.project else 'everywhere'}"
        for one in kept
    ]
    return (
        ["", "Kept beyond the session; `dragoman permissions remove ID` takes one away:", "", *lines] if lines else []
    )


async def _tasks(arguments: str, controls: SessionControls) -> str:
    word, _, id = arguments.partition(" ")
    if word == "stop":
        try:
            return await controls.stop_task(id.strip())
        except BadInput as error:
            return str(error)
    return controls.tasks() or "Nothing runs in the background."


async def _option(name: str, value: str, controls: SessionControls) -> tuple[OptionsChanged | None, str]:
    """Show an option or change it."""
    session = controls.session
    if not value:
        return None, f"The {name} is {session.option(name)}. There are: {', '.join(controls.choices(name))}"
    if name == "mode" and (reason := await _mode_refused(value, controls)):
        return None, reason
    before = session.options
    try:
        await controls.set_option(name, value)
    except RequestFailed as error:
        return None, f"{value}: {error.message}"
    value, after = str(session.option(name)), session.options
    try:
        await store_option(session_core(session), name, value)
    except BaseException:
        if session.options is after:
            session_core(session).options = before  # the turn fails, and what was not kept does not count
        raise
    return OptionsChanged(session.options), f"The {name} is {value} now."


async def _mode_refused(new: str, controls: SessionControls) -> str:
    """Ask the client about a mode that asks less than the present one; the reason why the mode stays, or nothing.

    A word in a prompt is no proof that the user wants it: what the client was told to send may have been pasted.
    """
    session = controls.session
    old = str(session.option("mode"))
    if new not in MODES:
        return ""
    if new not in controls.choices("mode") or not asks_less(new, old):
        is_open = new in controls.choices("mode")
        decision = Decision("allow", "", "user") if is_open else Decision("deny", "", "policy")
        await controls.decision_log.record(decision, controls.identity(), mode=old, tool="mode", kind=new, title=new)
        return ""  # what is not open to this identity is refused where it is set
    async with controls.decision_log.asking(controls.identity(), mode=old, tool="mode", kind=new, title=new):
        answer = await session.ask_permission(
            f"Change the mode from {old} to {new}",
            description=f"{MODES[new].name}: {MODES[new].description}.",
            options=[option for option in YES_OR_NO if option.kind in ("allow_once", "reject_once")],
            needs=(needs := Needs(new)),
        )
    confirmed = bool(answer) and may_answer(answer.identity, needs)
    chosen = answer.option.kind if answer.option else None
    decision = Decision("allow" if confirmed else "deny", "", "user", option=chosen)
    decider = answered_by(answer, controls.identity())
    await controls.decision_log.record(decision, decider, mode=old, tool="mode", kind=new, title=new)
    now = str(session.option("mode"))
    if now != old:
        return f"The mode has become {now} meanwhile, so it was not changed to {new}."
    return "" if confirmed else f"The mode is still {old}: {new} asks less, and the change was not confirmed."


async def _sandbox(arguments: str, controls: SessionControls) -> str:
    try:
        changes = await controls.sandbox_changes()
    except WorldError as error:
        return f"What is in the sandbox cannot be listed: {error}"
    if not changes:
        return "There is nothing in the sandbox that is not in the workspace."
    if arguments == "discard":
        identity = controls.identity()
        if not may_write(identity):
            return f"{identity.subject} may not change files, so the sandbox stays."
        await controls.discard_sandbox()
        return "The sandbox was thrown away."
    if arguments == "apply":
        await controls.apply_sandbox()
        changes = await controls.sandbox_changes()
        if not changes:
            return "Nothing is left in the sandbox."
    lines = [f"- {change.kind}: {title_text(change.path)}" for change in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        lines.append(f"- … and {len(changes) - _MOST_CHANGES:,} more")
    return "\n".join(["In the sandbox, and not in the workspace:", "", *lines])


async def _undo(controls: SessionControls) -> str:
    identity = controls.identity()
    if not may_write(identity):
        return f"{identity.subject} may not change files, so nothing was undone."
    undone = await controls.undo()
    if not any(undone):
        return "There is nothing to undo."
    lines = [f"- put back {path}" for path in undone.restored]
    lines += [
        f"- left alone {path}: it is not what I wrote any more, or its old content was not kept" for path in undone.left
    ]
    lines += [f"- left alone {path}: it is protected" for path in undone.refused]
    lines += [f"- left alone {path}: it is unsaved in the editor" for path in undone.unsaved]
    return "\n".join(lines)
