"""Which coding agents are measured: how each is started against a model of ours, and what its tool to read is called.

Ours is there with each of three providers. The others are installed by name into `.peers`, where they can be.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench import install
from bench.agent_model import COMMAND
from tests.support import real_agents
from tests.support.fake_model import ANTHROPIC, CHAT, RESPONSES, ToolCall, Voice
from tests.support.needs import need_codex_agent
from tests.support.real_agents import RealAgent
from tools import peers

QWEN_CODE: Final = ("@qwen-code/qwen-code", "0.24.4")


class Contender(NamedTuple):
    """An agent that is measured. `prepare` installs it, or raises `peers.Missing`."""

    name: str
    voice: Voice
    command: Callable[[], list[str]]
    environment: Callable[[Path, str], dict[str, str]]
    reading: Callable[[Path], ToolCall]
    running: ToolCall
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
        ToolCall("bash", {"command": COMMAND}),
        lambda: None,
    )


def _chat_settings(home: Path, url: str) -> dict[str, str]:
    (home / "config.toml").write_text(f'[providers.local]\nbase_url = "{url}/v1"\nwindow = 200000\n')
    return {}


def named(agent: RealAgent, shell: str, prepare: Callable[[Path, peers.Say], None]) -> Contender:
    """One of the agents that the interop tests start, with the name of its tool for commands."""
    return Contender(
        agent.name,
        agent.voice,
        agent.started,
        agent.environment,
        agent.reading,
        ToolCall(shell, {"command": COMMAND, "description": "Do nothing"}),
        _installed(prepare),
        agent.login,
    )


def _installed(prepare: Callable[[Path, peers.Say], None]) -> Callable[[], None]:
    return lambda: prepare(install.PEERS, lambda sentence: print(sentence, file=sys.stderr))


def _qwen(folder: Path, say: peers.Say) -> None:
    peers.npm(folder / "qwen", dict([QWEN_CODE]) | {peers.node_package(): peers.NODE}, "Qwen Code", say)


def _qwen_command() -> list[str]:
    modules = install.PEERS / "qwen" / "node_modules"
    return [str(modules / peers.node_package() / "bin" / "node"), str(modules / QWEN_CODE[0] / "cli.js"), "--acp"]


def _qwen_environment(home: Path, url: str) -> dict[str, str]:
    return real_agents.apart(home) | {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake"}


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
        named(real_agents.GEMINI_CLI, "run_shell_command", peers.gemini_cli),
        named(real_agents.OPENCODE, "bash", peers.opencode),
        named(real_agents.CLAUDE_AGENT, "Bash", peers.claude_agent),
        Contender(
            "codex",
            RESPONSES,
            need_codex_agent,
            real_agents.codex_environment,
            lambda file: ToolCall("exec_command", {"cmd": f"cat {file}"}),
            ToolCall("exec_command", {"cmd": COMMAND}),
            _installed(peers.codex_agent),
        ),
        Contender(
            "qwen",
            CHAT,
            _qwen_command,
            _qwen_environment,
            lambda file: ToolCall("read_file", {"file_path": str(file)}),
            ToolCall("run_shell_command", {"command": COMMAND, "is_background": False}),
            _installed(_qwen),
            "openai",
        ),
    )
}
OURS: Final = [name for name in CONTENDERS if name.startswith("dragoman-")]
