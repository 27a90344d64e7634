"""`PermissionRule`: what the user has said about calls, in a file or by an answer meant for the future. Pure.

A rule is a pattern or an answer, and checked when it is made: a pattern that can never match is refused. A pattern to
reject or to ask may match generously: `*` and `?` in a command, `rm *` for every `rm`, a folder's name for all that is
in it. A pattern to allow is exact: it names the words of one command, and covers at least that command itself.

Stored, a rule is an object with its fields, without those that are empty. `acp.json` has patterns, in a list for each
effect, so that `effect` is not written there. The log of a session has answers.
"""

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct

from dragoman.errors import UsageError
from dragoman.host import wildcards
from dragoman.host.command_rules import covers, denies
from dragoman.host.shell import parse
from dragoman.permissions.policy import Verdict

Effect = Literal["allow", "reject", "ask"]
# The fields of a pattern.
PATTERN_FIELDS: Final = ("kind", "path", "command")
RULE_KINDS: Final = ("read", "edit", "execute", "fetch", "other")
# Kinds of tool calls that a rule knows by another name.
_OTHER_KINDS: Final = {"search": "read", "delete": "edit", "move": "edit", "write": "edit", "command": "execute"}
_WILD: Final = re.compile(r"[*?\[]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_OPERATOR: Final = re.compile(r"[();<>|&]+")
# What stands in regular expressions, and in no command or path that is meant.
_REGEX_COMMAND: Final = re.compile(r"^\^|\$$|(?<!\*)\.[*+]|\\[sSwWdDb.]|\[[^\]]*\][*+]")
_REGEX_PATH: Final = re.compile(r"^\^|\$$|\\[A-Za-z./]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NEVER: Final = "(?!)"
_TWO_RULES: Final = "which files a command touches is not known: write one rule for the command, another for the path"


class RuleRefused(UsageError):
    """A rule that can match nothing, or not what was meant. `field` is the name of the field; empty: the whole rule."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class PermissionRule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule. As a pattern it has a kind, a path, a command; everything that it names has to match.

    A pattern to allow has to match everything in a request; one to reject or to ask, anything in it.

    As an answer it has the `tool` of our agent that was asked about, and the `subject` of its action: that and no
    other, but a command that ends with ` …` stands for its words with harmless ones behind them. `confined`: said in a
    turn of a confined identity, or to a command that ran confined, it allows nothing where commands run unconfined.
    """

    effect: Effect
    kind: str = ""
    path: str = ""
    command: str = ""
    tool: str = ""
    subject: str = ""
    confined: bool = False

    def __post_init__(self) -> None:
        if self.effect not in get_args(Effect):
            raise RuleRefused("effect", f"unknown effect {self.effect!r}; there are {', '.join(get_args(Effect))}")
        is_pattern = bool(self.kind or self.path or self.command)
        if is_pattern == bool(self.tool) or (is_pattern and self.subject):
            raise RuleRefused("", "a rule names a kind, a path or a command; the answer to a question names a tool")
        if self.kind and self.kind not in RULE_KINDS:
            other = _OTHER_KINDS.get(self.kind.strip().lower())
            hint = f"; {self.kind.strip()} is {other} here" if other else ""
            raise RuleRefused("kind", f"unknown kind {self.kind!r}; there are {', '.join(RULE_KINDS)}{hint}")
        if self.path:
            _check_path(self)
        if self.command and self.command != "*":
            _check_command(self)
        # Also in a rule against something: whether a command changes files or reaches for an address is the agent's own
        # word, so a rule with such a kind would miss the command of an agent that does not say so.
        if self.command and self.kind not in ("", "execute"):
            raise RuleRefused("kind", f"a command is of the kind execute and of no other, so never {self.kind}")
        if self.command and self.path and self.effect != "allow":
            raise RuleRefused("path", _TWO_RULES)

    @property
    def verdict(self) -> Verdict:
        """What it says about the calls that it is about."""
        return "deny" if self.effect == "reject" else self.effect

    def __str__(self) -> str:
        if self.tool:
            return f"{self.verdict} {self.tool} {self.subject}"
        return f"the rule {self.effect} {self.pattern()}"

    def pattern(self) -> str:
        """Return what a pattern names, in words."""
        return ", ".join(f"{name} {value}" for name in PATTERN_FIELDS if (value := getattr(self, name)))


def stored_rule(value: object) -> PermissionRule | None:
    """Return a stored rule; None for what is none. Answers of earlier releases are lists, with `deny` for `reject`."""
    if isinstance(value, list) and len(value) in (3, 4):
        named = dict(zip(("tool", "subject", "confined"), value[1:], strict=False))
        value = {"effect": "reject" if value[0] == "deny" else value[0], **named}
    try:
        return msgspec.convert(value, PermissionRule)
    except (msgspec.ValidationError, RuleRefused):
        return None


# -- commands --------------------------------------------------------------------------------------------------------


def words_of(command: str) -> tuple[str, ...]:
    """Return the words of a rule's command; none if it cannot be read."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


@lru_cache(maxsize=256)
def wild_words_of(command: str) -> tuple[str, ...]:
    """Return the words of a command to reject: a `*` among them stands for anything, also for nothing.

    Other programs write `rm:*` for `rm *`; that is understood.
    """
    first, *others = words_of(command)
    others = [f"{word[:-2]}*" if word.endswith(":*") else word for word in others]
    return (first.removesuffix(":*") or "*", *(word for word in others if word.strip("*")))


def _check_command(rule: PermissionRule) -> None:
    command, words = rule.command, words_of(rule.command)
    if not words:
        raise RuleRefused("command", f"the command {command!r} cannot be read; write its words as in a shell, or *")
    if _REGEX_COMMAND.search(command.strip()):
        raise RuleRefused(
            "command", f"{command!r} looks like a regular expression; a rule has the words of a command, and * and ?"
        )
    if "\n" in command.strip() or any(_OPERATOR.fullmatch(token) for token in _tokens(command)):
        raise RuleRefused(
            "command", f"{command!r} is more than one command, and a rule is about one: write a rule for each"
        )
    if _ASSIGNMENT.match(words[0]):
        raise RuleRefused("command", f"{command!r} begins with a variable; a rule begins with the name of a program")
    if rule.effect == "allow":
        _check_allowed_command(command, words)
    elif not denies(wild_words_of(command), shlex.join(wild_words_of(command)), wild=True):
        raise RuleRefused("command", f"no command is {command!r}")


def _check_allowed_command(command: str, words: tuple[str, ...]) -> None:
    if any(_WILD.search(word) for word in words):
        plain = shlex.join(word for word in words if not _WILD.search(word)) or "make test"
        raise RuleRefused(
            "command",
            f"{command!r}: a rule to allow has no * in its command, but for * alone; it is for exact words, such as "
            f"{plain!r}. Rules to reject or ask may have one",
        )
    if not covers({words}, parse(command)):
        raise RuleRefused(
            "command", f"{command!r} can be allowed by no rule: what it does depends on more than its words"
        )


def _tokens(command: str) -> Iterator[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        yield from lexer
    except ValueError:
        return


# -- paths -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def path_patterns(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return the regular expressions of a path. A pattern without a slash means the name, wherever the file is."""
    found = []
    for one in wildcards.expand_braces(pattern):
        found.append(re.compile(wildcards.path(one if "/" in one else f"**/{one}"), re.DOTALL))
    return tuple(found)


def names_folder(pattern: str) -> bool:
    """Return whether a path to reject may mean a folder with all that is in it: its last name has no wildcard."""
    return not _WILD.search(pattern.rstrip("/").rpartition("/")[2])


def _check_path(rule: PermissionRule) -> None:
    path = rule.path
    reason = _mistake_in_path(path, rule.effect)
    if reason:
        raise RuleRefused("path", f"the path {path!r} {reason}")
    try:
        patterns = path_patterns(path)
    except wildcards.PatternRefused as error:
        raise RuleRefused("path", str(error)) from None
    if all(_NEVER in one.pattern for one in patterns):
        raise RuleRefused("path", f"the path {path!r} matches no file: the brackets in it have nothing in them")


def _mistake_in_path(path: str, effect: Effect) -> str:
    """Say why no file can have this path; empty if one can. Rules are matched with real paths, whole or from a root."""
    if path != path.strip():
        return "begins or ends with a blank"
    if _SCHEME.match(path):
        return "is an address; a rule has the path of a file"
    if path.startswith("~"):
        return "begins with ~; write the whole path"
    if re.match(r"\$[A-Za-z{]", path):
        return "begins with a variable, and rules have none; write the whole path"
    if _REGEX_PATH.search(path):
        return "looks like a regular expression; a rule has the wildcards *, **, ?, [...] and {a,b}"
    if {".", ".."} & set(path.split("/")) or "//" in path:
        return "has a . or .. or // in it, which no file's name has; write it from the folder, such as src/**, or whole"
    if path.endswith("/") and (effect == "allow" or path == "/"):
        return f"ends with a slash, which no file's name does; for all that is in the folder write {path}**"
    return ""
