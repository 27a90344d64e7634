"""Agents that many people have: how each is started, and how it is installed where it is missing.

The variables named beside each are its own keys; they are passed on to it, and to no other agent.
"""

import sys
from typing import Final

from dragoman.client.agent_entry import AgentEntry
from dragoman.client.offered_capabilities import EVERYTHING, OfferedCapabilities


def _npm(package: str) -> str:
    return f"Install it with: npm install -g {package}"


_GOOGLE: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
_OPENAI: Final = ("OPENAI_API_KEY",)
_ANTHROPIC: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def _known(
    name: str,
    command: str,
    *args: str,
    description: str,
    install: str,
    keys: tuple[str, ...] = (),
    offered: OfferedCapabilities = EVERYTHING,
) -> AgentEntry:
    return AgentEntry(
        name,
        command,
        args,
        description=description,
        install=install,
        key_variables=keys,
        offered=offered,
        auto_start=False,
        built_in=True,
    )


_ENTRIES: Final = (
    _known(
        "dragoman",
        sys.executable,
        *("-P", "-m", "dragoman.cli.main", "acp"),
        description="Dragoman's own coding agent",
        install="It comes with Dragoman.",
        keys=(*_OPENAI, *_ANTHROPIC, *_GOOGLE),
    ),
    _known(
        "gemini",
        *("gemini", "--acp"),
        description="Gemini CLI, by Google",
        install=_npm("@google/gemini-cli"),
        keys=_GOOGLE,
        # It cannot tell from any error that a lent file does not exist, so it could make no new one.
        offered=OfferedCapabilities(read=False, write=False),
    ),
    _known(
        "claude",
        "claude-agent-acp",
        description="Claude Agent, by Anthropic",
        install=_npm("@agentclientprotocol/claude-agent-acp"),
        keys=_ANTHROPIC,
    ),
    _known(
        "codex",
        "codex-acp",
        description="Codex, by OpenAI",
        install=_npm("@agentclientprotocol/codex-acp"),
        keys=(*_OPENAI, "CODEX_API_KEY"),
    ),
    _known(
        "opencode",
        *("opencode", "acp"),
        description="OpenCode",
        install=_npm("opencode-ai"),
        keys=(*_OPENAI, *_ANTHROPIC, *_GOOGLE, "OPENROUTER_API_KEY"),
    ),
    _known(
        "qwen",
        *("qwen", "--acp"),
        description="Qwen Code, by Alibaba",
        install=_npm("@qwen-code/qwen-code"),
        keys=(*_OPENAI, "DASHSCOPE_API_KEY"),
    ),
    _known(
        "goose",
        *("goose", "acp"),
        description="Goose, by Block",
        install="Install it with: brew install block-goose-cli",
        keys=(*_OPENAI, *_ANTHROPIC, *_GOOGLE),
    ),
    _known(
        "kimi",
        *("kimi", "acp"),
        description="Kimi Code, by Moonshot AI",
        install=_npm("@moonshot-ai/kimi-code"),
        keys=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    ),
    _known(
        "copilot",
        *("copilot", "--acp"),
        description="GitHub Copilot CLI",
        install=_npm("@github/copilot"),
        keys=("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN"),
    ),
    _known(
        "vibe",
        "vibe-acp",
        description="Mistral Vibe",
        install="Install it with: uv tool install mistral-vibe",
        keys=("MISTRAL_API_KEY",),
    ),
)

KNOWN: Final[dict[str, AgentEntry]] = {entry.name: entry for entry in _ENTRIES}
