"""One agent of `acp.json`, as it is configured: a value."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dragoman import limits
from dragoman.client.offered_capabilities import EVERYTHING, OfferedCapabilities
from dragoman.client.permission_policy import Level, PermissionPolicy
from dragoman.client.remote_launch import remote_launch_reason
from dragoman.client.timeouts import PROMPT_IDLE_SECONDS, REQUEST_SECONDS, Timeouts
from dragoman.errors import UsageError
from dragoman.host.launch_names import Launch
from dragoman.host.paths import is_inside
from dragoman.host.variables import VariableMissing, fill, secret_variables
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.requests import McpServer

PolicyName = Literal["auto-approve", "prompt", "deny"]
NonInteractive = Literal["reject_all", "accept_all"]
DEFAULT_RESTARTS: Final = 3
# Behind a gateway: all sessions of a connection in one process, or a process for each of them.
Processes = Literal["shared", "session"]
# A gateway stops one that has had nothing to do for so long, and starts it again when it is needed: a coffee, not a
# night, because an agent of this kind holds some hundred MiB.
DEFAULT_IDLE_MS: Final = 15 * 60 * 1000


@dataclass(frozen=True)
class AgentEntry:
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
    permission_policy: PolicyName = "prompt"
    non_interactive: NonInteractive = "reject_all"
    rules: tuple[PermissionRule, ...] = ()
    auto_start: bool = True
    max_recoverable_restarts: int = DEFAULT_RESTARTS
    process: Processes = "shared"
    idle_ms: int = DEFAULT_IDLE_MS  # 0: it is never stopped
    description: str = ""
    default_agent: str = ""
    mcp_servers: tuple[McpServer, ...] = ()
    offered: OfferedCapabilities = EVERYTHING
    # Behind an address instead of a command; the token comes from a variable or from a file of its own.
    url: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    ca_file: str = ""  # the authorities that its certificate is checked against; empty: those of this machine
    # Where it is written, for people; how to get the program; which of our secrets are its own.
    source: str = ""
    install: str = ""
    key_variables: tuple[str, ...] = ()
    built_in: bool = False
    # The folder of the project whose file says how it is started; empty: the user's own file does, or we do.
    project: str = ""
    # Which secrets of the user it may have: of no meaning for the user's own.
    allowed_secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def launch(self) -> Launch:
        """Return how it is started, as it is written, variables included."""
        return Launch(self.command, self.args, self.env, self.cwd)

    def texts(self) -> list[str]:
        """Return the texts in which `expanded` fills in variables."""
        return [*self.args, *self.env.values(), self.cwd, self.url, self.token, self.token_file, self.ca_file]

    def secrets_wanted(self, environment: Mapping[str, str]) -> list[str]:
        """Return the secrets of the user that it would get: names of variables, and paths of files outside its project.

        Empty for what the user has configured: what is named there was meant.
        """
        if not self.project:
            return []
        found = secret_variables(self.texts(), environment)
        found += [name for name in self.key_variables if name in environment]
        file = self._token_path(environment)
        if file and not is_inside(file, os.path.realpath(self.project)):
            found.append(file)
        return list(dict.fromkeys(found))

    def expanded(self, environment: Mapping[str, str]) -> "AgentEntry":
        """Return a copy with variables replaced by their values.

        Raise `UsageError` for a variable that is not set, or a secret that this project was not allowed.
        """
        kept_back = [name for name in self.secrets_wanted(environment) if name not in self.allowed_secrets]
        if kept_back:
            raise UsageError(
                f"{self.name} is not used: {self.source} would give it {', '.join(kept_back)}, which you have not "
                f"allowed. To be asked: dragoman trust {shlex.quote(self.project)}"
            )

        where = f"{self.source}: servers.{self.name}." if self.source else f"{self.name}: "

        def put(text: str, field_name: str) -> str:
            return _expand(text, environment, where + field_name)

        own = {name: environment[name] for name in self.key_variables if name in environment}
        token_file = put(self.token_file, "tokenFile")
        return replace(
            self,
            args=tuple(put(arg, f"args[{at}]") for at, arg in enumerate(self.args)),
            env=own | {name: put(value, f"env.{name}") for name, value in self.env.items()},
            cwd=put(self.cwd, "cwd"),
            url=put(self.url, "url"),
            token=put(self.token, "token"),
            ca_file=put(self.ca_file, "caFile"),
            # The path that was judged, links and all.
            token_file=self._token_path(environment) if self.project else token_file,
        )

    def _token_path(self, environment: Mapping[str, str]) -> str:
        """Return the real path of the file with the token; the path as it is written, where a variable is missing."""
        try:
            file = fill(self.token_file, environment)
        except VariableMissing:
            return self.token_file
        return os.path.realpath(os.path.expanduser(file)) if file else ""

    def timeouts(self) -> Timeouts:
        """Return how long a client waits for it."""
        return Timeouts(self.startup_ms / 1000, self.request_ms / 1000, self.prompt_idle_ms / 1000)

    def policy(self, level: Level = "", *, otherwise: Level = "") -> PermissionPolicy:
        """Return its policy. A `level` that the user names now replaces what is configured; rules count always.

        `otherwise` counts where neither says more than that the user is to be asked.
        """
        if level:
            return PermissionPolicy(level, self.rules)
        return PermissionPolicy(
            {"auto-approve": "all", "prompt": otherwise, "deny": ""}[self.permission_policy],
            self.rules,
            deny_all=self.permission_policy == "deny",
            unasked="allow" if self.non_interactive == "accept_all" else "reject",
        )

    def remote_launch_reason(self, environment: Mapping[str, str]) -> str:
        """Say why it does not work on the files of this machine, as they are here; empty: it does, as far as known."""
        if self.url:
            return "it is behind an address"
        return remote_launch_reason([_filled(word, environment) for word in self.command_line()], environment)

    def command_line(self) -> list[str]:
        """Return the command and its arguments, or the address, as they are written."""
        return [self.url] if self.url else [self.command, *self.args]


def _filled(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its variables filled in; unchanged where one is missing: the agent cannot start then."""
    try:
        return fill(text, environment)
    except VariableMissing:
        return text


def _expand(text: str, environment: Mapping[str, str], place: str) -> str:
    try:
        return fill(text, environment)
    except VariableMissing as error:
        raise UsageError(f"{place} needs the variable {error.name}, which is not set") from None
