"""What is the same for every session of one process. Cheap to import: it is part of the start."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.vocabulary.options import Choice

if TYPE_CHECKING:
    from dragoman.coder.day_spending import DaySpending
    from dragoman.coder.language_servers.known import ServerSpec
    from dragoman.coder.language_servers.server import ServerTimeouts
    from dragoman.coder.managed_settings import ManagedSettings
    from dragoman.coder.models.contract import Model
    from dragoman.coder.retries import RetryPolicy
    from dragoman.coder.spend_caps import SpendLimits
    from dragoman.host.guardian import Guardian
    from dragoman.host.resources import ResourceLimits
    from dragoman.vocabulary.requests import AuthStatus, McpServer

DEFAULT_MODE: Final = "ask"
# Model calls in one turn, unless the setup has another number.
MODEL_CALLS: Final = 100
COMPACT_ABOVE: Final = 0.8
# Of our data folder, where logins at MCP servers are kept.
LOGINS: Final = "mcp-logins"


class Models(Protocol):
    """Where models come from. A refusal is a `RequestFailed`; one for want of a login has its code."""

    def current(self) -> str:
        """Return the model a new session begins with, by its name on the wire."""

    def choices(self) -> Sequence[Choice]:
        """Return what a client may choose from."""

    def wire_name(self, name: str, current: str = "") -> str:
        """Return a model's name as the wire has it, however a client writes it. `current` is the session's model."""

    def make(self, name: str) -> "Model":
        """Return a model for a session."""

    def lists_due(self) -> bool:
        """Return whether some provider should be asked which models it has."""

    async def refresh(self, changed: "Callable[[], Awaitable[None]]") -> None:
        """Ask the providers which models they have; `changed` is awaited whenever there are other `choices`."""

    def login(self, method_id: str) -> None:
        """Use a login method."""

    def logout(self) -> None:
        """Forget the keys."""

    def status(self) -> "AuthStatus":
        """Return whether a session can be opened."""


class Setup:
    """Models, environment, data folder.

    `environment` is this process's; commands see of it what is no secret. `home` is our data folder; empty: there is
    none. `own_folders` are our other folders, which tools and commands reach as little. `commands` is the folder of the
    user's own commands, `agents` that of the user's own kinds of helpers, `skills` that of the user's own
    skills, `notes` that of the user's own notes; `hooks` is the file of the user's hooks, `trust` the list of trusted
    folders; empty: in `home`. `servers` has the user's own MCP servers for a folder, `remarks` what the user should
    know about those that are not among them. `protected_paths` are
    files that something else starts: written only after a yes. `before_children` is called before anything is started.
    `managed` is what the administrator allows; None: there is no such file. `spend` is what may be spent by the user's
    word; None: as much as it takes.
    """

    def __init__(
        self,
        models: Models,
        environment: Mapping[str, str],
        *,
        mode: str = DEFAULT_MODE,
        home: str = "",
        own_folders: "Sequence[str]" = (),
        commands: str = "",
        agents: str = "",
        skills: str = "",
        hooks: str = "",
        trust: str = "",
        notes: str = "",
        model_calls: int = MODEL_CALLS,
        compact_above: float = COMPACT_ABOVE,
        thought_level: str = "",
        servers: "Callable[[str], Sequence[McpServer]]" = lambda cwd: (),
        remarks: "Callable[[str], Sequence[str]]" = lambda cwd: (),
        protected_paths: "Callable[[], Sequence[str]]" = tuple,
        fetches: bool = False,
        sandbox_limits: "ResourceLimits | None" = None,
        audit_content: bool = False,
        private: "Sequence[str]" = (),
        before_children: "Callable[[], object]" = lambda: None,
        managed: "ManagedSettings | None" = None,
        worktree: str | None = None,
        worktrees: str = "",
        fallback_models: "Sequence[str]" = (),
        spend: "SpendLimits | None" = None,
        retries: "RetryPolicy | None" = None,
        language_servers: "Callable[[], Sequence[ServerSpec]]" = tuple,
        server_timeouts: "ServerTimeouts | None" = None,
        system_prompt: str = "",
    ) -> None:
        self.models: Final = models
        self.environment: Final = environment
        self.mode: Final = mode
        self.home: Final = home
        self.own_folders: Final = tuple(dict.fromkeys(folder for folder in (home, *own_folders) if folder))
        self.notes: Final = notes or home
        self.commands: Final = commands or (f"{home}/commands" if home else "")
        self.agents: Final = agents or (f"{home}/agents" if home else "")
        self.skills: Final = skills or (f"{home}/skills" if home else "")
        self.hooks: Final = hooks or (f"{home}/hooks.json" if home else "")
        self.trust: Final = trust or (f"{home}/trust.json" if home else "")
        self.model_calls: Final = model_calls
        # The part of the model's window above which the conversation is made shorter; 0: not before it is too long.
        self.compact_above: Final = compact_above
        self.thought_level: Final = thought_level
        self.servers: Final = servers
        self.remarks: Final = remarks
        self.protected_paths: Final = protected_paths
        # A page of the public web is looked at without a question, where the mode would ask one.
        self.fetches: Final = fetches
        # What a confined command may have; None: what is right for this machine.
        self.sandbox_limits: Final = sandbox_limits
        # What belongs to a server: no session is opened in it, and no tool or confined command reaches it.
        self.private: Final = tuple(private)
        # The decision log has what was decided about: commands, paths, the words of rules.
        self.audit_content: Final = audit_content
        # A name, or empty for any: every new session gets a git worktree. `worktrees` is where they are made.
        self.worktree: Final = worktree
        self.worktrees: Final = worktrees
        # Models that answer while the chosen one is limited, overloaded or away.
        self.fallback_models: Final = tuple(fallback_models)
        # How long a model call waits; None: as long as `RetryPolicy` says.
        self.retries: Final = retries
        # Those to look for with the first prompt of a session, and how long they may take; None: as long as they may.
        self.language_servers: Final = language_servers
        self.server_timeouts: Final = server_timeouts
        # In the place of our own instructions, for every family of models; empty: ours.
        self.system_prompt: Final = system_prompt
        self._spend = spend
        self._day_spending: DaySpending | None = None
        self._managed = managed
        self._before_children = before_children
        self._guardian: Guardian | None = None

    @property
    def managed(self) -> "ManagedSettings":
        """What the administrator of this machine allows."""
        from dragoman.coder.managed_settings import NOTHING_MANAGED

        return self._managed or NOTHING_MANAGED

    @property
    def mcp_logins(self) -> str:
        """The folder of logins at MCP servers; empty: none are kept."""
        return f"{self.home}/{LOGINS}" if self.home else ""

    @property
    def spend(self) -> "SpendLimits":
        """What may be spent by the user's own settings."""
        from dragoman.coder.spend_caps import SpendLimits

        return self._spend or SpendLimits()

    def day_spending(self) -> "DaySpending | None":
        """Return what all sessions of today have cost; None: there is no data folder to keep it in."""
        if self._day_spending is None and self.home:
            from dragoman.coder.day_spending import DaySpending

            self._day_spending = DaySpending(f"{self.home}/spending.sqlite")
        return self._day_spending

    @property
    def user_home(self) -> str:
        """The user's home folder; empty: the environment names none."""
        return self.environment.get("HOME", "")

    def guardian(self) -> "Guardian":
        """Return the guardian, which kills what we started if we are killed."""
        if self._guardian is None:
            from dragoman.host.guardian import Guardian

            self._before_children()
            self._guardian = Guardian()
        return self._guardian

    def close(self) -> None:
        """Stop the guardian: every process that it watches has ended."""
        if self._guardian is not None:
            self._guardian.close()
        if self._day_spending is not None:
            self._day_spending.close()
