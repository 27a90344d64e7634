"""What a test needs from the machine: programs, and what is in `.peers`: the official SDKs, and peers by name.

Promise: a test that lacks something says what, and is skipped. Where `CI=true` it fails instead, so that a green run
there has skipped nothing.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from tools.peers import node_package, opencode_package, packages_of

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"


def need(tool: str) -> str:
    """The path of a program."""
    return shutil.which(tool) or lacking(f"the program {tool}")


def need_ripgrep() -> str:
    """The path of the ripgrep that the lock brings: the one that `find_ripgrep` prefers."""
    program = Path(sys.executable).parent / "rg"
    return str(program) if program.is_file() else lacking("ripgrep, which ./dev setup installs")


def need_other_users() -> None:
    """The right to become another user, for tests about what one may do to us."""
    if os.geteuid() != 0:
        lacking("to be root, so that it can become another user")


def need_typescript_sdk() -> Path:
    """The folder to run node in, so that it finds `@agentclientprotocol/sdk`."""
    need("node")
    if (PEERS / "node_modules" / "@agentclientprotocol" / "sdk").is_dir():
        return PEERS
    return lacking("the TypeScript SDK, which ./dev test puts in .peers")


def need_python_v2_sdk() -> Path:
    """The folder to put first on PYTHONPATH, so that `import acp` is the official Python SDK for v2."""
    folder = PEERS / "python-v2"
    return folder if folder.is_dir() else lacking("the Python SDK for v2, which ./dev test puts in .peers")


def need_acpx() -> list[str]:
    """The command that starts acpx, under the node that was installed for it."""
    return _under_node("acpx", "acpx/dist/cli.js")


def need_gemini_cli() -> list[str]:
    """The command that starts Gemini CLI, likewise."""
    return _under_node("gemini", "@google/gemini-cli/bundle/gemini.js")


def need_claude_agent() -> list[str]:
    """The command that starts Claude Agent, likewise."""
    return _under_node("claude", "@agentclientprotocol/claude-agent-acp/dist/index.js")


def need_codex_agent() -> list[str]:
    """The command that starts the adapter of Codex, which finds Codex itself in a package beside its own."""
    script = PEERS / "codex" / "node_modules" / "@agentclientprotocol" / "codex-acp" / "dist" / "index.js"
    return [need("node"), *_by_name("codex", script)]


def need_opencode() -> list[str]:
    """The command that starts opencode: a program of its own."""
    return _by_name("opencode", PEERS / "opencode" / "node_modules" / opencode_package() / "bin" / "opencode")


def need_language_servers() -> str:
    """The folders to put first on PATH, so that pyright and typescript-language-server are found, and their node."""
    modules = PEERS / "language-servers" / "node_modules"
    programs = [modules / ".bin" / name for name in ("pyright-langserver", "typescript-language-server")]
    _by_name("language servers", modules / node_package() / "bin" / "node", *programs)
    return f"{modules}/.bin{os.pathsep}{modules / node_package()}/bin"


def need_agentao(module: str) -> list[str]:
    """The command that runs a module of Agentao in its own environment; `-P`, so that a folder's module is none."""
    home = PEERS / "agentao"
    python, _ = _by_name("agentao", home / "bin" / "python", packages_of(home) / "agentao" / "__init__.py")
    return [python, "-P", "-m", module]


def need_iac_code() -> list[str]:
    """The command that starts iac-code in its own environment."""
    home = PEERS / "iac-code"
    return _by_name("iac-code", home / "bin" / "python", packages_of(home) / "bin" / "iac-code")


def need_sdk_example(name: str) -> list[str]:
    """The command that starts an agent that came with the TypeScript SDK."""
    package = PEERS / "examples" / "node_modules" / "@agentclientprotocol" / "sdk"
    return [need("node"), *_by_name("the TypeScript SDK's examples", package / "dist" / "examples" / f"{name}.js")]


def _under_node(folder: str, script: str) -> list[str]:
    modules = PEERS / folder / "node_modules"
    return _by_name(folder, modules / node_package() / "bin" / "node", modules / script)


def _by_name(what: str, *command: Path) -> list[str]:
    if all(file.is_file() for file in command):
        return [str(file) for file in command]
    return lacking(f"{what}, which ./dev interop puts in .peers")


def lacking(what: str) -> NoReturn:
    """Skip a test that lacks something, or fail it where nothing may be skipped."""
    sentence = f"this test needs {what}"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)
