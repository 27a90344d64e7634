"""A rule with a command: of which kind it may be, and what it may name beside. One that would miss it is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.permissions.rule import Effect, PermissionRule, RuleRefused
from tests.support import rogue_agent
from tests.support.rogue_agent import permission
from tests.support.run_command import run


@pytest.mark.parametrize("command", ["touch x", "*"])
@pytest.mark.parametrize("kind", ["read", "edit", "fetch", "other"])
@pytest.mark.parametrize("effect", ["allow", "reject", "ask"])
def test_a_kind_that_no_command_has_is_refused(effect: Effect, kind: str, command: str) -> None:
    with pytest.raises(
        RuleRefused, match=f"a command is of the kind execute and of no other, so never {kind}"
    ) as refused:
        PermissionRule(effect, kind=kind, command=command)
    assert refused.value.field == "kind"


@pytest.mark.parametrize("effect", ["reject", "ask"])
def test_a_path_beside_a_command_is_refused_in_a_rule_against_it(effect: Effect) -> None:
    with pytest.raises(RuleRefused, match="which files a command touches is not known") as refused:
        PermissionRule(effect, command="touch *", path="src/**")
    assert refused.value.field == "path"


@pytest.mark.parametrize("effect", ["allow", "reject", "ask"])
@pytest.mark.parametrize("kind", ["", "execute"])
def test_a_command_alone_or_with_its_own_kind_is_a_rule(effect: Effect, kind: str) -> None:
    assert PermissionRule(effect, kind=kind, command="touch x").command == "touch x"


@pytest.mark.parametrize(
    ("rule", "field"),
    [({"kind": "other", "command": "touch *"}, "kind"), ({"command": "touch *", "path": "**"}, "path")],
)
@pytest.mark.parametrize("effect", ["reject", "ask"])
def test_the_agent_that_has_such_a_rule_does_not_start(
    effect: str, rule: dict[str, Any], field: str, tmp_path: Path
) -> None:
    asks = permission("Make it", kind="execute", rawInput={"command": "touch x"})
    program, *arguments = rogue_agent.written(tmp_path, asks)
    entry = {"command": program, "args": arguments, "permissions": {effect: [rule]}}
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "acp.json"
    file.write_text(json.dumps({"servers": {"mine": entry}}, indent=1))
    done = run(tmp_path, "hi", "--agent", "mine", "--allow", "all")
    assert done.code == 2
    line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if f'"{field}"' in text)
    assert done.error.startswith(f"dragoman: {file}, line {line}: "), done.error
    assert done.error.endswith(f" (servers.mine.permissions.{effect}[0].{field})\n"), done.error
    assert not (tmp_path / "plan.json.pid").exists()
