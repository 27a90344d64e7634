"""Judge a client by rows: each scenario is played once in each version, and its rows are judged on what is left."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.conformance import schema
from dragoman.conformance.clients.all_judges import JUDGES
from dragoman.conformance.clients.runs import ClientRun
from dragoman.conformance.clients.scenarios import SCENARIOS
from dragoman.conformance.clients.subject import ClientSubject
from dragoman.conformance.clients.trial import play
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.frames import Frame
from dragoman.conformance.rows import Requirement
from dragoman.conformance.run import (
    MUSTS,
    CheckPlan,
    CheckReport,
    RowResult,
    shown_exchange,
    shown_frames,
)
from dragoman.conformance.verdicts import NotTested, RowBlocked, RowFailed, Verdict
from dragoman.errors import DragomanError
from dragoman.host.text import harmless_line

_SHOWN_OUTPUT: Final = 300


async def check_client(
    subject: ClientSubject,
    plan: CheckPlan,
    limits: CheckLimits,
    on_result: Callable[[RowResult, int], None] = lambda result, total: None,
    passes_for: Mapping[int, Mapping[str, Any]] | None = None,
) -> CheckReport:
    """Judge a client; `on_result` is called with each result and the number of all rows.

    `passes_for` has what our agent says of itself in place of what it is, by version.
    """
    hellos: dict[int, Mapping[str, Any]] = {}
    obstacles: list[str] = []
    for version in plan.versions or schema.VERSIONS:
        try:
            run = await played(subject, "plain", version, limits, (passes_for or {}).get(version))
        except DragomanError as error:
            obstacles.append(str(error))
            continue
        found = obstacle_of(run, version)
        if found:
            obstacles.append(found)
        else:
            hellos[version] = run.agent.hello
    if not hellos:
        return CheckReport(subject.name, {}, (), obstacle=obstacles[0])
    return await _ClientCheck(subject, plan, limits, hellos, on_result, passes_for or {}).judge_all()


def obstacle_of(run: ClientRun, version: int) -> str:
    """Return what stands before the rows of a version; empty if nothing does."""
    printed = harmless_line(run.output[-_SHOWN_OUTPUT:])
    if not run.agents:
        last = f"; it last printed: {printed}" if printed else ""
        return f"the client has not started our agent{last}"
    asked = run.agent.hello.get("protocolVersion")
    if not run.agent.hello:
        # A client that breaks the greeting is judged, and not walled.
        return "" if run.agent.connection.received or run.agent.connection.noise else "the client has not greeted"
    if isinstance(asked, int) and asked < version:
        return f"the client asks for version {asked}, not for {version}"
    return ""


async def played(
    subject: ClientSubject,
    scenario: str,
    version: int,
    limits: CheckLimits,
    hello: Mapping[str, Any] | None = None,
) -> ClientRun:
    """Play a scenario in a folder of its own. Raise a `DragomanError` if the client cannot be started.

    `hello` is what our agent says of itself, except in scenarios that are about that.
    """
    chosen = SCENARIOS[scenario]
    if hello is not None and chosen.script.takes_other_hello:
        said = {key: value for key, value in hello.items() if key != "protocolVersion"}
        chosen = chosen._replace(script=chosen.script._replace(hello=said))
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as place:
        folder = os.path.join(os.path.realpath(place), "project")
        os.mkdir(folder)
        return await play(subject, chosen, version, limits, folder)


def judged(row: Requirement, run: ClientRun) -> RowResult:
    """Judge a row on a run of its scenario."""
    found = RowResult(row, run.version, Verdict.PASS, exchange=shown_exchange(frames_of(run)))
    found = found._replace(own_faults=tuple(_own_faults(run)))
    try:
        if not lends(row.capability, run):
            raise NotTested(f"the client does not have {row.capability!r}", is_unadvertised=True)
        for agent in run.agents:
            agent.judged.clear()
        JUDGES[row.id](run)
    except RowFailed as failed:
        frames = failed.frames or _frames_of_answer(run) or shown_frames(frames_of(run))
        return found._replace(verdict=Verdict.FAIL, reason=failed.reason, frames=frames)
    except NotTested as missing:
        found = found._replace(verdict=Verdict.NOT_TESTED, reason=missing.reason, next_step=missing.next_step)
        return found._replace(is_unadvertised=missing.is_unadvertised)
    except RowBlocked as blocked:
        return found._replace(verdict=Verdict.BLOCKED, reason=blocked.reason, next_step=blocked.next_step)
    return found


def frames_of(run: ClientRun) -> list[Frame]:
    """Return the frames of all connections of a run."""
    return [frame for agent in run.agents for frame in agent.connection.recording.frames]


def _frames_of_answer(run: ClientRun) -> tuple[Frame, ...]:
    """Return the question and the answer that a judge has looked at last."""
    for agent in run.agents:
        for name in reversed(agent.judged):
            return agent.frames_of_answers.get(name, ())
    return ()


def _own_faults(run: ClientRun) -> Iterable[Frame]:
    for agent in run.agents:
        yield from agent.connection.recording.faults("check")


_LENT: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("fs", "readTextFile"),
    "write": ("fs", "writeTextFile"),
    "terminal": ("terminal",),
    "forms": ("elicitation", "form"),
}


def lends(capability: str, run: ClientRun) -> bool:
    """Return whether a client has what a row is about; `no …` asks that it has not."""
    wanted = capability.removeprefix("no ")
    if wanted not in _LENT or not run.agents:
        return True
    value = run.can(*_LENT[wanted])
    has = value is not None and value is not False
    return has != capability.startswith("no ")


class _ClientCheck:
    """One check over all scenarios and versions."""

    def __init__(
        self,
        subject: ClientSubject,
        plan: CheckPlan,
        limits: CheckLimits,
        hellos: Mapping[int, Mapping[str, Any]],
        on_result: Callable[[RowResult, int], None],
        passes_for: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self._passes_for: Final = passes_for
        self._subject: Final = subject
        self._plan: Final = plan
        self._limits: Final = limits
        self._hellos: Final = hellos
        self._on_result: Final = on_result
        self._slots: Final = asyncio.Semaphore(max(plan.jobs, 1))
        self._errors: Final[list[str]] = []
        self._results: Final[dict[tuple[int, str], RowResult]] = {}
        self._is_stopped = False

    async def judge_all(self) -> CheckReport:
        pairs = [(row, version) for version in self._hellos for row in self._plan.rows if version in row.versions]
        groups: dict[tuple[int, str], list[Requirement]] = {}
        for row, version in pairs:
            groups.setdefault((version, row.scenario), []).append(row)
        async with asyncio.TaskGroup() as group:
            for (version, scenario), rows in self._plan.shuffled(groups.items()):
                group.create_task(self._judge_in_turn(scenario, version, rows, len(pairs)))
        ordered = [self._results[version, row.id] for row, version in pairs if (version, row.id) in self._results]
        return CheckReport(self._subject.name, self._hellos, tuple(ordered), harness_errors=tuple(self._errors))

    async def _judge_in_turn(self, scenario: str, version: int, rows: Sequence[Requirement], total: int) -> None:
        async with self._slots:
            if self._is_stopped:
                return
            started = time.monotonic()
            try:
                run = await played(self._subject, scenario, version, self._limits, self._passes_for.get(version))
            except Exception as error:  # a fault of ours must be no verdict on the client
                self._errors.append(f"scenario {scenario} in version {version}: {type(error).__name__}: {error}")
                return
            self._errors.extend(f"scenario {scenario}: {fault}" for agent in run.agents for fault in agent.faults)
            seconds = (time.monotonic() - started) / len(rows)
            for row in rows:
                self._conclude(row, run, seconds, total)

    def _conclude(self, row: Requirement, run: ClientRun, seconds: float, total: int) -> None:
        try:
            result = judged(row, run)._replace(seconds=seconds)
        except Exception as error:
            self._errors.append(f"{row.id} in version {run.version}: {type(error).__name__}: {error}")
            return
        self._results[run.version, row.id] = result
        if self._plan.fail_fast and result.verdict is Verdict.FAIL and row.tier in MUSTS:
            self._is_stopped = True
        self._on_result(result, total)
