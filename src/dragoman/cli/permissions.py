"""`dragoman permissions`: the answers "always" and "never" that outlive their session; list, test and remove them."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from dragoman.cli.common_options import add_action
from dragoman.cli.errors import NOT_DONE, USAGE, CommandError, print_error
from dragoman.cli.managed import managed_file, managed_settings

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from dragoman.coder.kept_rules import KeptRule, KeptRules

_DESCRIPTION = """\
The rules that are kept for a project, or everywhere, because you have answered
"always" or "never" so, and those of the administrator's file, which come before
them. Those of one session are in its /permissions.
"""
_EPILOG = """\
  dragoman permissions list
  dragoman permissions test "npm test"
  dragoman permissions remove 1f0c9a2b
"""


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "permissions",
        help="list, test and remove the rules that were kept",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    listing = add_action(actions, "list", "the rules that are kept", as_json="one JSON array of rules")
    listing.add_argument("-C", "--cwd", metavar="DIR", help="only rules that count in this folder")
    test = add_action(
        actions, "test", "what the rules and a mode say about a command line", as_json="the verdict as a JSON object"
    )
    test.add_argument("line", metavar="COMMAND", help="a command line, in quotes; it is not run")
    test.add_argument("-C", "--cwd", metavar="DIR", default=".", help="the folder to run it in; this one if left out")
    test.add_argument("--mode", metavar="MODE", default="ask", help="the mode to judge by; ask if left out")
    remove = add_action(actions, "remove", "take rules away", as_json="one JSON array of the rules that were removed")
    remove.add_argument("ids", metavar="ID", nargs="+", help="as `list` shows them")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman.cli.home import data_folder
    from dragoman.coder.kept_rules import KeptRules, KeptRulesFailed

    try:
        kept = KeptRules(data_folder())
        match arguments.action:
            case "list":
                return _list(kept, arguments.cwd, as_json=arguments.json)
            case "test":
                return _test(kept, arguments)
            case _:
                return _remove(kept, arguments.ids, as_json=arguments.json)
    except KeptRulesFailed as error:
        return print_error(str(error), NOT_DONE)
    except CommandError as error:
        return print_error(str(error), USAGE)


def _list(kept: "KeptRules", folder: str | None, *, as_json: bool) -> int:
    rules = kept.rules()
    if folder is not None:
        project = _project(folder)
        rules = tuple(one for one in rules if one.counts_in(project))
    managed = _managed_rules()
    _print_rules(rules, managed, as_json=as_json)
    if not rules and not managed and not as_json:
        print("No rules are kept.", file=sys.stderr)
    return 0


def _remove(kept: "KeptRules", ids: list[str], *, as_json: bool) -> int:
    removed = kept.remove(ids)
    _print_rules(removed, as_json=as_json)
    missing = [one for one in ids if one not in {rule.id for rule in removed}]
    if fixed := [one for one in missing if one in {rule.id for rule in _managed_rules()}]:
        file = managed_file()
        return print_error(f"{', '.join(fixed)}: a rule of the administrator's file {file} is not removed", NOT_DONE)
    return print_error(f"there is no rule {', '.join(missing)}", NOT_DONE) if missing else 0


def _test(kept: "KeptRules", arguments: argparse.Namespace) -> int:
    """Print what would be decided. Exit code 0 whatever that is: it is an answer, and no failure."""
    import os

    from dragoman.cli.home import data_folder
    from dragoman.cli.text_width import harmless_line
    from dragoman.coder.modes import MODES
    from dragoman.coder.rule_test import judge_command

    if arguments.mode not in MODES:
        raise CommandError(f"there is no mode {arguments.mode}; there are {', '.join(MODES)}")
    project = _project(arguments.cwd)
    rules = [one for one in kept.rules() if one.counts_in(project)]
    only = [one.rule for one in rules]
    managed = managed_settings()
    decision = judge_command(arguments.line, arguments.cwd, arguments.mode, only, os.environ, data_folder(), managed)
    of_file = [one for one in _managed_rules() if decision.by == "managed" and one.rule in decision.rules]
    used = [] if of_file else [one for one in rules if one.rule in decision.rules]
    if arguments.json:
        verdict: dict[str, Any] = {"verdict": decision.verdict, "reason": decision.reason, "by": decision.by}
        shown = [*(_managed_as_json(one) for one in of_file), *(_as_json(one) for one in used)]
        print(json.dumps(verdict | {"mode": arguments.mode, "rules": shown}))
        return 0
    print(f"{decision.verdict}: {harmless_line(decision.reason)}")
    _print_rules(used, of_file, as_json=False)
    return 0


def _project(folder: str) -> str:
    import os

    from dragoman.coder.kept_rules import project_of

    if not os.path.isdir(folder):
        raise CommandError(f"{folder}: no such folder")
    return project_of(folder, os.path.expanduser("~"))


def _managed_rules() -> "list[KeptRule]":
    """Return the rules of the administrator's file, in the order in which they count."""
    from dragoman.coder.kept_rules import KeptRule

    settings = managed_settings()
    if settings is None:
        return []
    return [KeptRule("", rule) for rule in (*settings.rules.against(), *settings.rules.allowing())]


def _print_rules(rules: "Sequence[KeptRule]", managed: "Sequence[KeptRule]" = (), *, as_json: bool) -> None:
    from dragoman.cli.text_width import harmless_line

    if as_json:
        shown = [*(_managed_as_json(one) for one in managed), *(_as_json(one) for one in rules)]
        print(json.dumps(shown, indent=1))
        return
    for one in managed:
        rule = one.rule
        print(harmless_line(f"{one.id} {rule.verdict} {rule.pattern()} (the administrator's, {managed_file()})"))
    for one in rules:
        print(harmless_line(f"{one.id} {one.rule} ({one.project or 'everywhere'})"))


def _managed_as_json(one: "KeptRule") -> dict[str, Any]:
    rule = one.rule
    found = {"id": one.id, "scope": "managed", "file": managed_file(), "effect": rule.verdict}
    return {**found, "kind": rule.kind, "path": rule.path, "command": rule.command}


def _as_json(one: "KeptRule") -> dict[str, Any]:
    rule = one.rule
    return {
        "id": one.id,
        "scope": "project" if one.project else "everywhere",
        "project": one.project or None,
        "effect": rule.verdict,
        "tool": rule.tool,
        "subject": rule.subject,
        "confined": rule.confined,
    }
