"""`ManagedSettings`: what the administrator of this machine allows. Values and their judgement; pure.

`managed_file` reads them from a file that the user cannot write. A bound that is not written is no bound: a
`ManagedSettings()` allows what the user's own settings allow. It can only take away, and add questions; `rules.allow`
alone spares one, and `modes.default` and `models.base_urls` say what counts. What a bound refuses is said with the
file's name (`says`), so that the user knows who to ask.

Patterns have one wildcard, `*`. In an address it stands for a part of the host, or of the path, and never for both; in
a command line for a part of one word, and a last word `*` for all that follow.

Imported with the first session; where there is no file, with nothing that such a session has not imported anyway.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec import Struct, structs

from dragoman.coder.modes import REACH
from dragoman.vocabulary.requests import McpHttp, McpServer, McpSse, McpStdio

if TYPE_CHECKING:
    from dragoman.coder.hook_files import Hook, HookOrigin
    from dragoman.permissions.fixed_rules import FixedRules
    from dragoman.permissions.rule import PermissionRule

# Lists where `None` means that nothing is said, and an empty list that nothing is allowed.
Patterns = tuple[str, ...] | None


class RulePattern(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as the file has it: what `PermissionRule` has as a pattern, without the effect."""

    kind: str = ""
    path: str = ""
    command: str = ""

    def rule(self, effect: Literal["allow", "reject", "ask"]) -> "PermissionRule":
        """Return the rule. Raises `RuleRefused` for one that can match nothing."""
        from dragoman.permissions.rule import PermissionRule

        return PermissionRule(effect, kind=self.kind, path=self.path, command=self.command)


class ManagedModes(Struct, frozen=True, forbid_unknown_fields=True):
    """`[modes]`: the modes that may be used, by name, and the one that reaches furthest (`coder.modes.REACH`).

    Modes that only read always may: there is always one to go back to. `default` is the mode of a new session where
    the user names none.
    """

    allowed: Patterns = None
    highest: str = ""
    default: str = ""

    def permits(self, mode: str) -> bool:
        """Return whether a mode may be used."""
        reach = REACH.get(mode)
        if not reach:
            return reach is not None
        is_named = self.allowed is None or mode in self.allowed
        return is_named and (not self.highest or reach <= REACH[self.highest])


class ManagedRules(Struct, frozen=True, forbid_unknown_fields=True):
    """`[rules]`: rules before those of the user. `only_managed`: what the user has allowed for ever does not count."""

    deny: tuple[RulePattern, ...] = ()
    ask: tuple[RulePattern, ...] = ()
    allow: tuple[RulePattern, ...] = ()
    only_managed: bool = False

    def against(self) -> "list[PermissionRule]":
        """Return the rules that deny or ask."""
        return [*(one.rule("reject") for one in self.deny), *(one.rule("ask") for one in self.ask)]

    def allowing(self) -> "list[PermissionRule]":
        """Return the rules that allow."""
        return [one.rule("allow") for one in self.allow]


class ManagedModels(Struct, frozen=True, forbid_unknown_fields=True):
    """`[models]`: models by patterns such as `anthropic/*`, and the addresses that providers may be reached at.

    `base_urls` are addresses of providers by name, before those of the user's configuration and environment.
    `fallback`: the user's list of models to fall back to counts.
    """

    allowed: Patterns = None
    addresses: Patterns = None
    base_urls: Mapping[str, str] = {}
    fallback: bool = True

    def allows(self, name: str) -> bool:
        """Return whether a model may be used, by its name with the provider. `demo` talks to nothing, and may."""
        return self.allowed is None or name == "demo" or matches(self.allowed, name)

    def allows_address(self, url: str) -> bool:
        """Return whether a provider may be reached there."""
        return self.addresses is None or matches_url(self.addresses, url)


class ManagedMcp(Struct, frozen=True, forbid_unknown_fields=True):
    """`[mcp]`: the MCP servers that may be started, by their command line, and reached, by their URL.

    A server needs each list that is about it: `names`, and `commands` or `urls`. What a `denied_` list has is refused
    whatever else is said.
    """

    names: Patterns = None
    commands: Patterns = None
    urls: Patterns = None
    denied_names: tuple[str, ...] = ()
    denied_commands: tuple[str, ...] = ()
    denied_urls: tuple[str, ...] = ()

    def allows(self, server: McpServer) -> bool:
        """Return whether a server may be used. One of another kind may where neither commands nor URLs are listed."""
        name = getattr(server, "name", "")
        if matches(self.denied_names, name) or not (self.names is None or matches(self.names, name)):
            return False
        if isinstance(server, McpStdio):
            words = [server.command, *(server.args or ())]
            return not _starts(self.denied_commands, words) and (self.commands is None or _starts(self.commands, words))
        if isinstance(server, McpHttp | McpSse):
            is_denied = matches_url(self.denied_urls, server.url)
            return not is_denied and (self.urls is None or matches_url(self.urls, server.url))
        return self.commands is None and self.urls is None


class ManagedHooks(Struct, frozen=True, forbid_unknown_fields=True):
    """`[hooks]`: whether hooks of the user and of projects run, and those that always do (`managed`, by event).

    `only_managed`: neither those of the user nor those of projects run.
    """

    user: bool = True
    project: bool = True
    only_managed: bool = False
    managed: Mapping[str, object] = {}

    def allows(self, origin: "HookOrigin") -> bool:
        """Return whether hooks of this origin run."""
        return origin == "managed" or (not self.only_managed and (self.user if origin == "user" else self.project))


class ManagedProjects(Struct, frozen=True, forbid_unknown_fields=True):
    """`[projects]`: whether what trusted projects bring along counts."""

    commands: bool = True
    skills: bool = True


class ManagedSpending(Struct, frozen=True, forbid_unknown_fields=True):
    """`[spending]`: dollars that a turn, a session, a day may cost at most. The user can have less, not more."""

    turn: float | None = None
    session: float | None = None
    day: float | None = None


class ManagedWeb(Struct, frozen=True, forbid_unknown_fields=True):
    """`[web]`: whether pages are fetched, and from which hosts (`docs.python.org`, `*.example.com`)."""

    fetch: bool = True
    hosts: Patterns = None

    def allows_host(self, host: str) -> bool:
        """Return whether a page of this host may be fetched."""
        return self.fetch and (self.hosts is None or matches(self.hosts, host.lower()))


class ManagedLanguageServers(Struct, frozen=True, forbid_unknown_fields=True):
    """`[language_servers]`: those that may be started, by their names and their command lines; `[]`: none."""

    names: Patterns = None
    commands: Patterns = None

    def allows(self, name: str, command: Sequence[str]) -> bool:
        """Return whether a language server may be started."""
        is_named = self.names is None or matches(self.names, name)
        return is_named and (self.commands is None or _starts(self.commands, command))


class ManagedSettings(Struct, frozen=True):
    """All bounds, and the file that they are from; without a file there are none."""

    modes: ManagedModes = ManagedModes()
    rules: ManagedRules = ManagedRules()
    models: ManagedModels = ManagedModels()
    mcp: ManagedMcp = ManagedMcp()
    hooks: ManagedHooks = ManagedHooks()
    projects: ManagedProjects = ManagedProjects()
    spending: ManagedSpending = ManagedSpending()
    web: ManagedWeb = ManagedWeb()
    language_servers: ManagedLanguageServers = ManagedLanguageServers()
    file: str = ""

    def hook_list(self) -> "tuple[Hook, ...]":
        """Return the administrator's own hooks, as `hook_files` has those of the user. Imports that with the first."""
        if not self.hooks.managed:
            return ()
        from dragoman.coder.hook_files import read_hooks

        return read_hooks(self.hooks.managed, self.file, "managed").hooks

    def fixed_rules(self) -> "FixedRules":
        """Return the rules with their origin, as decisions are made by them. Raises `RuleRefused`."""
        from dragoman.permissions.fixed_rules import FixedRules

        return FixedRules((*self.rules.against(), *self.rules.allowing()), self.file, self.rules.only_managed)

    def says(self, what: str) -> str:
        """Return a sentence about a refusal, with its origin and without a stop: `what` follows "does not allow"."""
        return f"the administrator's file {self.file} does not allow {what}"

    def written(self) -> dict[str, object]:
        """Return what the file has set, by the whole name of each key, as it is to be shown."""
        found: dict[str, object] = {}
        for table in TABLES:
            part = getattr(self, table)
            for field in structs.fields(part):
                if (value := getattr(part, field.name)) != getattr(getattr(NOTHING_MANAGED, table), field.name):
                    found[f"{table}.{field.name}"] = value
        return found


NOTHING_MANAGED: Final = ManagedSettings()
ManagedTable = Literal["modes", "rules", "models", "mcp", "hooks", "projects", "spending", "web", "language_servers"]
TABLES: Final = get_args(ManagedTable)


def matches(patterns: Sequence[str], text: str) -> bool:
    """Return whether a text is one of these patterns, from its first character to its last."""
    return any(_expression(pattern).fullmatch(text) for pattern in patterns)


def matches_url(patterns: Sequence[str], url: str) -> bool:
    """Return whether an address is one of these patterns.

    Scheme, host and port are compared each for itself, so a star in the host does not reach into the path. A pattern
    without a path is about every path. An address with a user name in it is none of them.
    """
    from urllib.parse import urlsplit

    try:
        found = urlsplit(url)
        return "@" not in found.netloc and any(_is_at(pattern, found.scheme, found.netloc, url) for pattern in patterns)
    except ValueError:
        return False


def _is_at(pattern: str, scheme: str, host: str, url: str) -> bool:
    wanted, _, rest = pattern.partition("://")
    wanted_host, slash, wanted_path = rest.partition("/")
    path = url.partition("://")[2].partition("/")[2]
    is_same_place = wanted.lower() == scheme.lower() and matches((wanted_host.lower(),), host.lower())
    return is_same_place and (not slash or matches((wanted_path,), path))


def _starts(patterns: Sequence[str], words: Sequence[str]) -> bool:
    return any(_matches_words(one, words) for one in patterns)


def _matches_words(pattern: str, words: Sequence[str]) -> bool:
    import shlex

    wanted = shlex.split(pattern)
    if wanted[-1:] == ["*"]:
        wanted, words = wanted[:-1], words[: len(wanted) - 1]
    return len(wanted) == len(words) and all(map(lambda one, word: matches((one,), word), wanted, words))


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
