"""`dragoman acp`: the agent on stdin and stdout, for editors."""

import argparse

from dragoman.cli.common_options import (
    Commands,
    add_command,
    add_max_cost,
    add_own_agent_options,
    add_resume,
    add_thinking,
)
from dragoman.cli.errors import print_error
from dragoman.cli.worktrees import add_worktree_option

_DESCRIPTION = """\
Serve an agent on stdin and stdout, for an editor that starts it. stdout carries
the protocol and nothing else. The version of the protocol (1 or 2) and the
framing (lines or Content-Length) are the editor's choice.
"""
_EPILOG = """\
Without --model it is the one in config.toml, else that of a provider whose key
is there, else `demo`: a guided tour and a few commands, no language model.

  dragoman acp --model anthropic/claude-sonnet-5 --mode workspace-write
  dragoman acp --model ollama/llama3.2
  dragoman acp --model script:demo.json

A script is a JSON file; each prompt plays its next turn:

  {"turns": [
    {"steps": [{"think": "Hm."}, {"say": "Hi. ", "repeat": 3, "delay_ms": 99}]},
    {"steps": [{"call": "read_file", "input": {"path": "README.md"}}]}
  ]}
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "acp", "the agent on stdin and stdout, for editors", _DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "--dialect",
        metavar="D",
        help="speak the dialect of another system: iac-code, elephant, agentao, simse; without it, plain ACP",
    )
    parser.add_argument("-m", "--model", metavar="M", help="model to use: provider/name, demo, script:FILE")
    parser.add_argument(
        "--mode", metavar="MODE", help="what it may do without asking; ask is the default. `full` is full-access"
    )
    add_resume(parser, "the first new session goes on with session ID; without one, as --continue does")
    add_worktree_option(parser)
    add_thinking(parser)
    add_max_cost(parser)
    add_own_agent_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor is gone."""
    # Everything behind this line is paid for by the editor's user at every start: import as little as possible.
    from dragoman.agent.agent import agent_core, rules_of
    from dragoman.cli.builtin_agent import our_setup
    from dragoman.cli.home import open_store
    from dragoman.coder.agent import coding_agent
    from dragoman.errors import UsageError

    try:
        rules = rules_of(arguments.dialect)
        setup = our_setup(
            arguments.model,
            arguments.mode,
            rules,
            worktree=arguments.worktree,
            max_cost=arguments.max_cost,
            thinking=arguments.thinking,
            model_calls=arguments.max_turns,
            system_prompt=_instructions(arguments.system_prompt_file),
        )
    except UsageError as error:
        return print_error(str(error))
    trace = None
    if arguments.trace is not None:
        from dragoman.cli.trace_file import trace_of

        trace = trace_of(arguments, "agent")
    agent = coding_agent(
        setup, store=open_store, resume=arguments.resume, protocol=arguments.protocol, dialect=arguments.dialect
    )
    core = agent_core(agent)
    core.also_report = _record
    core.at_a_terminal = "waiting for an editor on stdin; for a person: dragoman chat"
    agent.run(trace=trace)
    return 0


def _instructions(file: str | None) -> str:
    """Return the instructions that stand in a file; empty where none was named. Raise `CommandError` for a bad file."""
    if file is None:
        return ""
    from dragoman.cli.errors import CommandError
    from dragoman.coder.system_prompt import SYSTEM_PROMPT_BYTES
    from dragoman.host.regular_file import read_regular

    try:
        data = read_regular(file, SYSTEM_PROMPT_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"--system-prompt-file {file}: {reason}") from None
    if len(data) > SYSTEM_PROMPT_BYTES or not text.strip():
        raise CommandError(f"--system-prompt-file {file}: it is empty, or longer than {SYSTEM_PROMPT_BYTES:,} bytes")
    return text


def _record(error: Exception) -> None:
    from dragoman.cli.failure_log import record

    record("acp", error)
