"""`dragoman chat`: a conversation with any agent, at a terminal."""

import argparse

from dragoman.cli.common_options import CHOOSE, Commands, add_command, add_resume
from dragoman.cli.errors import print_error
from dragoman.cli.target import add_from_session, add_target
from dragoman.cli.worktrees import add_worktree_option

_DESCRIPTION = """\
Talk to an agent at this terminal. Without --agent and -- CMD it is the
defaultServer of acp.json, or Dragoman's own agent.
"""
_EPILOG = """\
Enter sends; Alt-Enter, or a \\ at the end of a line, begins a new one; names
behind / and paths behind @ are completed while you type, by any letters of
them; /help lists the commands; Ctrl-G opens your editor; !command runs in your
shell. While the agent works, Enter adds a line to the turn or, where it takes
none, sends it afterwards; Tab always waits. Ctrl-C cancels the turn, or clears
the line (Up brings it back); twice on an empty line it leaves, as Ctrl-D does.

  dragoman chat
  dragoman chat --continue
  dragoman chat -- gemini --acp
  dragoman chat --agent https://agents.example.org --cwd /srv/app

The token for an address is read from --token-file or DRAGOMAN_TOKEN.
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "chat",
        "a conversation with any agent, at this terminal",
        _DESCRIPTION,
        epilog=_EPILOG,
        usage="dragoman chat [options] [-- CMD ...]",
    )
    add_target(parser)
    add_worktree_option(parser)
    add_from_session(parser)
    parser.add_argument(
        "--plain",
        action="store_true",
        help="no boxes, nothing that moves or is drawn over: for screen readers; `plain = true` in config.toml does it "
        "always",
    )
    add_resume(parser, "go on with session ID; without one you choose from a list", without_id=CHOOSE)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Chat with the agent until the user leaves; return the exit code."""
    import sys

    from dragoman.cli.target import chosen_folder, chosen_target
    from dragoman.errors import how_to_install

    target = chosen_target(arguments)
    folder = chosen_folder(arguments, target)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return print_error("a chat needs a terminal; `dragoman run` is for pipes and scripts")
    try:
        from dragoman.cli.terminal.chat_session import ChatSession
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("prompt_toolkit", "rich"):
            raise
        return print_error(f"chat needs {error.name}, which is not installed: {how_to_install('chat')}")
    from dragoman import background
    from dragoman.cli.handoff import successor_arguments
    from dragoman.cli.worktrees import chosen_worktree

    session = ChatSession(arguments, target, chosen_worktree(arguments, target, folder))
    code = background.run(session.perform())
    while code == 0 and session.successor is not None:
        arguments = successor_arguments(arguments, *session.successor)
        target = chosen_target(arguments)
        session = ChatSession(arguments, target, chosen_folder(arguments, target))
        code = background.run(session.perform())
    return code
