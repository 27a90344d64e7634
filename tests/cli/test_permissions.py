"""`dragoman permissions`: the kept rules as the user sees them."""

import json
from pathlib import Path
from typing import Any

from dragoman.coder.kept_rules import FILE, KeptRules
from dragoman.permissions.rule import PermissionRule
from tests.support.command import Called, call

MAKE = PermissionRule("allow", tool="bash", subject="make …")
PUSH = PermissionRule("reject", tool="bash", subject="git push …")


def command(folder: Path, *words: str) -> Called:
    return call("permissions", *words, cwd=folder, DRAGOMAN_HOME=str(folder / "home"))


def listed(folder: Path, *words: str) -> Any:
    return json.loads(command(folder, *words, "--json").out)


def kept(folder: Path) -> KeptRules:
    rules = KeptRules(folder / "home")
    rules.add("", [PUSH])
    rules.add(str(folder), [MAKE])
    return rules


def test_rules_are_listed_with_where_they_count(tmp_path: Path) -> None:
    push, make = kept(tmp_path).rules()
    shown = command(tmp_path, "list")
    assert shown.out == f"{push.id} deny bash git push … (everywhere)\n{make.id} allow bash make … ({tmp_path})\n"
    assert listed(tmp_path, "list")[1] == {
        "id": make.id,
        "scope": "project",
        "project": str(tmp_path),
        "effect": "allow",
        "tool": "bash",
        "subject": "make …",
        "confined": False,
    }
    assert [one["id"] for one in listed(tmp_path, "list", "-C", "/")] == [push.id]


def test_without_rules_the_list_is_empty_and_says_so(tmp_path: Path) -> None:
    assert command(tmp_path, "list") == Called(0, "", "No rules are kept.\n")
    assert listed(tmp_path, "list") == []


def test_a_rule_is_removed_by_its_id(tmp_path: Path) -> None:
    push, make = kept(tmp_path).rules()
    assert [one["id"] for one in listed(tmp_path, "remove", push.id)] == [push.id]
    assert KeptRules(tmp_path / "home").rules() == (make,)
    missing = command(tmp_path, "remove", push.id)
    assert (missing.code, missing.error) == (1, f"dragoman: there is no rule {push.id}\n")


def test_a_command_line_is_judged_and_not_run(tmp_path: Path) -> None:
    push, _ = kept(tmp_path).rules()
    verdicts = {
        line: (found["verdict"], [one["subject"] for one in found["rules"]])
        for line in ("make all", "make all; touch x", "git push", "touch x", "ls")
        for found in [listed(tmp_path, "test", line)]
    }
    assert verdicts == {
        "make all": ("ask", []),
        "make all; touch x": ("ask", []),
        "git push": ("deny", ["git push …"]),
        "touch x": ("ask", []),
        "ls": ("allow", []),
    }
    assert listed(tmp_path, "test", "make")["verdict"] == "allow"
    assert listed(tmp_path, "test", "--mode", "full-access", "git push")["verdict"] == "deny"
    assert command(tmp_path, "test", "git push").out.endswith(f"{push.id} deny bash git push … (everywhere)\n")
    assert not (tmp_path / "x").exists()


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FILE).write_text("{")
    (tmp_path / "home" / FILE).chmod(0o600)
    failed = command(tmp_path, "list")
    assert (failed.code, failed.out) == (1, "")
    assert (
        failed.error == f"dragoman: the rules in {tmp_path}/home/{FILE} cannot be used: the file is no list of rules\n"
    )


def test_what_cannot_be_judged_is_a_mistake_in_the_command_line(tmp_path: Path) -> None:
    assert command(tmp_path, "test", "--mode", "yolo", "ls").code == 2
    assert command(tmp_path, "test", "-C", str(tmp_path / "none"), "ls").code == 2
