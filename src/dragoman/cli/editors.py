"""What each editor wants in its settings to start the agent, and where those are."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class Editor(NamedTuple):
    """An editor, or another program that starts agents.

    `file` with `path` and `value`: settings that we can write. Without them, `snippet` is for the user to put in, at
    the place that `where` tells.
    """

    title: str
    where: str
    snippet: str
    file: str = ""
    path: tuple[str, ...] = ()
    value: Mapping[str, Any] = MappingProxyType({})


NAMES: Final = ("zed", "jetbrains", "vscode", "codecompanion", "avante", "emacs", "acpx", "toad")
# What people call them, too.
ALIASES: Final = {"neovim": "codecompanion", "nvim": "codecompanion", "agent-shell": "emacs", "code": "vscode"}


def editor(name: str, arguments: Sequence[str] = ("acp",)) -> Editor:
    """Return an editor of `NAMES`, with the program as it is installed here and these arguments."""
    program = own_program()
    words = list(arguments)
    server: dict[str, Any] = {"command": program, "args": words}
    with_environment = {**server, "env": {}}
    match name:
        case "zed":
            return _written(
                "Zed", _config("zed", "settings.json"), "agent_servers", {"type": "custom", **with_environment}
            )
        case "jetbrains":
            return _written("JetBrains", _home(".jetbrains", "acp.json"), "agent_servers", server)
        case "vscode":
            file = _config("Code", "User", "settings.json", macos=("Library", "Application Support"))
            return _written("VS Code, ACP Client", file, "acp.agents", with_environment)
        case "acpx":
            entry = {"argv": [program, *words]} if shlex.quote(program) != program else server
            return _written("acpx", _home(".acpx", "config.json"), "agents", entry, name="dragoman")
        case "codecompanion":
            command = ", ".join(json.dumps(word) for word in (program, *words))
            extended = f'{{ name = "dragoman", commands = {{ default = {{ {command} }} }} }}'
            snippet = f'dragoman = function() return require("codecompanion.adapters").extend("goose", {extended}) end'
            return Editor("Neovim, codecompanion.nvim", "in adapters.acp of its setup", snippet)
        case "avante":
            args = ", ".join(json.dumps(word) for word in words)
            snippet = f'["dragoman"] = {{ command = {json.dumps(program)}, args = {{ {args} }} }}'
            return Editor("Neovim, avante.nvim", 'in acp_providers of its setup, with provider = "dragoman"', snippet)
        case "emacs":
            return Editor("Emacs, agent-shell", "in your init file", _elisp(program, words))
        case "toad":
            command = shlex.quote(shlex.join([program, *words]))
            return Editor(
                "Toad",
                "it has no setting for agents of one's own: start it so, in the folder to work in",
                f"toad acp {command} .",
            )
        case _:
            raise KeyError(name)


def own_program() -> str:
    """Return the program that runs now, not another that the path may have: this one was checked."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) == "dragoman":
        return started
    beside = os.path.join(os.path.dirname(sys.executable), "dragoman")  # started as `python -m dragoman`
    return beside if os.access(beside, os.X_OK) else shutil.which("dragoman") or started


def _written(title: str, file: str, key: str, value: dict[str, Any], name: str = "Dragoman") -> Editor:
    from dragoman.cli.json_settings import with_value

    snippet = with_value("", (key, name), value).rstrip()
    return Editor(title, file, snippet, file, (key, name), value)


def _home(*parts: str) -> str:
    return os.path.join(os.path.expanduser("~"), *parts)


def _config(*parts: str, macos: tuple[str, ...] = (".config",)) -> str:
    """Return a file of the editor's configuration folder."""
    if sys.platform == "darwin":
        return _home(*macos, *parts)
    named = os.environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(named, *parts) if os.path.isabs(named) else _home(".config", *parts)


def _elisp(program: str, words: Sequence[str]) -> str:
    parameters = " ".join(json.dumps(word, ensure_ascii=False) for word in words)
    command = f":command {json.dumps(program, ensure_ascii=False)} :command-params '({parameters})"
    started = f"(acp-make-client {command} :context-buffer buffer)"
    return (
        "(require 'agent-shell)\n"
        "(defun dragoman ()\n"
        '  "Talk to Dragoman."\n'
        "  (interactive)\n"
        "  (agent-shell-start :config (agent-shell-make-agent-config :identifier 'dragoman\n"
        '    :mode-line-name "Dragoman" :buffer-name "Dragoman" :shell-prompt "Dragoman> "\n'
        f'    :shell-prompt-regexp "Dragoman> " :client-maker (lambda (buffer) {started}))))'
    )
