"""Judge a command line as a session would, without a session: for `dragoman permissions test`."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.coder.execution import DirectExecution
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
    line: str, folder: str, mode: str, rules: Sequence[PermissionRule], environment: Mapping[str, str], home: str
) -> Decision:
    """Return what would be decided about a command line in a folder. Runs nothing; blocks: looks at git's settings.

    `home` is our data folder.
    """
    variables = command_environment(child_environment(environment))
    roots = Roots([os.path.abspath(folder)])
    place = _Place(roots, variables, DirectExecution(None, roots, lambda: mode, variables, home))
    action, reason = command_action(line, place)
    decision = decide_call(JudgedCall("test", Bash.name, {"command": line}, [action]), mode, rules)
    return decision._replace(reason=reason) if reason and decision.verdict == "ask" else decision
