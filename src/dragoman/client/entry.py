"""One agent of the fleet, as it is configured: a value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dragoman import limits
from dragoman.client.lent import EVERYTHING, Lent
from dragoman.client.patience import PROMPT_IDLE_SECONDS, REQUEST_SECONDS, Patience
from dragoman.client.rules import Level, Policy, Rule
from dragoman.errors import UsageError
from dragoman.vocabulary.requests import McpServer

PermissionPolicy = Literal["auto-approve", "prompt", "deny"]
NonInteractive = Literal["reject_all", "accept_all"]
DIALECTS: Final = ("v1", "v2", "v2-june", "iac-code", "elephant", "agentao", "simse")
DEFAULT_RESTARTS: Final = 3
# Behind a gateway: all sessions of a connection in one process, or a process for each of them.
Processes = Literal["shared", "session"]
# A gateway stops one that has had nothing to do for so long, and starts it again when it is needed: a coffee, not a
# night, because an agent of this kind holds some hundred MiB.
DEFAULT_IDLE_MS: Final = 15 * 60 * 1000
_VARIABLE: Final = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


@dataclass(frozen=True)
class Entry:
    """How an agent is reached and treated. Texts may still hold `$VARIABLES`; `expanded` puts their values in."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    dialect: str = ""
    startup_ms: int = int(limits.START_SECONDS * 1000)
    request_ms: int = int(REQUEST_SECONDS * 1000)
    prompt_idle_ms: int = int(PROMPT_IDLE_SECONDS * 1000)
    permission_policy: PermissionPolicy = "prompt"
    non_interactive: NonInteractive = "reject_all"
    rules: tuple[Rule, ...] = ()
    auto_start: bool = True
    max_recoverable_restarts: int = DEFAULT_RESTARTS
    process: Processes = "shared"
    idle_ms: int = DEFAULT_IDLE_MS  # 0: it is never stopped
    description: str = ""
    default_agent: str = ""
    mcp_servers: tuple[McpServer, ...] = ()
    lent: Lent = EVERYTHING
    # Behind an address instead of a command; the token comes from a variable or from a file of its own.
    url: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    # Where it is written, for people; how to get the program; which of our secrets are its own.
    source: str = ""
    install: str = ""
    passed_on: tuple[str, ...] = ()
    built_in: bool = False

    def expanded(self, environment: Mapping[str, str]) -> "Entry":
        """The same with the values of variables; `UsageError` names one that is not set."""

        def fill(text: str, place: str) -> str:
            return _expand(text, environment, f"{self.source or self.name}: {place}")

        own = {name: environment[name] for name in self.passed_on if name in environment}
        return replace(
            self,
            args=tuple(fill(arg, f"args[{at}]") for at, arg in enumerate(self.args)),
            env=own | {name: fill(value, f"env.{name}") for name, value in self.env.items()},
            cwd=fill(self.cwd, "cwd"),
            url=fill(self.url, "url"),
            token=fill(self.token, "token"),
            token_file=fill(self.token_file, "tokenFile"),
        )

    def patience(self) -> Patience:
        """How long to wait for it."""
        return Patience(self.startup_ms / 1000, self.request_ms / 1000, self.prompt_idle_ms / 1000)

    def policy(self, level: Level = "") -> Policy:
        """What it may do. A level that the user names now counts instead of what is configured; rules count always."""
        if level:
            return Policy(level, self.rules)
        return Policy(
            "all" if self.permission_policy == "auto-approve" else "",
            self.rules,
            deny_all=self.permission_policy == "deny",
            unasked="allow" if self.non_interactive == "accept_all" else "reject",
        )

    def command_line(self) -> list[str]:
        """The command and its arguments, or the address, as they are written."""
        return [self.url] if self.url else [self.command, *self.args]


def _expand(text: str, environment: Mapping[str, str], place: str) -> str:
    def value(found: "re.Match[str]") -> str:
        if found[1]:
            return "$"
        name = found[2] or found[3]
        if name not in environment:
            raise UsageError(f"{place} needs the variable {name}, which is not set")
        return environment[name]

    return _VARIABLE.sub(value, text)
