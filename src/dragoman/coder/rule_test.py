"""Judge a command line as a session would, without a session: for `dragoman permissions test`."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.coder.execution import DirectExecution
from dragoman.coder.managed_rules import rule_book
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.permissions import JudgedCall, decide_call
from dragoman.coder.tools.bash import Bash, command_action, command_environment
from dragoman.host.environment import child_environment
from dragoman.host.paths import Roots
from dragoman.permissions.decision import Decision
from dragoman.permissions.rule import PermissionRule


class _Place(NamedTuple):
    roots: Roots
    environment: Mapping[str, str]
    execution: DirectExecution


def judge_command(
    line: str,
    folder: str,
    mode: str,
    rules: Sequence[PermissionRule],
    environment: Mapping[str, str],
    home: str,
    managed: ManagedSettings | None = None,
) -> Decision:
    """Return what would be decided about a command line in a folder. Runs nothing; blocks: looks at git's settings.

    `home` is our data folder, `managed` what the administrator says; None: nothing.
    """
    if managed is not None and not managed.modes.permits(mode):
        return Decision("deny", managed.says(f"mode {mode}"), "managed")
    variables = command_environment(child_environment(environment))
    roots = Roots([os.path.abspath(folder)])
    place = _Place(roots, variables, DirectExecution(None, roots, lambda: mode, variables, home))
    action, reason = command_action(line, place)
    book = None if managed is None else rule_book(managed, lambda: roots)
    decision = decide_call(JudgedCall("test", Bash.name, {"command": line}, [action]), mode, rules, managed=book)
    is_explained = reason and decision.verdict == "ask" and decision.by != "managed"
    return decision._replace(reason=reason) if is_explained else decision
