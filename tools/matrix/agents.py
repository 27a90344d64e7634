"""The agents of the matrix: how each is installed, started against our model, and what its tool for files is called."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.support import real_agents
from tests.support.fake_model import ToolCall
from tests.support.needs import PEERS, need_codex_agent, need_sdk_example
from tests.support.real_agents import RealAgent, apart
from tools import peers

FILE: Final = "made-by-the-matrix.txt"


class MatrixAgent(NamedTuple):
    """An agent. `environment` is given its home and the address of its model; `writing` is the call that its model
    makes for a permission; `login` is a method of its own that needs no person."""

    name: str
    version: str
    command: Callable[[], list[str]]
    environment: Callable[[Path, str], Mapping[str, str]]
    writing: ToolCall
    login: str = ""
    dialect: str = ""
    # Rows at the same time, where its processes do not bear others in the same home; 0: as many as are asked for.
    jobs: int = 0


def _nothing(home: Path, url: str) -> Mapping[str, str]:
    return apart(home)


def _write(tool: str, path: str) -> ToolCall:
    return ToolCall(tool, {path: FILE, "content": "hello\n"})


def _real(agent: RealAgent, version: str) -> MatrixAgent:
    call = _write(agent.write, agent.path)
    # Relative paths are refused by those that want whole ones; a permission comes before that is found out.
    return MatrixAgent(
        agent.name, version, agent.started, agent.environment, call, agent.login or "", agent.dialect or ""
    )


def _under_node(folder: str, script: str, *arguments: str) -> Callable[[], list[str]]:
    modules = PEERS / folder / "node_modules"
    return lambda: [str(modules / peers.node_package() / "bin" / "node"), str(modules / script), *arguments]


def _qwen(home: Path, url: str) -> Mapping[str, str]:
    return apart(home) | {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake"}


def _ours(home: Path, url: str) -> Mapping[str, str]:
    (home / "config.toml").write_text(f'[providers.local]\nbase_url = "{url}/v1"\nwindow = 200000\n')
    return {"DRAGOMAN_HOME": str(home), "DRAGOMAN_LIST_MODELS": "false"}


AGENTS: Final = (
    MatrixAgent(
        "dragoman",
        "this one",
        lambda: [sys.executable, "-P", "-m", "dragoman.cli.main", "acp", "--model", "local/fake"],
        _ours,
        _write("write_file", "path"),
    ),
    _real(real_agents.CLAUDE_AGENT, peers.CLAUDE_AGENT),
    MatrixAgent(
        "codex",
        peers.CODEX_AGENT,
        need_codex_agent,
        real_agents.codex_environment,
        ToolCall("exec_command", {"cmd": f"echo hello > {FILE}"}),
    ),
    MatrixAgent(
        "codex (Rust)",
        peers.CODEX_RUST,
        lambda: [str(PEERS / "codex-rust" / "node_modules" / peers.codex_rust_package() / "bin" / "codex-acp")],
        real_agents.codex_environment,
        ToolCall("exec_command", {"cmd": f"echo hello > {FILE}"}),
    ),
    _real(real_agents.GEMINI_CLI, peers.GEMINI_CLI)._replace(jobs=1),  # each writes the settings as it starts
    _real(real_agents.OPENCODE, peers.OPENCODE),
    MatrixAgent(
        "qwen",
        peers.QWEN_CODE,
        _under_node("qwen", "@qwen-code/qwen-code/cli-entry.js", "--acp"),
        _qwen,
        _write("write_file", "file_path"),
        "openai",
    ),
    MatrixAgent(
        "kimi",
        peers.KIMI_CODE,
        _under_node("kimi", "@moonshot-ai/kimi-code/dist/main.mjs", "acp"),
        _nothing,
        _write("WriteFile", "path"),
    ),
    MatrixAgent(
        "pydantic-acp",
        peers.PYDANTIC_ACP[0].partition("==")[2],
        lambda: [str(PEERS / "pydantic-acp" / "bin" / "python"), str(Path(__file__).with_name("pydantic_agent.py"))],
        _nothing,
        _write("write_file", "path"),
    ),
    _real(real_agents.IAC_CODE, peers.IAC_CODE[0].partition("==")[2]),
    _real(real_agents.AGENTAO, peers.AGENTAO[0].partition("==")[2]),
    MatrixAgent(
        "example of the TypeScript SDK", peers.EXAMPLES, lambda: need_sdk_example("agent"), _nothing, _write("w", "p")
    ),
)
