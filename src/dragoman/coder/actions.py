"""What our slash commands do. What they say is said to the user; the model does not hear it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from dragoman.agent.kept import keep_option
from dragoman.coder.commands import BUILT_IN
from dragoman.coder.modes import MODES
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, OptionsChanged

if TYPE_CHECKING:
    from dragoman.coder.work import Work


async def run(name: str, arguments: str, work: "Work") -> AsyncGenerator[AnyEvent, None]:
    """One of ours, to the end of its turn."""
    match name:
        case "help":
            text = _help(work)
        case "compact":
            await work.sum_up()
            text = "The conversation is summed up."
        case "context":
            text = await _context(work)
        case "permissions":
            text = await _permissions(arguments, work)
        case "mode" | "model":
            yield_after, text = await _option(name, arguments, work)
            if yield_after is not None:
                yield yield_after
        case "mcp":
            text = await work.servers_text()
        case "undo":
            text = await _undo(work)
        case "clear":
            await work.forget()
            text = "The model has forgotten the conversation so far. You still see it."
        case _:  # `/plan` with something to plan is a turn of its own
            text = "What is there to plan? `/plan WHAT`"
    yield AgentMessageChunk(Text(text + "\n"))
    yield Idle(stop_reason="end_turn")


def _help(work: "Work") -> str:
    lines = [f"- `/{name}` {description}" for name, (description, _) in BUILT_IN.items()]
    lines += [f"- `/{own.name}` {own.description}" for own in work.own_commands.values()]
    where = f"Model: {work.model.name}. Mode: {work.mode()}."
    return "\n".join([where, "", "Commands:", *lines])


async def _context(work: "Work") -> str:
    used, window, items = await work.fullness()
    of = f"about {used} tokens" + (f" of {window} ({100 * used // window} %)" if window else "")
    return f"The model sees {items} items, {of}."


async def _permissions(arguments: str, work: "Work") -> str:
    rules = await work.rules()
    word, _, number = arguments.partition(" ")
    if word == "revoke":
        if not number.strip().isdecimal() or not 0 < int(number) <= len(rules):
            return (
                f"`/permissions revoke N`, where N is from 1 to {len(rules)}." if rules else "There is none to revoke."
            )
        rule = await work.revoke(int(number) - 1)
        return f"Revoked: {rule.effect} {rule.tool} {rule.matched}"
    if not rules:
        return "Nothing is always allowed or forbidden in this session."
    return "\n".join(f"{n}. {rule.effect} `{rule.tool}` {rule.matched}" for n, rule in enumerate(rules, 1))


async def _option(name: str, value: str, work: "Work") -> tuple[OptionsChanged | None, str]:
    """Show an option or change it."""
    session = work.session
    if not value:
        choices = ", ".join(MODES) if name == "mode" else ", ".join(work.model_names())
        return None, f"The {name} is {session.option(name)}. There are: {choices}"
    try:
        await work.set_option(name, value)
    except RequestFailed as error:
        return None, f"{value}: {error.message}"
    value = str(session.option(name))
    await keep_option(session, name, value)
    return OptionsChanged(session.options), f"The {name} is {value} now."


async def _undo(work: "Work") -> str:
    undone = await asyncio.to_thread(work.changes.undo)
    if not undone.restored and not undone.left:
        return "There is nothing to undo."
    lines = [f"- put back {path}" for path in undone.restored]
    lines += [
        f"- left alone {path}: it is not what I wrote any more, or its old content was not kept" for path in undone.left
    ]
    return "\n".join(lines)
