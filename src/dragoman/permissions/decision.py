"""`decide`: what follows from the facts of a call, the rules and a policy. Pure.

In this order: what is blocked, or denied by the policy, is denied. A rule to reject, then one to ask, decides if it may
be about anything in the call. A pattern to allow decides if it is about everything in it. What is left is decided by
the policy, and an answer that was given before turns its question about an action into a yes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from dragoman.host.command_rules import covers, denies
from dragoman.host.protected_names import is_protected
from dragoman.host.secrets import is_credential
from dragoman.host.shell import parse
from dragoman.host.text import hidden_character
from dragoman.permissions.facts import Action, CallFacts
from dragoman.permissions.policy import PolicyTable, Verdict
from dragoman.permissions.rule import PermissionRule, names_folder, path_patterns, wild_words_of, words_of

# Where a decision came from: an answer to a question, a rule, the table of a mode or of a client's level, or what is
# above them: a limit of the token, a call that never runs, a question that could not be settled; `managed`: a rule of
# the administrator's; `hook`: a hook of our coding agent.
DecidedBy = Literal["user", "rule", "mode", "policy", "managed", "hook"]
# Behind the words of an answer that is about more than one command line.
MORE: Final = " …"
# Why a policy asks about an action.
_QUESTIONS: Final = {
    "read": "it reads files",
    "edit": "it changes files",
    "execute": "it runs a command",
    "fetch": "it reaches for an address",
}


class Decision(NamedTuple):
    """The verdict, and why. `rules` are those that decided, `option` the kind of the given answer.

    `reason` is empty where the table of the policy alone has denied: its owner has the words for that. `feedback` is
    what the user wrote to a no, with hidden characters spelled out.
    """

    verdict: Verdict
    reason: str
    by: DecidedBy = "mode"
    rules: tuple[PermissionRule, ...] = ()
    option: str | None = None
    feedback: str = ""


@dataclass(frozen=True)
class PathPosition:
    """How a path relates to the workspace: how it really is called, and whether that is inside."""

    inside: Callable[[str], bool]
    # What it may be called in a rule: absolute, and relative to its root where it is inside.
    names: Callable[[str], Sequence[str]] = field(default=lambda path: (path,))
    # Whether it is what hooks, editors and agents take their orders from.
    protected: Callable[[str], bool] = field(default=lambda path: False)
    # The file that holds keys or passwords, by its name or place: it, or one in it; empty if none does.
    credential: Callable[[str], str] = field(default=lambda path: "")
    # The path by which several writes make a git folder that none of them makes alone; empty if none does.
    git_folder: Callable[[Sequence[str]], str] = field(default=lambda paths: "")
    # The paths that one in a call may mean: itself, and those that it is a pattern for; None if they are too many.
    matches: Callable[[str], Sequence[str] | None] = field(default=lambda path: (path,))
    # Where an absolute path leads, links and all.
    real: Callable[[str], str] = field(default=lambda path: path)


def decide(facts: CallFacts, rules: Sequence[PermissionRule], policy: PolicyTable, where: PathPosition) -> Decision:
    """Return what a policy and the rules say about a call. `where` is asked about its paths, as far as that decides."""
    if not facts.actions:
        return Decision("deny", "it cannot be known what this would do", "policy")
    for action in facts.actions:
        if action.blocked_reason:
            return Decision("deny", action.blocked_reason, "policy")
    if any(policy.verdict_on(action._replace(guarded=False)) == "deny" for action in facts.actions):
        return Decision("deny", "")
    if policy.guarded == "deny" and any(action.guarded for action in facts.actions):
        return Decision("deny", "", "policy")
    return decide_by_rules(facts, rules, where) or _by_policy(facts, rules, policy, where)


def decide_by_rules(facts: CallFacts, rules: Sequence[PermissionRule], where: PathPosition) -> Decision | None:
    """Return what the first of these rules says that is about a call, whatever the policy is; None: none is."""
    for effect in ("reject", "ask"):
        against = tuple(rule for rule in rules if rule.effect == effect and _touches(rule, facts, where))
        if against:
            return Decision(against[0].verdict, str(against[0]), "rule", against)
    for rule in rules:
        if rule.effect == "allow" and _covers(rule, facts, where):
            return Decision("allow", str(rule), "rule", (rule,))
    return None


def _by_policy(facts: CallFacts, rules: Sequence[PermissionRule], policy: PolicyTable, where: PathPosition) -> Decision:
    """Return what the policy says, where earlier answers have allowed some of what it asks about."""
    answers = [rule for rule in rules if rule.effect == "allow" and rule.tool and rule.tool == facts.tool]
    needed = [action for action in facts.actions if policy.verdict_on(action) != "allow"]
    covering = [_answering(answers, action) for action in needed]
    asked = [action for action, found in zip(needed, covering, strict=True) if not found]
    if (asked or policy.guarded != "allow") and (reason := _question(facts, asked, where)):
        return Decision("ask", reason)
    if used := tuple(dict.fromkeys(rule for found in covering for rule in found)):
        return Decision("allow", str(used[0]), "rule", used)
    where_allowed = "reading in the workspace" if facts.kind == "read" else "editing in the workspace"
    return Decision("allow", f"{'everything' if policy.guarded == 'allow' else where_allowed} is allowed")


def _question(facts: CallFacts, asked: Sequence[Action], where: PathPosition) -> str:
    """Return why the user is asked: `asked` are the actions that the policy asks about; empty: there is no reason to.

    The first of these that is true: what is most serious, and what takes least to find out, comes first.
    """
    if facts.unclear:
        return facts.unclear
    for action in sorted(asked, key=lambda action: not action.is_known):
        if action.kind in ("execute", "fetch"):
            return _QUESTIONS[action.kind] if action.is_known else f"it is of the kind {action.kind}"
    for path in facts.paths:
        if not where.inside(path):
            return f"{shorten(path)} is outside of the workspace"
    if asked:
        return _QUESTIONS.get(asked[0].kind, "it does not say whether it reads or changes files")
    return _guard_reason(facts, where)


def _guard_reason(facts: CallFacts, where: PathPosition) -> str:
    """Return why a path needs a yes of its own; empty if none does."""
    if facts.kind != "read" and "edit" not in facts.kinds:
        return ""
    for path in facts.paths:
        if facts.kind != "read" and where.protected(path):
            return f"{shorten(path)} is a protected file"
        held = where.credential(path)  # an edit or a move shows, or takes along, what was in it
        if held:
            return f"{shorten(held)} may hold credentials"
    made = "" if facts.kind == "read" else where.git_folder(facts.paths)
    return f"{shorten(made)} makes a git folder" if made else ""


# -- answers ---------------------------------------------------------------------------------------------------------


def _answering(answers: Sequence[PermissionRule], action: Action) -> list[PermissionRule]:
    """Return the answers that allow an action; none: no answer does.

    What no user could have read is asked about every time, and so is what would run unconfined. Several answers may
    cover a line of commands together: one "always" to such a line is remembered as a rule for each command.
    """
    if hidden_character(action.subject) or action.unconfined:
        return []
    exact = [rule for rule in answers if rule.subject == action.subject]
    if exact or action.kind != "execute":
        return exact
    words = {rule: prefix for rule in answers if (prefix := _prefix(rule.subject))}
    if not words:
        return []
    known = covers(list(words.values()), parse(action.subject), readable=lambda path: path in action.paths_in_workspace)
    return list(words) if known else []


def _answer_denies(subject: str, action: Action) -> bool:
    """Return whether the user has refused this before."""
    words = _prefix(subject) if action.kind == "execute" else ()
    return denies(words, action.subject) if words else subject == action.subject


def _prefix(subject: str) -> tuple[str, ...]:
    """Return the words of an answer about commands; none: it is about one command line alone."""
    return words_of(subject.removesuffix(MORE)) if subject.endswith(MORE) else ()


# -- patterns --------------------------------------------------------------------------------------------------------


def _covers(rule: PermissionRule, facts: CallFacts, where: PathPosition) -> bool:
    """Return whether a pattern to allow is about everything that a call does."""
    kinds = {action.kind for action in facts.actions}
    if rule.tool or facts.unclear or kinds - _PATTERN_KINDS or any(action.unconfined for action in facts.actions):
        return False
    if rule.kind and (rule.kind != facts.kind or kinds - {rule.kind, "read", "mention"}):
        return False  # it is something else, or changes or reaches for something beside that
    if (facts.kind == "execute" and not facts.commands) or (facts.kind == "fetch" and not facts.addresses):
        return rule.kind == facts.kind and not (rule.command or rule.path)  # what it runs or fetches is not known
    if rule.command and not (facts.commands and all(_runs_only(rule.command, one) for one in facts.commands)):
        return False
    if (facts.commands and not rule.command and rule.kind != "execute") or (facts.addresses and rule.kind != "fetch"):
        return False
    fit = [_fits(rule.path, path, where) if rule.path else where.inside(path) for path in facts.paths]
    if not all(fit) or (rule.path and not fit) or any("$" in path for path in facts.paths):
        return False  # a shell may take a path with a variable elsewhere
    # What asks although edits are allowed is covered by a rule that names it, and by no other.
    is_guarded = any(action.guarded for action in facts.actions)
    return _names_guarded_files(rule.path) or not (is_guarded or _guard_reason(facts, where))


# The kinds of actions that a pattern may be about.
_PATTERN_KINDS: Final = frozenset({"read", "edit", "execute", "fetch", "other", "mention"})


def _names_guarded_files(pattern: str) -> bool:
    """Return whether a pattern names protected or credential files itself: `.github/workflows/**`, `*.pem`."""
    parts = [part for part in pattern.split("/") if part]
    return is_protected(parts) or (bool(parts) and is_credential(f"/{'/'.join(parts)}", ""))


def _touches(rule: PermissionRule, facts: CallFacts, where: PathPosition) -> bool:
    """Return whether a rule to reject or to ask may be about anything that a call does."""
    if rule.tool:
        return rule.tool == facts.tool and any(_answer_denies(rule.subject, action) for action in facts.actions)
    if facts.is_cut:
        return True
    if rule.kind and rule.kind not in facts.kinds:
        return False
    if rule.command and not any(_may_run(rule.command, one) for one in facts.commands):
        return False
    return not rule.path or any(_may_mean(rule.path, path, where) for path in facts.paths)


def _runs_only(pattern: str, command: Action) -> bool:
    return pattern == "*" or covers({words_of(pattern)}, parse(command.subject, portable=command.portable))


def _may_run(pattern: str, command: Action) -> bool:
    return pattern == "*" or denies(wild_words_of(pattern), command.subject, portable=command.portable, wild=True)


def _fits(pattern: str, path: str, where: PathPosition) -> bool:
    names = where.names(path)
    return any(one.fullmatch(name) for one in path_patterns(pattern) for name in names)


def _may_mean(pattern: str, path: str, where: PathPosition) -> bool:
    """Return whether a rule against a path may be about this one, or a folder around it, by any of their names."""
    pattern = pattern.rstrip("/")
    spellings = dict.fromkeys((pattern, _resolved(pattern, where)))
    names = [name for one in where.names(path) for name in (_folders(one) if names_folder(pattern) else [one])]
    if "/" not in pattern or pattern.startswith("**/"):  # then it is about files of that name outside of the roots too
        names += [name.lstrip("/") for name in names if name.startswith("/")]
    return any(one.fullmatch(name) for each in spellings for one in path_patterns(each) for name in names)


def _resolved(pattern: str, where: PathPosition) -> str:
    """Return an absolute pattern with its beginning, up to the first wildcard, resolved to the real path."""
    if not pattern.startswith("/"):
        return pattern
    parts = pattern.split("/")
    wild = next((at for at, part in enumerate(parts) if any(sign in part for sign in "*?[{\\")), len(parts))
    return "/".join([where.real("/".join(parts[:wild]) or "/").rstrip("/"), *parts[wild:]])


def _folders(name: str) -> Iterator[str]:
    """Yield a path, and those of the folders around it."""
    while name.strip("/"):
        yield name
        name = name.rpartition("/")[0]


def shorten(path: str) -> str:
    """Return a path for a sentence."""
    return path if len(path) <= 200 else f"{path[:200]}…"
