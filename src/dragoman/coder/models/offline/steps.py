"""One walk for each kind of wish, and the walk through a whole message."""

from collections.abc import Sequence
from typing import Final, assert_never

from dragoman.coder.context import ContextAssistantMessage, ContextSummary, ContextUserMessage, Item
from dragoman.coder.models.contract import TextDelta
from dragoman.coder.models.offline import writing
from dragoman.coder.models.offline.answers import entries, fenced, hits, paths, ran, tail
from dragoman.coder.models.offline.conversation import ConversationMessage, Situation, text_of_request
from dragoman.coder.models.offline.explaining import explain, read_or_find
from dragoman.coder.models.offline.planning import entries as plan_entries
from dragoman.coder.models.offline.planning import steps_of
from dragoman.coder.models.offline.repairs.failures import failures, summary
from dragoman.coder.models.offline.repairs.suites import find_suite, run_suite
from dragoman.coder.models.offline.walk import Reach, Walk, halting, resumed
from dragoman.coder.models.offline.wishes.intents import (
    AnyIntent,
    Append,
    Ask,
    Create,
    Explain,
    Fetch,
    FindFiles,
    Fix,
    Hello,
    Help,
    Intent,
    ListFilesIntent,
    MakePlan,
    Read,
    Rename,
    Replace,
    Run,
    RunTests,
    Search,
    Sum,
    UnknownIntent,
)
from dragoman.coder.models.offline.wishes.parsing import requests
from dragoman.coder.models.offline.wishes.phrases import phrase
from dragoman.coder.models.offline.words import HELP, INTRODUCTION, PUZZLED

# Requests of one message that are done; each may take several model calls, and a turn has a hundred.
MOST_REQUESTS: Final = 10
# From so many on, a plan shows where we are.
_PLANNED: Final = 3
# What is shown of a result; the tool call shows the rest.
_SHOWN_LINES: Final = 200
_SHOWN_CHARACTERS: Final = 20_000
_TAIL_LINES: Final = 20
_LISTED: Final = 50
_SO_FAR: Final = "What happened so far:"
_GOAL_CHARACTERS: Final = 500
# What changes nothing, and so is done in mode `plan`, too.
_LOOKING: Final = (Read, ListFilesIntent, FindFiles, Search, Explain, MakePlan, Ask, Sum, Hello, Help)


def answer(situation: Situation) -> Walk[None]:
    """The walk through a turn: what was said into it first, then the rest of what was asked before."""
    walk: Walk[None] = _said("I no longer see what you asked for. Please say it again.\n")
    for number, message in enumerate(situation.messages):
        fresh = _message(situation, message, is_first=situation.is_first and number == 0)
        before = situation.messages[number - 1] if number else None
        if before is None or before.finished:
            walk = fresh
        else:
            walk = _in_turn(fresh, resumed(walk, before.done))
    return resumed(walk, situation.messages[-1].done) if situation.messages else walk


def _said(text: str) -> Walk[None]:
    yield TextDelta(text)


def _in_turn(first: Walk[None], rest: Walk[None]) -> Walk[None]:
    yield from first
    yield TextDelta("\nNow the rest of what you asked before.\n\n")
    yield from rest


def _message(situation: Situation, message: ConversationMessage, *, is_first: bool) -> Walk[None]:
    """The walk through one message."""
    reach = Reach(situation.offered, message.attached, situation.folder)
    wishes = requests(message.wish)
    if situation.mode == "plan" and not all(isinstance(wish.intent, _LOOKING) for wish in wishes):
        goal = " ".join(message.wish.raw(message.wish.masked).split())
        wishes = [AnyIntent(MakePlan(goal[:_GOAL_CHARACTERS]), goal)]
    tells_who_it_is = any(isinstance(wish.intent, Help) or wish.intent == Hello() for wish in wishes)
    if is_first and not tells_who_it_is:
        yield TextDelta(INTRODUCTION)
    todo = wishes[:MOST_REQUESTS]
    is_planned = len(todo) >= _PLANNED and reach.has("update_plan")
    titles = [wish.words[:_GOAL_CHARACTERS] for wish in todo]
    for number, wish in enumerate(todo):
        if is_planned:
            yield from reach.call("update_plan", entries=plan_entries(titles, number))
        if number:
            yield TextDelta("\n")
        if not (yield from halting(_one(reach, situation, wish))):
            return
    if is_planned:
        yield from reach.call("update_plan", entries=plan_entries(titles, len(todo)))
    if len(wishes) > MOST_REQUESTS:
        yield TextDelta(f"\nI did the first {MOST_REQUESTS} things; please ask for the others again.\n")


def _one(reach: Reach, situation: Situation, wish: AnyIntent) -> Walk[None]:
    intent: Intent = wish.intent
    match intent:
        case Read():
            yield from _read(reach, intent)
        case ListFilesIntent():
            yield from _list(reach, intent)
        case FindFiles():
            yield from _find(reach, intent)
        case Search():
            yield from _search(reach, intent)
        case Run():
            yield from _run(reach, intent.command)
        case RunTests():
            yield from _run_tests(reach, intent)
        case Create():
            yield from writing.create(reach, intent)
        case Append():
            yield from writing.append(reach, intent)
        case Replace():
            yield from writing.replace(reach, intent)
        case Rename():
            yield from writing.rename(reach, intent)
        case MakePlan():
            yield from _plan(reach, intent)
        case Explain():
            yield from explain(reach, intent)
        case Fix():
            from dragoman.coder.models.offline.repairs.fixing import fix  # much, and for this wish only

            yield from fix(reach, intent)
        case Fetch():
            yield from _fetch(reach, intent)
        case Ask():
            yield from _ask(reach, intent)
        case Sum():
            yield TextDelta(summed(situation.before))
        case Hello():
            yield TextDelta("You are welcome.\n" if intent.thanks else f"Hello. {HELP}")
        case Help():
            yield TextDelta(HELP)
        case UnknownIntent():
            yield TextDelta(f"{intent.hint}\n" if intent.hint else PUZZLED)
        case _:
            assert_never(intent)


# -- looking ---------------------------------------------------------------------------------------------------------


def _read(reach: Reach, wish: Read) -> Walk[None]:
    found = yield from read_or_find(reach, wish.path, wish.start, wish.end)
    if found is None:
        return
    lines = found.text.splitlines()
    if wish.start is not None:
        about = (
            f"line {wish.start}" if wish.end == wish.start else f"lines {wish.start} to {wish.start + len(lines) - 1}"
        )
    else:
        about = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    yield TextDelta(f"`{found.path}`, {about}:\n\n")
    yield TextDelta(_shown(found.text, found.path.rpartition(".")[2] if "." in found.path else ""))


def _shown(text: str, info: str = "") -> str:
    """The beginning of a text in a block, and what was left out."""
    lines = text[:_SHOWN_CHARACTERS].splitlines()[:_SHOWN_LINES]
    left = len(text.splitlines()) - len(lines)
    more = f"\n{left} more lines are not shown here.\n" if left > 0 else ""
    return fenced("\n".join(lines), info) + more if text.strip() else "It is empty.\n"


def _list(reach: Reach, wish: ListFilesIntent) -> Walk[None]:
    if reach.has("list_files") or not reach.has("glob"):
        said = yield from reach.call("list_files", path=wish.path or None)
    else:
        said = yield from reach.call("glob", pattern="*", path=wish.path or None)
    where = f"`{wish.path}`" if wish.path else "The working folder"
    if said.failed:
        yield TextDelta(f"I cannot list {where if wish.path else 'the working folder'}: {said.text}\n")
        return
    names = [reach.short(name) for name in entries(said.text)]
    count = "one entry" if len(names) == 1 else f"{len(names)} entries"
    yield TextDelta(f"{where} has {count}:\n\n{_bullets(names)}" if names else f"{where} is empty.\n")


def _find(reach: Reach, wish: FindFiles) -> Walk[None]:
    said = yield from reach.call("glob", pattern=wish.pattern, path=wish.path or None)
    if said.failed:
        yield TextDelta(f"The search failed: {said.text}\n")
        return
    found = [reach.short(path) for path in paths(said.text, wish.pattern)]
    files = "file" if len(found) == 1 else "files"
    head = f"{len(found)} {files} match `{wish.pattern}`" if len(found) != 1 else f"One file matches `{wish.pattern}`"
    yield TextDelta(f"{head}:\n\n{_bullets(found)}" if found else f"No file matches `{wish.pattern}`.\n")


def _search(reach: Reach, wish: Search) -> Walk[None]:
    said = yield from reach.call(
        "grep",
        pattern=wish.pattern,
        path=wish.where.path or None,
        glob=wish.where.glob or None,
        case_insensitive=True if wish.ignore_case else None,
    )
    if said.failed:
        yield TextDelta(f"The search failed: {said.text}\n")
        return
    found = hits(said.text)
    if not found:
        yield TextDelta(f"I found no {'line with ' if wish.what == wish.pattern else ''}`{wish.what}`.\n")
        return
    lines = [f"{reach.short(hit.path)}:{hit.line}: {hit.text.strip()[:200]}" for hit in found[:_LISTED]]
    more = f"\n{len(found) - _LISTED} more are not shown here.\n" if len(found) > _LISTED else ""
    count = "One line" if len(found) == 1 else f"{len(found)} lines"
    files = len({hit.path for hit in found})
    yield TextDelta(f"{count} in {'one file' if files == 1 else f'{files} files'} for `{wish.what}`:\n\n")
    yield TextDelta(fenced("\n".join(lines)) + more)


def _bullets(names: Sequence[str]) -> str:
    more = f"\n{len(names) - _LISTED} more are not shown here.\n" if len(names) > _LISTED else ""
    return "".join(f"- `{name}`\n" for name in names[:_LISTED]) + more


# -- doing -----------------------------------------------------------------------------------------------------------


def _run(reach: Reach, command: str) -> Walk[None]:
    said = yield from reach.call("bash", command=command)
    result = ran(said.text, said.failed)
    yield TextDelta(
        f"`{command.splitlines()[0]}` ended with {result.ending}."
        if result.code is not None
        else _not_ended(command, result.ending)
    )
    if not result.output.strip():
        yield TextDelta(" It printed nothing.\n")
        return
    lines = result.output.rstrip().splitlines()
    about = f" The last {_TAIL_LINES} of {len(lines)} lines:" if len(lines) > _TAIL_LINES else " It printed:"
    yield TextDelta(f"{about}\n\n{fenced(tail(result.output, _TAIL_LINES)[-_SHOWN_CHARACTERS:])}")


def _not_ended(command: str, ending: str) -> str:
    return f"`{command.splitlines()[0]}` did not end by itself: {ending}."


def _run_tests(reach: Reach, wish: RunTests) -> Walk[None]:
    suite = yield from find_suite(reach, wish.name)
    suite, result = yield from run_suite(reach, suite)
    told = summary(result.output)
    yield TextDelta(f"`{suite.line()}` ended with {result.ending}.{f' {told}.' if told else ''}\n")
    failing = failures(result.output) if suite.kind != "other" else []
    for failure in failing[:_LISTED]:
        yield TextDelta(f"- `{failure.test}`: `{failure.first_line}`\n")
    if result.code != 0 and not failing:
        yield TextDelta("\n" + fenced(tail(result.output, _TAIL_LINES)))
    elif failing:
        yield TextDelta(f"\nTo look for the mistake, say: fix the failing test {failing[0].name}\n")


def _fetch(reach: Reach, wish: Fetch) -> Walk[None]:
    said = yield from reach.call("web_fetch", url=wish.url)
    yield TextDelta(
        f"{wish.url} could not be fetched: {said.text}\n" if said.failed else f"{wish.url}:\n\n{_shown(said.text)}"
    )


def _ask(reach: Reach, wish: Ask) -> Walk[None]:
    said = yield from reach.call("ask_user", question=wish.question, options=list(wish.options) or None)
    if said.failed:
        yield TextDelta("You did not answer.\n")
    elif not said.text.startswith("The question was shown."):
        yield TextDelta(f"You answered: {said.text}\n")


def _plan(reach: Reach, wish: MakePlan) -> Walk[None]:
    if wish.goal.lower() in ("", "it", "this", "that"):
        yield TextDelta("A plan for what? Say: plan to …\n")
        return
    steps = _known_steps(wish.goal) or steps_of(wish.goal)
    if reach.has("update_plan"):
        yield from reach.call("update_plan", entries=plan_entries(steps, -1))
    yield TextDelta(f"A plan to {wish.goal}:\n\n")
    yield TextDelta("".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1)))


def _known_steps(goal: str) -> list[str]:
    """The requests in a goal, if it consists of such; empty: it is something bigger."""
    known = requests(phrase([goal]))
    if any(isinstance(each.intent, UnknownIntent | Explain | Fix | MakePlan) for each in known):
        return []
    changes = any(isinstance(each.intent, Create | Append | Replace | Rename) for each in known)
    return [*(each.words for each in known), *(["Look at what changed", "Run the tests"] if changes else [])]


def summed(before: Sequence[Item]) -> str:
    """The requests and the calls of a conversation."""
    lines: list[str] = []
    for item in before:
        if isinstance(item, ContextUserMessage):
            lines.append(f"- You asked: {text_of_request(item)[:200]}")
        elif isinstance(item, ContextSummary):
            lines += item.text.splitlines()
        elif isinstance(item, ContextAssistantMessage):
            for call in item.calls:
                words = [str(call.input[key]) for key in ("path", "command", "pattern", "url") if key in call.input]
                lines.append(f"  - {call.tool} {' '.join(' '.join(words).split())[:100]}".rstrip())
    lines = [line for line in lines if line and line != _SO_FAR]
    return "\n".join([_SO_FAR, "", *lines[-100:]]) + "\n" if lines else "Nothing happened so far.\n"
