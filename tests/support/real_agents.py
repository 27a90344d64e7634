"""Agents that people use, and how each is started with a home of its own and a model that is ours."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.fake_model import ANTHROPIC, CHAT, GEMINI, ToolCall, Voice
from tests.support.needs import need_agentao, need_claude_agent, need_gemini_cli, need_iac_code, need_opencode

# Whatever is not on this machine is not reached: no server listens on the discard port.
NOWHERE = "http://127.0.0.1:9"


class RealAgent(NamedTuple):
    """An agent by name. `settings` are its variables, given its home and the address of its model."""

    name: str
    version: int
    command: Callable[[], list[str]]
    voice: Voice
    settings: Callable[[Path, str], Mapping[str, str]]
    read: str  # its tools for files,
    write: str
    path: str  # and what they call the path
    arguments: tuple[str, ...] = ()
    login: str | None = None
    loads: bool = True
    dialect: str | None = None
    # Whether a cancelled call has a result in its next request, without which a provider refuses that.
    answers_cancelled_calls: bool = True

    def started(self) -> list[str]:
        """The command that starts it."""
        return [*self.command(), *self.arguments]

    def writing(self, file: Path, content: str) -> ToolCall:
        return ToolCall(self.write, {self.path: str(file), "content": content})

    def reading(self, file: Path) -> ToolCall:
        return ToolCall(self.read, {self.path: str(file)})

    def environment(self, home: Path, url: str) -> dict[str, str]:
        """What it gets beside our environment: it finds nothing of ours, and no server but its model."""
        homes = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
        return {**apart(home), **homes, **self.settings(home, url)}

    def __str__(self) -> str:
        return self.name


def apart(home: Path) -> dict[str, str]:
    """A home of its own, and no server but the model."""
    proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), NOWHERE)
    return {"HOME": str(home), **proxies, **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")}


def codex_environment(home: Path, url: str) -> dict[str, str]:
    """What Codex gets: its provider is in a file, and it answers everything without a question.

    It is no `RealAgent`: a shell is the only tool for files that it offers a model which it does not know.
    """
    (home / "config.toml").write_text(
        'model = "fake"\nmodel_provider = "local"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        'env_key = "CODEX_API_KEY"\n'
    )
    return apart(home) | {"CODEX_HOME": str(home), "CODEX_API_KEY": "none", "OPENAI_API_KEY": "none"}


def _gemini(home: Path, url: str) -> dict[str, str]:
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}


def _opencode(home: Path, url: str) -> dict[str, str]:
    """Its provider is in a file. It asks before it writes only when it is told to."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"fake": {}},
    }
    config = {"model": "local/fake", "provider": {"local": provider}, "permission": {"edit": "ask"}}
    file = home / "opencode.json"
    file.write_text(json.dumps(config))
    switches = ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH")
    off = {f"OPENCODE_DISABLE_{what}": "1" for what in switches}
    return {"OPENCODE_CONFIG": str(file), "npm_config_offline": "true", **off}


def _claude(home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",  # after a turn it would ask what the user may want next
        "IS_SANDBOX": "1",  # or it would not run as root
    }


def _agentao(home: Path, url: str) -> dict[str, str]:
    return {
        "LLM_PROVIDER": "OPENAI",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "fake",
    }


def _iac_code(home: Path, url: str) -> dict[str, str]:
    return {
        "IAC_CODE_PROVIDER": "openai",
        "IAC_CODE_API_KEY": "none",
        "IAC_CODE_BASE_URL": f"{url}/v1",
        "IAC_CODE_MODEL": "fake",
        # Or every turn waits until its telemetry has given up.
        "IAC_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


GEMINI_CLI = RealAgent(
    "gemini",
    version=1,
    command=need_gemini_cli,
    arguments=("--acp",),
    voice=GEMINI,
    settings=_gemini,
    read="read_file",
    write="write_file",
    path="file_path",
    login="gemini-api-key",
    loads=False,  # it says that it can, and does not find its own session
)
OPENCODE = RealAgent(
    "opencode",
    version=1,
    command=need_opencode,
    arguments=("acp",),
    voice=CHAT,
    settings=_opencode,
    read="read",
    write="write",
    path="filePath",
)
CLAUDE_AGENT = RealAgent(
    "claude",
    version=2,
    command=need_claude_agent,
    voice=ANTHROPIC,
    settings=_claude,
    read="Read",
    write="Write",
    path="file_path",
)
REAL_AGENTS = (GEMINI_CLI, OPENCODE, CLAUDE_AGENT)

# The two that a dialect is named after.
AGENTAO = RealAgent(
    "agentao",
    version=1,
    command=lambda: need_agentao("agentao.acp"),
    voice=CHAT,
    settings=_agentao,
    read="read_file",
    write="write_file",
    path="file_path",
    dialect="agentao",
)
IAC_CODE = RealAgent(
    "iac-code",
    version=1,
    command=need_iac_code,
    arguments=("acp",),
    voice=CHAT,
    settings=_iac_code,
    read="read_file",
    write="write_file",
    path="path",
    dialect="iac-code",
    answers_cancelled_calls=False,
)
