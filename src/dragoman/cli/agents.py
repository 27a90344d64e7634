"""`dragoman agents`: the agents of `acp.json`; list them, add one, remove one."""

import argparse

from dragoman.cli.common_options import Commands, add_action, add_command
from dragoman.cli.errors import NOT_DONE, print_error

_DESCRIPTION = """\
The agents that `dragoman run --agent NAME` and `dragoman chat --agent NAME`
know: built-in ones, those of acp.json in Dragoman's folder, and those of the
project you are in, once you have trusted it.
"""
_EPILOG = """\
`dragoman agents ACTION --help` explains an action.

  dragoman agents list
  dragoman agents add mine -- python3 my_agent.py --acp
  dragoman agents add far --token-file ~/.far-token https://agents.example.org
  dragoman agents remove mine
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "agents", "list, add and remove agents", _DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    listing = add_action(actions, "list", "the agents there are, and how they fare", as_json="one JSON array of agents")
    listing.add_argument("--check", action="store_true", help="start each one that is installed and say hello to it")
    adding = add_action(
        actions, "add", "put an agent into acp.json, or change it", usage="%(prog)s NAME -- CMD ... | URL"
    )
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("agent_command", metavar="CMD", nargs="+", help="how it is started, after --; or its address")
    adding.add_argument("--description", metavar="TEXT", help="what it is, in a few words")
    adding.add_argument("--token-file", metavar="F", help="where the token for the address is kept")
    adding.add_argument("--ca-file", metavar="F", help="the authorities, in PEM, that its certificate is checked by")
    removing = add_action(actions, "remove", "take an agent out of acp.json")
    removing.add_argument("name", metavar="NAME")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman.cli.agent_actions import add_agent, list_agents, remove_agent
    from dragoman.errors import DragomanError

    action = {"list": list_agents, "add": add_agent, "remove": remove_agent}[arguments.action]
    try:
        return action(arguments)
    except DragomanError as error:
        return print_error(str(error), NOT_DONE)
