"""Own what both sides exchange in `initialize`: who they are, and what each can do."""

from typing import Final

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from dragoman.vocabulary.word import Meta, Unknown, Word

# A key of `_meta`. Of a client's capabilities, true: it runs whole command lines for a login. Of a terminal login: that
# command line, `{command, args, label}`. Zed declares it, and the adapter of Claude sends it.
COMMAND_LINE: Final = "terminal-auth"
# The same, true: the client draws display terminals itself from `_meta` of tool calls, and appends their output. Zed
# declares the second and clients of JetBrains the first; one that declares both gets the first.
TERMINAL_KEYS: Final = ("terminal_output_delta", "terminal_output")
# What JetBrains AIR declares is in an object under this key.
JETBRAINS: Final = "jetbrains"
_OF_ONE_CLIENT: Final = frozenset({COMMAND_LINE, JETBRAINS, *TERMINAL_KEYS})


class Implementation(Word, frozen=True, gc=False):
    """A program's name and version."""

    name: str
    version: str
    title: str | None | UnsetType = UNSET


class ClientCapabilities(Word, frozen=True, gc=False):
    """What a client can do for an agent. What is not named is not there."""

    read_text_file: bool = False
    write_text_file: bool = False
    terminal: bool = False
    auth_terminal: bool = False
    elicitation_form: bool = False
    elicitation_url: bool = False
    boolean_options: bool = False
    compaction: bool = False
    notices: bool = False
    plans: bool = False
    subagents: bool = False


class AgentCapabilities(Word, frozen=True, gc=False):
    """What an agent can do for a client. What is not named is not there."""

    sessions: bool = True
    load: bool = False
    resume: bool = False
    list: bool = False
    close: bool = False
    delete: bool = False
    fork: bool = False
    archive: bool = False
    status: bool = False
    title: bool = False
    additional_directories: bool = False
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    mcp_stdio: bool = True
    mcp_http: bool = False
    mcp_sse: bool = False
    mcp_acp: bool = False
    logout: bool = False
    auth_status: bool = False
    providers: bool = False
    steering: bool = False
    rewind: bool = False


class AgentAuth(Word, frozen=True, gc=False, tag_field="type", tag="agent"):
    """A login that the agent runs itself."""

    method_id: str
    name: str
    description: str | None | UnsetType = UNSET


class TerminalAuth(Word, frozen=True, gc=False, tag_field="type", tag="terminal"):
    """A login in a terminal: the agent's own program with these arguments."""

    method_id: str
    name: str
    description: str | None | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET
    env: dict[str, str] | UnsetType = UNSET


class UnknownAuth(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """A login of a type this release does not know."""


AuthMethod = AgentAuth | TerminalAuth | UnknownAuth


class ClientHello(Word, frozen=True, gc=False):
    """What a client sends in `initialize`."""

    capabilities: ClientCapabilities = ClientCapabilities()
    info: Implementation | None = None


def for_shared_agent(hello: ClientHello) -> ClientHello:
    """Return the hello of a client for an agent that other clients see too, and that may be on another machine.

    Its logins run where the client is not; and what an agent sends in `_meta` instead of in the fields of the protocol,
    such as output and failures, the other clients would miss. The gateway encodes it for the clients that declare it.
    """
    meta = hello.capabilities.meta or {}
    if _OF_ONE_CLIENT.isdisjoint(meta):
        return hello
    others = {key: value for key, value in meta.items() if key not in _OF_ONE_CLIENT}
    return replace(hello, capabilities=replace(hello.capabilities, meta=others or UNSET))


class AgentHello(Word, frozen=True, gc=False):
    """What an agent replies to `initialize`."""

    info: Implementation | None
    capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = field(default_factory=list)

    def extension_methods(self) -> list[str]:
        """Return the methods of its own that it names in `_meta`: of its reply, or of its capabilities."""
        found: list[str] = []
        for meta in (self.meta, self.capabilities.meta):
            for key, listed in (meta or {}).items():
                if key.endswith("/extensions") and isinstance(listed, list):
                    named = [entry.get("method") if isinstance(entry, dict) else entry for entry in listed]
                    found.extend(name for name in named if isinstance(name, str) and name not in found)
        return found


__all__ = [
    "COMMAND_LINE",
    "JETBRAINS",
    "TERMINAL_KEYS",
    "AgentAuth",
    "AgentCapabilities",
    "AgentHello",
    "AuthMethod",
    "ClientCapabilities",
    "ClientHello",
    "Implementation",
    "Meta",
    "TerminalAuth",
    "UnknownAuth",
    "for_shared_agent",
]
