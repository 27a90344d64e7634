"""Hooks as files have them, in the JSON form of Claude Code's settings: events, matchers, commands. Pure.

What is not understood is a mistake in words, and the other hooks of the file count.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

from dragoman.coder.tool_names import names_of, our_names, plain_name
from dragoman.errors import DragomanError
from dragoman.host.command_rules import denies
from dragoman.host.launch_names import Launch
from dragoman.host.text import visible_line
from dragoman.host.trusted_parts import hooks_object
from dragoman.permissions.facts import Action
from dragoman.permissions.rule import path_patterns, wild_words_of

EVENTS: Final = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop"),
    *("SessionStart", "SessionEnd", "Notification", "PreCompact"),
)
# Whose hooks they are: the administrator's, the user's, those of a trusted project.
HookOrigin = Literal["managed", "user", "project"]
SECONDS: Final = 60.0
MOST_SECONDS: Final = 600.0
# The end of a session is not held up for longer, unless a hook says so.
END_SECONDS: Final = 1.5
MOST_END_SECONDS: Final = 5.0
# Of one file. What has more is no file of a person.
MOST_HOOKS: Final = 100
# Of a pattern. It is read before a project is trusted.
MATCHER_CHARACTERS: Final = 1_000
_EXACT: Final = re.compile(r"[\w\- ,|]*")
# What stands before a path whose beginning is only known when it runs.
_ENDS: Final = re.compile(r"[)}`\"']")
_CONDITION: Final = re.compile(r"([\w-]+)(?:\((.*)\))?")


class Hook(NamedTuple):
    """A command that runs at an event. `args` None: `command` is a line for a shell; else a program with arguments.

    `condition` narrows it to calls that a rule such as `Bash(git *)` matches. `folder` is where a project's hook runs;
    empty: in that of the session. `waits`: what it says counts; else it runs beside the turn.
    """

    event: str
    matcher: str
    command: str
    args: tuple[str, ...] | None
    seconds: float
    origin: HookOrigin
    file: str
    folder: str = ""
    condition: str = ""
    waits: bool = True

    def is_for(self, subjects: Sequence[str]) -> bool:
        """Return whether its matcher means one of these names: of a tool, a kind of helper, a reason."""
        if self.matcher in ("", "*"):
            return True
        if _EXACT.fullmatch(self.matcher):
            return not {one.strip() for one in re.split(r"[|,]", self.matcher)}.isdisjoint(subjects)
        return any(re.search(self.matcher, subject) for subject in subjects)

    def is_for_call(self, tool: str, acts: Sequence[Action]) -> bool:
        """Return whether its condition may mean this call; what cannot be known is yes, as the hook decides then."""
        found = _CONDITION.fullmatch(self.condition)
        if not self.condition or found is None:
            return True
        name, pattern = found.groups()
        if plain_name(tool) not in our_names(name) and name not in names_of(tool):
            return False
        if not pattern or pattern == "*":
            return True
        try:
            if plain_name(tool) == "bash":
                words = wild_words_of(pattern)
                return any(denies(words, act.subject, portable=act.portable, wild=True) for act in acts)
            paths = [*path_patterns(pattern), *(() if pattern.startswith("/") else path_patterns(f"**/{pattern}"))]
        except (DragomanError, ValueError):
            return True
        return any(one.fullmatch(act.subject) for act in acts for one in paths)

    def line(self) -> str:
        """Return what it runs, for a person."""
        return visible_line(self.command if self.args is None else shlex.join((self.command, *self.args)))

    @property
    def whose(self) -> str:
        """Whose it is, in words."""
        return {"managed": "the administrator", "user": "the user", "project": "the project"}[self.origin]


def hook_launch(hook: Hook) -> Launch:
    """Return how a hook is started, with the project's folder where it names that."""
    words = [
        re.sub(r"\$(?:CLAUDE_PROJECT_DIR\b|\{CLAUDE_PROJECT_DIR\})", lambda _: hook.folder, one)
        for one in (hook.command, *(hook.args or ()))
    ]
    if hook.args is None:
        return Launch("/bin/sh", ("-c", words[0], *_words_of(words[0])))
    return Launch(words[0], words[1:])


def _words_of(line: str) -> Iterator[str]:
    """Yield what a line for a shell may name that its letters do not show: `"$DIR"/x.sh` is one word, and behind
    `$(git rev-parse --show-toplevel)` stands a file of the folder."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    with suppress(ValueError):  # a quote that nothing ends
        yield from lexer
    yield from (word for part in _ENDS.split(line) if part.startswith("/") and (word := part.split()[0].lstrip("/")))


class HookFile(NamedTuple):
    """What a file has, and what of it is not understood."""

    hooks: tuple[Hook, ...] = ()
    mistakes: tuple[str, ...] = ()


def parse_hooks(data: bytes, file: str, origin: HookOrigin, folder: str = "") -> HookFile:
    """Return the hooks of a file."""
    try:
        hooks = hooks_object(file, json.loads(data))
    except (ValueError, RecursionError):
        return HookFile((), (f"{visible_line(file)}: this is not JSON, so none of its hooks runs",))
    return read_hooks(hooks, file, origin, folder)


def read_hooks(events: object, file: str, origin: HookOrigin, folder: str = "") -> HookFile:
    """Return the hooks of an object that has them by event."""
    found: list[Hook] = []
    mistakes: list[str] = []
    if events is not None and not isinstance(events, Mapping):
        mistakes.append("hooks is no object, by event")
    for event, groups in events.items() if isinstance(events, Mapping) else ():
        name = visible_line(str(event))[:60]
        if event not in EVENTS:
            if isinstance(groups, list):  # else it is a setting beside them
                mistakes.append(f"{name}: there is no such event here, so its hooks do not run")
            continue
        if not isinstance(groups, list):
            mistakes.append(f"{name} is no list")
            continue
        for group in groups:
            for hook in _of_group(str(event), group, file, origin, folder):
                if isinstance(hook, str):
                    mistakes.append(f"{name}: {hook}")
                elif len(found) >= MOST_HOOKS:
                    mistakes.append(f"more than {MOST_HOOKS} hooks; the others do not run")
                    return _file(found, mistakes, file)
                else:
                    found.append(hook)
    return _file(found, mistakes, file)


def _file(found: Sequence[Hook], mistakes: Sequence[str], file: str) -> HookFile:
    return HookFile(tuple(found), tuple(f"{visible_line(file)}: {one}" for one in dict.fromkeys(mistakes)))


def _of_group(event: str, group: Any, file: str, origin: HookOrigin, folder: str) -> Iterator[Hook | str]:
    if not isinstance(group, Mapping) or not isinstance(group.get("hooks"), list):
        yield "each of its entries needs a list hooks"
        return
    matcher = group.get("matcher") or ""
    if not isinstance(matcher, str):
        yield "a matcher is a text"
        return
    try:
        if len(matcher) > MATCHER_CHARACTERS:
            raise re.error("too long")
        re.compile(matcher if not _EXACT.fullmatch(matcher) and matcher != "*" else "")
    except (re.error, RecursionError, OverflowError):
        yield f"the matcher {visible_line(matcher)[:60]} is no pattern, so its hooks do not run"
        return
    for one in group["hooks"]:
        yield _hook(event, matcher, one, file, origin, folder)


def _hook(event: str, matcher: str, one: Any, file: str, origin: HookOrigin, folder: str) -> Hook | str:
    if not isinstance(one, Mapping):
        return "a hook is an object"
    kind, command, args, seconds = one.get("type", "command"), one.get("command"), one.get("args"), one.get("timeout")
    if kind != "command":
        return f"a hook of type {visible_line(str(kind))[:40]} is not run; only commands are"
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "a hook needs its command as a text"
    if args is not None and not (isinstance(args, list) and all(isinstance(arg, str) for arg in args)):
        return "the args of a hook are texts"
    most, usual = (MOST_END_SECONDS, END_SECONDS) if event == "SessionEnd" else (MOST_SECONDS, SECONDS)
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
        return "the timeout of a hook is a number of seconds"
    condition = one.get("if") or ""
    if not isinstance(condition, str) or (condition and not _CONDITION.fullmatch(condition)):
        return "the if of a hook is a rule such as Bash(git *)"
    waits = not (one.get("async") is True or one.get("asyncRewake") is True)
    arguments = None if args is None else tuple(args)
    time = min(float(seconds), most) if seconds is not None else usual
    return Hook(event, matcher, command, arguments, time, origin, file, folder, condition, waits)
