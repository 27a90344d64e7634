"""Which coding agents are measured: how each is started against a model of ours, and what its tool to read is called.

Ours is there with each of three providers. The others are installed by name into `.peers`, where they can be.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench import install
from bench.agent_model import RESPONSES
from tests.support import real_agents
from tests.support.fake_model import ANTHROPIC, CHAT, ToolCall, Voice
from tests.support.real_agents import RealAgent
from tools import peers

QWEN_CODE: Final = ("@qwen-code/qwen-code", "0.24.4")
CODEX: Final = ("@agentclientprotocol/codex-acp", "2.6.0")


class Contender(NamedTuple):
    """An agent that is measured. `prepare` installs it, or raises `peers.Missing`."""

    name: str
    voice: Voice
    command: Callable[[], list[str]]
    environment: Callable[[Path, str], dict[str, str]]
    reading: Callable[[Path], ToolCall]
    prepare: Callable[[], None]
    login: str | None = None


def ours(name: str, voice: Voice, model: str, settings: Callable[[Path, str], dict[str, str]]) -> Contender:
    """Our agent with one provider; its only files are in the folder of the run."""
    return Contender(
        name,
        voice,
        lambda: [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--mode", "full-access", "--model", model],
        lambda home, url: {"DRAGOMAN_HOME": str(home), "DRAGOMAN_LIST_MODELS": "false", **settings(home, url)},
        lambda file: ToolCall("read_file", {"path": str(file)}),
        lambda: None,
    )


def _chat_settings(home: Path, url: str) -> dict[str, str]:
    (home / "config.toml").write_text(f'[providers.local]\nbase_url = "{url}/v1"\nwindow = 200000\n')
    return {}


def named(agent: RealAgent, prepare: Callable[[Path, peers.Say], None]) -> Contender:
    """One of the agents that the interop tests start."""

    def installed() -> None:
        prepare(install.PEERS, lambda sentence: print(sentence, file=sys.stderr))

    return Contender(agent.name, agent.voice, agent.started, agent.environment, agent.reading, installed, agent.login)


def _npm(folder: str, package: tuple[str, str], *, own_node: bool) -> Callable[[], None]:
    def installed() -> None:
        packages = dict([package]) | ({peers.node_package(): peers.NODE} if own_node else {})
        peers.npm(install.PEERS / folder, packages, folder, lambda sentence: print(sentence, file=sys.stderr))

    return installed


def _qwen_command() -> list[str]:
    modules = install.PEERS / "qwen" / "node_modules"
    return [str(modules / peers.node_package() / "bin" / "node"), str(modules / QWEN_CODE[0] / "cli.js"), "--acp"]


def _qwen_environment(home: Path, url: str) -> dict[str, str]:
    return _apart(home) | {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake"}


def _codex_command() -> list[str]:
    return [str(install.PEERS / "codex" / "node_modules" / ".bin" / "codex-acp")]


def _codex_environment(home: Path, url: str) -> dict[str, str]:
    """Its provider is in a file; it answers everything without a question."""
    (home / "config.toml").write_text(
        'model = "fake"\nmodel_provider = "local"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        'env_key = "CODEX_API_KEY"\n'
    )
    return _apart(home) | {"CODEX_HOME": str(home), "CODEX_API_KEY": "none", "OPENAI_API_KEY": "none"}


def _apart(home: Path) -> dict[str, str]:
    """Return a home of its own, and no server but the model."""
    proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), real_agents.NOWHERE)
    return {"HOME": str(home), **proxies, **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")}


CONTENDERS: Final = {
    each.name: each
    for each in (
        ours("dragoman-chat", CHAT, "local/fake", _chat_settings),
        ours(
            "dragoman-openai",
            RESPONSES,
            "openai/gpt-5",
            lambda home, url: {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1"},
        ),
        ours(
            "dragoman-anthropic",
            ANTHROPIC,
            "anthropic/claude-opus-4-8",
            lambda home, url: {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url},
        ),
        named(real_agents.GEMINI_CLI, peers.gemini_cli),
        named(real_agents.OPENCODE, peers.opencode),
        named(real_agents.CLAUDE_AGENT, peers.claude_agent),
        Contender(
            "codex",
            RESPONSES,
            _codex_command,
            _codex_environment,
            lambda file: ToolCall("exec_command", {"cmd": f"cat {file}"}),
            _npm("codex", CODEX, own_node=False),
        ),
        Contender(
            "qwen",
            CHAT,
            _qwen_command,
            _qwen_environment,
            lambda file: ToolCall("read_file", {"file_path": str(file)}),
            _npm("qwen", QWEN_CODE, own_node=True),
            "openai",
        ),
    )
}
