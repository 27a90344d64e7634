"""`dragoman acp`: the agent on stdin and stdout, for editors."""

import argparse

from dragoman.cli.common_options import Commands, add_command, add_max_cost, add_thinking
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
    parser.add_argument("--model", metavar="M", help="model to use: provider/name, demo, script:FILE")
    parser.add_argument(
        "--mode", metavar="MODE", help="what it may do without asking; ask is the default. `full` is full-access"
    )
    parser.add_argument(
        "--resume",
        metavar="ID",
        nargs="?",
        const="",
        help="the first new session continues session ID, or the newest one of its folder",
    )
    add_worktree_option(parser)
    add_thinking(parser)
    add_max_cost(parser)
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


def _record(error: Exception) -> None:
    from dragoman.cli.failure_log import record

    record("acp", error)
