"""The rows of agents as tests of pytest: one test for each row and version.

    pytest -p dragoman.conformance.pytest_plugin --acp-agent "my-agent --acp"

A row that does not apply is skipped, and so is a `should` or a `note` that does not hold, with its reason; everything
that counts for conformance fails. `--acp-only` and the prompts are those of `dragoman check`.
"""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Final

import pytest

from dragoman.conformance.model_server import CheckModelServer
from dragoman.conformance.report import frame_line
from dragoman.conformance.rows import Requirement, load_rows
from dragoman.conformance.run import CheckPlan, RowResult, check, judge_row
from dragoman.conformance.subject import StartedSubject
from dragoman.conformance.trial import DEFAULT_PROMPT, CheckSettings
from dragoman.conformance.verdicts import Verdict

_OPTIONS: Final[Mapping[str, str]] = {
    "--acp-agent": "command of the agent that is checked by the rows of ACP",
    "--acp-only": "only these rows, with commas",
    "--acp-prompt": "a prompt for a short turn",
    "--acp-slow-prompt": "a prompt for a turn of many seconds",
    "--acp-permission-prompt": "a prompt for which the agent asks for permission",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("acp", "Agent Client Protocol")
    for name, help in _OPTIONS.items():
        group.addoption(name, default="", help=help)
    group.addoption("--acp-model-server", action="store_true", help="give the agent a model on loopback")
    group.addoption("--acp-strict", action="store_true", help="rows that should hold count as rows that must")


class RowsNotTested(Exception):
    """Nothing can be tested: the agent does not start, or does not greet."""


class RowFailure(Exception):
    """A row that counts does not hold; the text is what the report of `check` says."""


class CheckedAgent:
    """The agent of a run of pytest: greeted once, judged row by row."""

    def __init__(self, config: pytest.Config, stack: ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-check-"))
        env: Mapping[str, str] = {}
        if config.getoption("--acp-model-server"):
            env = stack.enter_context(CheckModelServer()).variables()
        self.is_strict: Final[bool] = config.getoption("--acp-strict")
        self._subject: Final = StartedSubject(shlex.split(config.getoption("--acp-agent")), os.getcwd(), env)
        self._settings: Final = CheckSettings(
            os.path.realpath(folder),
            prompt=config.getoption("--acp-prompt") or DEFAULT_PROMPT,
            slow_prompt=config.getoption("--acp-slow-prompt"),
            permission_prompt=config.getoption("--acp-permission-prompt"),
        )

    @cached_property
    def hellos(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the answers to `initialize`. Raise `RowsNotTested`."""
        report = asyncio.run(check(self._subject, CheckPlan([]), self._settings))
        if report.obstacle:
            raise RowsNotTested(report.obstacle)
        return report.hellos

    def judge(self, row: Requirement, version: int) -> RowResult:
        """Judge a row."""
        return asyncio.run(judge_row(self._subject, row, version, self._settings, self.hellos[version]))


_AGENT: Final = pytest.StashKey[CheckedAgent]()
_STACK: Final = pytest.StashKey[ExitStack]()


class RowItem(pytest.Item):
    """One row in one version."""

    def __init__(self, *, row: Requirement, version: int, **more: Any) -> None:
        super().__init__(**more)
        self.row: Final = row
        self.version: Final = version
        self.add_marker(pytest.mark.acp)

    def runtest(self) -> None:
        """Judge the row."""
        agent = self.config.stash[_AGENT]
        if self.version not in agent.hellos:
            pytest.skip(f"the agent does not speak version {self.version}")
        result = agent.judge(self.row, self.version)
        if result.counts(strict=agent.is_strict):
            raise RowFailure("\n".join(_told(result)))
        if result.verdict is not Verdict.PASS:
            pytest.skip(f"{result.verdict.value}: {result.reason}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the row and its frames, and no traceback of ours."""
        if isinstance(excinfo.value, RowFailure | RowsNotTested):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Name the test."""
        return "acp", None, f"{self.row.id} in version {self.version}"


def _told(result: RowResult) -> Iterator[str]:
    row = result.row
    yield f"{row.id} (version {result.version}, {row.tier}): {row.sentence}"
    yield f"  {result.verdict.value}: {result.reason}"
    if result.next_step:
        yield f"  next: {result.next_step}"
    yield from map(frame_line, result.frames)
    yield f"  source: {row.source()}; more: dragoman check --explain {row.id}"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of these tests."""
    config.addinivalue_line("markers", "acp: a row of the Agent Client Protocol, by dragoman")
    if config.getoption("--acp-agent"):
        config.stash[_STACK] = stack = ExitStack()
        config.stash[_AGENT] = CheckedAgent(config, stack)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the model, and remove the folder."""
    if _STACK in config.stash:
        config.stash[_STACK].close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the rows behind the tests that were collected."""
    if not config.getoption("--acp-agent"):
        return
    wanted = {id.strip() for id in config.getoption("--acp-only").split(",") if id.strip()}
    rows = [row for row in load_rows("agent") if not wanted or row.id in wanted]
    if unknown := wanted - {row.id for row in rows}:
        raise pytest.UsageError(f"--acp-only: there is no row {sorted(unknown)[0]}")
    for version in (1, 2):
        for row in rows:
            if version in row.versions:
                name = f"{row.id}[v{version}]"
                items.append(RowItem.from_parent(session, name=name, row=row, version=version))
