"""A failing test: run it, find the function, try the likeliest change, run it again; and undo what did not help."""

import re
from typing import Final, NamedTuple

from dragoman.coder.models.contract import TextDelta, ThoughtDelta
from dragoman.coder.models.offline.answers import Ran, fenced, hits, is_cut, paths, tail
from dragoman.coder.models.offline.edits import edit
from dragoman.coder.models.offline.repairs.candidates import Candidate, candidates
from dragoman.coder.models.offline.repairs.cases import Case, File, called, imported, suspects
from dragoman.coder.models.offline.repairs.failures import FailedTest, failures, nothing_ran, summary
from dragoman.coder.models.offline.repairs.suites import Suite, find_suite, run_suite
from dragoman.coder.models.offline.walk import Denied, Reach, Walk
from dragoman.coder.models.offline.wishes.intents import Fix

# Each try is a change the user is asked about; after so many, a person should look at the code.
MOST_TRIES: Final = 5
# Tests repaired in one go.
MOST_TESTS: Final = 3
# Files read to find the function.
_FILES: Final = 6
_TAIL_LINES: Final = 25


class Seen(NamedTuple):
    """A run of the tests."""

    suite: Suite
    ran: Ran
    failing: list[FailedTest]


def fix(reach: Reach, wish: Fix) -> Walk[None]:
    """Repair a failing test, or, if no edit is wanted, say why it fails."""
    suite = yield from find_suite(reach, wish.name)
    keyword, suite = suite.keyword, suite._replace(keyword="")
    if keyword:
        yield TextDelta(f"`{keyword}` is in `{suite.file}`. I run that file's tests.\n\n")
    seen = yield from _run(reach, suite)
    if not seen.failing:
        yield TextDelta(_nothing_to_fix(seen))
        return
    for _ in range(MOST_TESTS):
        target = _target(seen.failing, keyword)
        if target is None:
            yield TextDelta(f"`{keyword}` passes: {summary(seen.ran.output)}. Others fail: {_names(seen.failing)}.\n")
            return
        yield TextDelta(f"`{target.test}` fails: `{target.first_line}`{_place(reach, target)}.\n\n")
        after = yield from _mend(reach, seen, target, wish)
        if after is None:
            return
        seen = after
        if keyword or not seen.failing:
            break
    if seen.failing:
        yield TextDelta(f"Still failing: {_names(seen.failing)}.\n")


def _run(reach: Reach, suite: Suite) -> Walk[Seen]:
    suite, result = yield from run_suite(reach, suite)
    return Seen(suite, result, failures(result.output) if suite.kind != "other" else [])


def _nothing_to_fix(seen: Seen) -> str:
    output = seen.ran.output
    if nothing_ran(output):
        return f"No test was found by `{seen.suite.line()}`.\n"
    if seen.ran.code == 0:
        return f"There is nothing to fix: {summary(output) or 'the tests pass'}.\n"
    why = "I can only repair Python" if seen.suite.kind == "other" else "I cannot read what went wrong"
    return f"`{seen.suite.line()}` ended with {seen.ran.ending}. {why}; this is its end:\n\n" + fenced(
        tail(output, _TAIL_LINES)
    )


def _target(failing: list[FailedTest], keyword: str) -> FailedTest | None:
    """The failure that is meant; a class means any of its tests."""
    if not keyword:
        return failing[0]
    return next((each for each in failing if keyword in re.split(r"[.\[\s:]+", each.test)), None)


# -- one test --------------------------------------------------------------------------------------------------------


def _mend(reach: Reach, seen: Seen, target: FailedTest, wish: Fix) -> Walk[Seen | None]:
    """The run in which it passes; None if it does not come to that."""
    case = yield from _case(reach, seen, target)
    found = candidates(case) if case is not None else ()
    if case is None or not found:
        yield TextDelta(_no_idea(case, target))
        return None
    best = found[0]
    if best.proved:
        yield ThoughtDelta(
            f"Worked out on paper: with that change `{target.name}` passes, and no other test of its file fails."
        )
    if not wish.edit:
        yield TextDelta(f"I suspect `{best.function}` in `{best.path}`: {_told(best)}.\n")
        yield TextDelta(f"To let me try, say: fix the failing test {target.name}\n")
        return None
    harmless = [each for each in found if each.proved or each.calm][:MOST_TRIES]
    if not harmless:
        yield TextDelta(f"I suspect `{best.function}` in `{best.path}`: {_told(best)}.\n")
        yield TextDelta("I do not try it: the function does more than compute, and I am not sure enough.\n")
        return None
    return (yield from _try(reach, seen, target, case, harmless))


def _try(reach: Reach, seen: Seen, target: FailedTest, case: Case, found: list[Candidate]) -> Walk[Seen | None]:
    """Change, run, and change on from there, until the test passes; else put back what was there."""
    reach.need("edit_file")
    original = {file.path: file.text for file in case.sources}
    changed = ""  # the path that is not as it was
    current = dict(original)
    try:
        for candidate in found:
            if changed and changed != candidate.path:
                yield from _put(reach, changed, current, original[changed])
                changed = ""
            yield TextDelta(f"I try `{candidate.path}`, {_told(candidate)}.\n\n")
            yield from _put(reach, candidate.path, current, candidate.text)
            changed = candidate.path
            after = yield from _run(reach, seen.suite)
            if _is_better(seen, after, target):
                yield TextDelta(_success(after, target, candidate))
                return after
            yield TextDelta("That does not help.\n\n")
        yield from _put(reach, changed, current, original[changed])
        changed = ""
    except Denied:
        yield TextDelta(_left_behind(changed))
        raise
    except _Refused as refused:
        yield TextDelta(f"The change could not be made: {refused}\n{_left_behind(changed)}")
        return None
    yield TextDelta(
        f"I tried {_counted(len(found), 'change')}, and `{target.name}` still fails. The file is as it was.\n"
    )
    return None


class _Refused(Exception):
    """An edit that the tool did not make."""


def _put(reach: Reach, path: str, current: dict[str, str], text: str) -> Walk[None]:
    """Bring a file from what it is to this text."""
    change = edit(current[path], text)
    said = yield from reach.call("edit_file", path=path, old_string=change.old, new_string=change.new)
    if said.failed:
        raise _Refused(said.text)
    current[path] = text


def _is_better(before: Seen, after: Seen, target: FailedTest) -> bool:
    """The test passes, and nothing fails that passed before."""
    failing = {each.test for each in after.failing}
    is_run = after.ran.code == 0 or (bool(after.failing) and after.ran.code == 1)
    return (
        is_run
        and not nothing_ran(after.ran.output)
        and failing <= {each.test for each in before.failing} - {target.test}
    )


# -- what the test is about ------------------------------------------------------------------------------------------


def _case(reach: Reach, seen: Seen, target: FailedTest) -> Walk[Case | None]:
    """Read the test's file and the files it leads to."""
    frames = target.own_frames
    test_file = next((frame.file for frame in frames if frame.function == target.name), seen.suite.file)
    line = next((frame.line for frame in frames if frame.function == target.name), 0)
    tests = yield from _read(reach, test_file)
    if tests is None:
        return None
    wanted = called(tests.text, target.name)
    files: dict[str, File] = {}
    for frame in frames:
        if frame.file not in (test_file, *files) and frame.file.endswith(".py"):
            yield from _take(reach, frame.file, files)
    made = Case(target.name, tests.text, (), target.error, tuple(frame.function for frame in frames), line)
    for module in imported(tests.text, wanted):
        if len(files) >= _FILES or (files and _knows(made, files, wanted)):
            break
        for path in (yield from _module_files(reach, module)):
            yield from _take(reach, path, files)
    if not _knows(made, files, wanted):
        for path in (yield from _defining_files(reach, wanted)):
            yield from _take(reach, path, files)
    return made._replace(sources=tuple(files.values()))


def _knows(case: Case, files: dict[str, File], wanted: list[str]) -> bool:
    """Whether the functions the test calls are among what was read."""
    found = suspects(case._replace(sources=tuple(files.values()), frames=()))
    return any(function.name in wanted for _, function in found)


def _module_files(reach: Reach, module: str) -> Walk[list[str]]:
    if not reach.has("glob"):
        return [f"{module}.py"]
    name = module.rpartition("/")[2]
    pattern = f"**/{name}.py"
    said = yield from reach.call("glob", pattern=pattern)
    found = [] if said.failed else [reach.short(path) for path in paths(said.text, pattern)]
    fitting = [path for path in found if f"/{path}".endswith(f"/{module}.py")]
    return (fitting or found)[:2]


def _defining_files(reach: Reach, names: list[str]) -> Walk[list[str]]:
    words = [name for name in names if not name.startswith("assert")][:8]
    if not reach.has("grep") or not words:
        return []
    said = yield from reach.call("grep", pattern=rf"\b(def|class) ({'|'.join(words)})\b", glob="*.py")
    found = [] if said.failed else [reach.short(hit.path) for hit in hits(said.text)]
    return [path for path in dict.fromkeys(found) if not path.rpartition("/")[2].startswith("test_")][:2]


def _take(reach: Reach, path: str, files: dict[str, File]) -> Walk[None]:
    path = reach.short(path)
    if path in files or len(files) >= _FILES:
        return
    file = yield from _read(reach, path)
    if file is not None:
        files[path] = file


def _read(reach: Reach, path: str) -> Walk[File | None]:
    """A file, whole; None if it cannot be had."""
    if not path:
        return None
    said = yield from reach.call("read_file", path=path)
    return None if said.failed or is_cut(said.text) else File(reach.short(path), said.text)


# -- sentences -------------------------------------------------------------------------------------------------------


def _told(candidate: Candidate) -> str:
    where = f"line {candidate.line} ({candidate.what})"
    if not candidate.old:
        return f"{where}: add `{candidate.new.strip()}`"
    return f"{where}: `{candidate.old}` becomes `{candidate.new}`"


def _success(after: Seen, target: FailedTest, candidate: Candidate) -> str:
    told = summary(after.ran.output)
    was = f"`{candidate.old}` is `{candidate.new}` now" if candidate.old else f"`{candidate.new.strip()}` was missing"
    return (
        f"`{target.name}` passes now{f' ({told})' if told else ''}. "
        f"The mistake was in `{candidate.function}`: {candidate.what}. "
        f"`{candidate.path}` line {candidate.line}: {was}.\n"
    )


def _left_behind(path: str) -> str:
    return f"`{path}` has my last change in it; the diff above shows it.\n" if path else ""


def _no_idea(case: Case | None, target: FailedTest) -> str:
    found = suspects(case) if case is not None else []
    about = f" It leads to `{found[0][1].name}` in `{found[0][0].path}`." if found else ""
    return (
        "I have no change to suggest: I only know single mistakes, such as a wrong operator, name, bound or number."
        f"{about} The test says:\n\n{fenced(tail(target.error, _TAIL_LINES))}"
    )


def _place(reach: Reach, failure: FailedTest) -> str:
    last = failure.own_frames[-1] if failure.own_frames else None
    return "" if last is None else f" (`{reach.short(last.file)}` line {last.line})"


def _names(failing: list[FailedTest]) -> str:
    return ", ".join(f"`{each.test}`" for each in failing[:5]) + (" and more" if len(failing) > 5 else "")


def _counted(count: int, noun: str) -> str:
    return f"one {noun}" if count == 1 else f"{count} {noun}s"
