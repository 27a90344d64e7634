"""Real language servers by name, through our agent: driven by acpx, by our own commands, and by the client of ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.coder.language_servers.known import read_specs
from dragoman.host.trust import trust
from tests.support.editor import DRAGOMAN, turns
from tests.support.language_servers import PATIENT, beside, box_of
from tests.support.needs import need_acpx, need_language_servers
from tests.support.scripted_turns import call
from tests.support.ts_editor import new_session, of_kind, played
from tests.support.whole_agent import events_of

pytestmark = pytest.mark.interop
SECONDS = 120.0


class Case(NamedTuple):
    """A file, an edit that breaks it, and what the server says of it: place and code."""

    server: str
    name: str
    text: str
    old: str
    new: str
    error: str


CASES = [
    Case("pyright", "app.py", "total = 1\nprint(total)\n", "(total)", "(totall)", "app.py:2:7: error"),
    Case("ruff", "app.py", "total = 1\nprint(total)\n", "(total)", "(totall)", "app.py:2:7: error"),
    Case(
        *("typescript", "app.ts", "const total = 1\nconsole.log(total)\n", "(total)", "(totall)"),
        "app.ts:2:13: error",
    ),
]
CODES = {"pyright": "reportUndefinedVariable", "ruff": "F821", "typescript": "2552"}


@pytest.fixture(params=CASES, ids=lambda case: case.server)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def environment(folder: Path, case: Case) -> dict[str, str]:
    """A user who trusts the project, and has turned all other servers off."""
    home, work = folder / "home", folder / "work"
    work.mkdir()
    home.mkdir()
    (work / case.name).write_text(case.text)
    others = [spec.name for spec in read_specs({}) if spec.name != case.server]
    (home / "config.toml").write_text("".join(f"[language_servers.{name}]\nenabled = false\n" for name in others))
    trust(home / "trust.json", work)
    path = f"{need_language_servers()}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "DRAGOMAN_HOME": str(home)}


def script(folder: Path, case: Case) -> str:
    """An edit, then a look that waits for the server."""
    edit = {"path": case.name, "old_string": case.old, "new_string": case.new}
    file = folder / "script.json"
    file.write_text(
        json.dumps(
            turns([{"call": "edit_file", "input": edit}, {"say": "Now I look."}, {"call": "diagnostics", "input": {}}])
        )
    )
    return str(file)


def run(argv: list[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=env,
        cwd=folder,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


def problems(value: Any) -> list[dict[str, Any]]:
    """Every list of problems in raw outputs, wherever they stand in a message."""
    if isinstance(value, dict):
        own = value.get("problems")
        return own if isinstance(own, list) else [one for part in value.values() for one in problems(part)]
    return [one for part in value for one in problems(part)] if isinstance(value, list) else []


def test_acpx_is_sent_what_a_server_sees(tmp_path: Path, case: Case) -> None:
    env = environment(tmp_path, case)
    agent = " ".join([*DRAGOMAN, "acp", "--model", f"script:{script(tmp_path, case)}", "--mode", "workspace-write"])
    options = ["--agent", agent, "--cwd", str(tmp_path / "work"), "--format", "json", "--approve-all"]
    out = run([*need_acpx(), *options, "exec", "go"], tmp_path, env)
    found = [one for line in out.splitlines() for one in problems(json.loads(line))]
    assert {(one["line"], str(one["code"])) for one in found} == {(2, CODES[case.server])}


@pytest.mark.parametrize("version", [1, 2])
def test_an_editor_on_the_typescript_sdk_is_sent_what_a_server_sees(tmp_path: Path, case: Case, version: int) -> None:
    env = environment(tmp_path, case)
    agent = ["env", f"PATH={env['PATH']}", *DRAGOMAN, "acp", "--model", f"script:{script(tmp_path, case)}"]
    plan = (new_session(tmp_path / "work"), {"prompt": "go"})
    written = json.loads((tmp_path / "script.json").read_text())
    lines = played(version, tmp_path, written, *plan, agent=[*agent, "--mode", "workspace-write"])
    found = problems(of_kind(lines, "update"))
    assert {(one["line"], str(one["code"])) for one in found} == {(2, CODES[case.server])}


def test_our_own_command_shows_what_a_server_sees(tmp_path: Path, case: Case) -> None:
    env = environment(tmp_path, case)
    model = ["--model", f"script:{script(tmp_path, case)}", "--mode", "workspace-write"]
    out = run([*DRAGOMAN, "run", *model, "--stream-json", "go"], tmp_path / "work", env)
    found = [one for line in out.splitlines() for one in problems(json.loads(line))]
    assert {(one["line"], str(one["code"])) for one in found} == {(2, CODES[case.server])}
    findings = json.loads(run([*DRAGOMAN, "doctor", "--json"], tmp_path, env))["findings"]
    (said,) = [one["text"] for one in findings if one["what"] == "language"]
    assert said.startswith(f"servers {case.server} (")


async def test_the_edit_itself_names_the_error_and_the_next_one_only_what_is_new(tmp_path: Path, case: Case) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / case.name).write_text(case.text)
    specs = [spec for spec in read_specs({}) if spec.name == case.server]
    steps = [
        call("edit_file", path=case.name, old_string=case.old, new_string=case.new),
        call("edit_file", path=case.name, old_string=case.new, new_string=f"{case.new}\n"),
    ]
    path = {"PATH": f"{need_language_servers()}{os.pathsep}{os.environ['PATH']}"}
    async with beside(tmp_path, steps, *specs, timeouts=PATIENT._replace(edit=90.0), environment=path) as (
        session,
        model,
    ):
        await events_of(session)
    broken, moved = model.results
    (line,) = box_of(broken)
    assert line.startswith(case.error) and CODES[case.server] in line
    assert box_of(moved) == []
