"""The official SDKs, and the real clients and agents, that the tests and the benchmark talk to. Owns `.peers/`.

Standard library only.

Promise: what cannot be installed is named in a sentence, and never ends the program: the tests that need it decide.
The Python SDK for v1 (`agent-client-protocol` 0.12.1) is in the lock and so in `.venv`; the one for v2 cannot live
beside it, so it gets a folder of its own: put `.peers/python-v2` first on PYTHONPATH. Agents in Python get a virtual
environment each, in which nothing of ours is found.
"""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

NPM_PACKAGES = {"@agentclientprotocol/sdk": "2.4.0", "zod": "4.6.7"}  # zod: the SDK asks for it beside itself
PYTHON_V2 = ("agent-client-protocol", "1.0.0rc3")
ACPX = "0.19.1"
GEMINI_CLI = "0.61.0"
OPENCODE = "1.18.33"
CLAUDE_AGENT = "0.99.1"
CODEX_AGENT = "2.6.0"
TYPESCRIPT = "5.9.3"
QWEN_CODE = "0.24.4"
CODEX_RUST = "0.16.0"
KIMI_CODE = "2.1.0"
PYDANTIC_ACP = ("pydantic-acp==1.10.0",)
AGENTAO = ("agentao==0.5.17",)
# It takes any newer SDK and MCP package, starts with neither, and imports a package that it does not name.
IAC_CODE = ("iac-code==0.16.0", "agent-client-protocol==0.9.0", "mcp==1.28.1", "websockets>=15,<16")
LANGUAGE_SERVERS = {"pyright": "1.1.414", "typescript-language-server": "6.0.2", "typescript": "5.9.3"}
EXAMPLES = "1.9.0"  # of the TypeScript SDK: the last release that ships its example agents
# acpx wants 22.13, and under an older node npm would pick an older acpx without a word. These packages are node itself.
NODE = "22.23.3"

Say = Callable[[str], None]


class Missing(Exception):
    """A peer is not there; the message says what it lacks."""


def install(folder: Path, installer: Sequence[str], *, say: Say, by_name: bool = False) -> list[str]:
    """Install every peer that is not there yet; returns a sentence for each one that could not be.

    `installer` is the start of a command that installs Python packages, such as `python -m pip install`. `by_name`:
    also the real agents and clients, which are large and only `./dev interop` talks to.
    """
    return list(_troubles(folder, installer, say, by_name))


def typescript(folder: Path, say: Say) -> None:
    """`@agentclientprotocol/sdk` in `.peers/node_modules`."""
    npm(folder, NPM_PACKAGES, "the TypeScript SDK", say)


def typescript_compiler(folder: Path, say: Say) -> None:
    """TypeScript in `.peers/typescript/node_modules`, for the tasks of `./dev eval` that are written in it."""
    npm(folder / "typescript", {"typescript": TYPESCRIPT}, "TypeScript", say)


def acpx(folder: Path, say: Say) -> None:
    """acpx in `.peers/acpx/node_modules`, with a node of its own beside it."""
    npm(folder / "acpx", {"acpx": ACPX, node_package(): NODE}, "acpx", say)


def gemini_cli(folder: Path, say: Say) -> None:
    """Gemini CLI in `.peers/gemini/node_modules`, with a node of its own beside it."""
    npm(folder / "gemini", {"@google/gemini-cli": GEMINI_CLI, node_package(): NODE}, "Gemini CLI", say)


def opencode(folder: Path, say: Say) -> None:
    """opencode in `.peers/opencode/node_modules`: `opencode-ai` only finds the package that is its program."""
    npm(folder / "opencode", {"opencode-ai": OPENCODE, opencode_package(): OPENCODE}, "opencode", say)


def claude_agent(folder: Path, say: Say) -> None:
    """Claude Agent in `.peers/claude/node_modules`, with a node of its own beside it."""
    packages = {"@agentclientprotocol/claude-agent-acp": CLAUDE_AGENT, node_package(): NODE}
    npm(folder / "claude", packages, "Claude Agent", say)


def codex_agent(folder: Path, say: Say) -> None:
    """The adapter of Codex in `.peers/codex/node_modules`; Codex, a program of its own, is a package it asks for."""
    npm(folder / "codex", {"@agentclientprotocol/codex-acp": CODEX_AGENT}, "the adapter of Codex", say)


def qwen_code(folder: Path, say: Say) -> None:
    """Qwen Code in `.peers/qwen/node_modules`, with a node of its own beside it."""
    npm(folder / "qwen", {"@qwen-code/qwen-code": QWEN_CODE, node_package(): NODE}, "Qwen Code", say)


def codex_rust(folder: Path, say: Say) -> None:
    """The former adapter of Codex, in Rust, in `.peers/codex-rust/node_modules`."""
    packages = {"@zed-industries/codex-acp": CODEX_RUST, codex_rust_package(): CODEX_RUST}
    npm(folder / "codex-rust", packages, "the former adapter of Codex", say)


def kimi_code(folder: Path, say: Say) -> None:
    """Kimi Code in `.peers/kimi/node_modules`, with a node of its own beside it."""
    npm(folder / "kimi", {"@moonshot-ai/kimi-code": KIMI_CODE, node_package(): NODE}, "Kimi Code", say)


def language_servers(folder: Path, say: Say) -> None:
    """pyright and typescript-language-server in `.peers/language-servers/node_modules`, with a node beside them."""
    npm(folder / "language-servers", {**LANGUAGE_SERVERS, node_package(): NODE}, "language servers", say)


def sdk_examples(folder: Path, say: Say) -> None:
    """The agents that came with the TypeScript SDK, in `.peers/examples/node_modules`."""
    packages = {"@agentclientprotocol/sdk": EXAMPLES, "zod": NPM_PACKAGES["zod"]}
    npm(folder / "examples", packages, "the TypeScript SDK's examples", say)


NPM_PEERS = (acpx, gemini_cli, opencode, claude_agent, codex_agent, language_servers, sdk_examples)


def npm(folder: Path, packages: Mapping[str, str], what: str, say: Say) -> None:
    """Put packages by name and version into a folder; `what` they are together stands in what is said."""
    if all(_npm_version(folder, name) == version for name, version in packages.items()):
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise Missing(f"{what} needs node and npm, and they are not installed")
    say(f"Installing {what} by npm.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}, indent=2) + "\n")
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
    _run([npm, "install", "--prefix", str(folder), *options], f"npm could not install {what}")


def node_package() -> str:
    """The npm package that is node's program for this machine, in `bin/node`."""
    return f"node-{_machine()}"


def codex_rust_package() -> str:
    """The npm package that is the former adapter of Codex for this machine, in `bin/codex-acp`."""
    return f"@zed-industries/codex-acp-{_machine()}"


def opencode_package() -> str:
    """The npm package that is opencode's program for this machine, in `bin/opencode`."""
    return f"opencode-{_machine()}"


def _machine() -> str:
    machine = platform.machine().lower()
    kind = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    return f"{platform.system().lower()}-{kind}"


def python_v2(folder: Path, installer: Sequence[str], say: Say) -> None:
    """`agent-client-protocol` for v2 in `.peers/python-v2`, with its dependencies."""
    name, version = PYTHON_V2
    target = folder / "python-v2"
    if (target / f"{name.replace('-', '_')}-{version}.dist-info").is_dir():
        return
    say("Installing the Python SDK for v2.")
    folder.mkdir(exist_ok=True)
    unfinished = folder / "python-v2.unfinished"
    for old in (unfinished, target):
        shutil.rmtree(old, ignore_errors=True)
    _run(
        [*installer, "--target", str(unfinished), f"{name}=={version}"],
        "the Python SDK for v2 could not be installed",
    )
    unfinished.rename(target)


def agentao(folder: Path, installer: Sequence[str], say: Say) -> None:
    """Agentao in `.peers/agentao`: an agent, and a client for other agents."""
    _environment(folder / "agentao", AGENTAO, installer, say)


def iac_code(folder: Path, installer: Sequence[str], say: Say) -> None:
    """iac-code in `.peers/iac-code`."""
    _environment(folder / "iac-code", IAC_CODE, installer, say)


def pydantic_acp(folder: Path, installer: Sequence[str], say: Say) -> None:
    """pydantic-acp in `.peers/pydantic-acp`."""
    _environment(folder / "pydantic-acp", PYDANTIC_ACP, installer, say)


def packages_of(environment: Path) -> Path:
    """The folder of a virtual environment that holds its packages, for the Python we run under."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def install_for_matrix(folder: Path, installer: Sequence[str], *, say: Say) -> list[str]:
    """Install the peers that only `./dev matrix` starts; returns a sentence for each one that could not be."""
    peers = [partial(peer, folder, say) for peer in (qwen_code, codex_rust, kimi_code)]
    peers.append(partial(pydantic_acp, folder, installer, say))
    return list(_missing(peers))


def _troubles(folder: Path, installer: Sequence[str], say: Say, by_name: bool) -> Iterator[str]:
    peers = [partial(peer, folder, say) for peer in (typescript, typescript_compiler)]
    peers.append(partial(python_v2, folder, installer, say))
    if by_name:
        peers += [partial(peer, folder, say) for peer in NPM_PEERS]
        peers += [partial(peer, folder, installer, say) for peer in (agentao, iac_code)]
    yield from _missing(peers)


def _missing(peers: Sequence[Callable[[], None]]) -> Iterator[str]:
    for peer in peers:
        try:
            peer()
        except Missing as missing:
            yield str(missing)


def _environment(target: Path, packages: Sequence[str], installer: Sequence[str], say: Say) -> None:
    """A virtual environment with these packages. What is installed is noted last, so half of one is made anew."""
    wanted = "\n".join(packages) + "\n"
    note = packages_of(target) / "installed-by-dragoman"
    if note.is_file() and note.read_text() == wanted:
        return
    say(f"Installing {target.name}.")
    target.parent.mkdir(exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(target)], f"{target.name} got no environment")
    _run(
        [*installer, "--target", str(packages_of(target)), *packages],
        f"{target.name} could not be installed",
    )
    note.write_text(wanted)


def _npm_version(folder: Path, name: str) -> str | None:
    try:
        return str(json.loads((folder / "node_modules" / name / "package.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return None


def _run(command: Sequence[str], otherwise: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{otherwise}: {(done.stdout + done.stderr).strip()[-2000:]}")
