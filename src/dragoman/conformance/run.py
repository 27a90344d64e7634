"""Judge a subject by rows: which versions it speaks, then each row with connections of its own, several at a time."""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from dragoman.conformance import schema
from dragoman.conformance.frames import Frame
from dragoman.conformance.probes import PROBES
from dragoman.conformance.rows import Requirement
from dragoman.conformance.subject import Subject
from dragoman.conformance.trial import CheckSettings, Trial
from dragoman.conformance.verdicts import CheckStopped, NotTested, RowBlocked, RowFailed, Verdict
from dragoman.errors import DragomanError

T = TypeVar("T")
# A probe has several waits, each with a bound; this bounds their sum, and what hangs in us.
_PROBE_SECONDS: Final = 300.0
_SHOWN_FRAMES: Final = 6
# Of a row's whole exchange, at its start and at its end.
_EXCHANGE_FRAMES: Final = 20
MUSTS: Final = ("must", "must-if-advertised")


class RowResult(NamedTuple):
    """What was found out about one row in one version. `frames` show a failure, the last one being the newest."""

    row: Requirement
    version: int
    verdict: Verdict
    reason: str = ""
    next_step: str = ""
    frames: tuple[Frame, ...] = ()
    seconds: float = 0.0
    # Frames that `check` itself sent against the schema, without meaning to.
    own_faults: tuple[Frame, ...] = ()
    is_unadvertised: bool = False
    # All frames of the row, the middle of many left out: for reports that show them under it.
    exchange: tuple[Frame, ...] = ()
    # Why the row does not count for the revision that is asked for; empty if it does.
    not_scored: str = ""
    # The user has said that it fails.
    is_expected: bool = False

    def counts(self, *, strict: bool = False) -> bool:
        """Return whether the subject does not conform because of this: a broken must, or one that was not judged."""
        if self.not_scored or self.is_expected:
            return False
        if self.verdict is Verdict.FAIL:
            return self.row.tier in MUSTS or (strict and self.row.tier == "should")
        return self.row.tier == "must" and self.verdict is not Verdict.PASS and not self.is_unadvertised


class CheckReport(NamedTuple):
    """What was found out about a subject. `hellos` has its answer to `initialize` for each version that it speaks."""

    subject: str
    hellos: Mapping[int, Mapping[str, Any]]
    results: tuple[RowResult, ...]
    # Why nothing could be tested; empty if something was.
    obstacle: str = ""
    # Faults of ours that are no verdict: rows whose probe failed by itself.
    harness_errors: tuple[str, ...] = ()
    # Failures that were expected, and did not come.
    stale: tuple[str, ...] = ()

    def failures(self, *, strict: bool = False) -> list[RowResult]:
        """Return the rows that make a subject not conform: musts that failed, or could not be judged."""
        return [one for one in self.results if one.counts(strict=strict)]

    def conforms(self, *, strict: bool = False) -> bool:
        """Return whether no must is broken or unjudged; `strict` takes a broken should as a broken must."""
        return not self.failures(strict=strict) and not self.stale

    def could_test(self) -> bool:
        """Return whether this is a verdict: false if nothing could be asked, a wall stood before musts, or we failed.

        A must that is broken is a verdict, whatever could not be tested beside it.
        """
        musts = [one for one in self.results if one.row.tier in MUSTS and not one.not_scored and not one.is_expected]
        if any(one.verdict is Verdict.FAIL for one in musts):
            return True
        is_walled = any(one.verdict is Verdict.BLOCKED for one in musts)
        return not (self.obstacle or self.harness_errors or is_walled)


class CheckPlan(NamedTuple):
    """What is judged: rows, versions (all that the subject speaks, if none is named), and how many rows at a time.

    A seed shuffles the order in which rows are judged; the report has the order of the rows in any case.
    """

    rows: Sequence[Requirement]
    versions: Sequence[int] = ()
    jobs: int = 4
    fail_fast: bool = False
    seed: int | None = None

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return items in the order in which they are to be judged."""
        found = list(items)
        if self.seed is not None:
            random.Random(self.seed).shuffle(found)
        return found


async def check(
    subject: Subject,
    plan: CheckPlan,
    settings: CheckSettings,
    on_result: Callable[[RowResult, int], None] = lambda result, total: None,
) -> CheckReport:
    """Judge a subject; `on_result` is called with each result and the number of all rows. Raises nothing of its own."""
    hellos: dict[int, Mapping[str, Any]] = {}
    obstacles: list[str] = []
    for version in plan.versions or schema.VERSIONS:
        hello = await _greet(subject, version, settings)
        if isinstance(hello, str):
            obstacles.append(hello)
        else:
            hellos[version] = hello
    if not hellos:
        return CheckReport(subject.name, {}, (), obstacle=obstacles[0])
    run = _Run(subject, plan, settings, hellos, on_result)
    return await run.judge_all()


async def _greet(subject: Subject, version: int, settings: CheckSettings) -> Mapping[str, Any] | str:
    """Return the answer to `initialize` in a version, or why there is none."""
    trial = Trial(subject, version, settings, {})
    try:
        return await (await trial.connect()).initialize()
    except CheckStopped as stopped:
        return f"{stopped.reason}{f'; {stopped.next_step}' if stopped.next_step else ''}"
    except DragomanError as error:
        return str(error)
    finally:
        await trial.close()


class _Run:
    """One run over all rows and versions."""

    def __init__(
        self,
        subject: Subject,
        plan: CheckPlan,
        settings: CheckSettings,
        hellos: Mapping[int, Mapping[str, Any]],
        on_result: Callable[[RowResult, int], None],
    ) -> None:
        self._subject = subject
        self._plan = plan
        self._settings = settings
        self._hellos = hellos
        self._on_result = on_result
        self._slots = asyncio.Semaphore(max(plan.jobs, 1))
        self._errors: list[str] = []
        self._is_stopped = False

    async def judge_all(self) -> CheckReport:
        pairs = [(row, version) for version in self._hellos for row in self._plan.rows if version in row.versions]
        async with asyncio.TaskGroup() as group:
            tasks = {
                pair: group.create_task(self._judge_in_turn(*pair, len(pairs))) for pair in self._plan.shuffled(pairs)
            }
        results = tuple(result for pair in pairs if (result := tasks[pair].result()) is not None)
        return CheckReport(self._subject.name, self._hellos, results, harness_errors=tuple(self._errors))

    async def _judge_in_turn(self, row: Requirement, version: int, total: int) -> RowResult | None:
        async with self._slots:
            if self._is_stopped:
                return None
            result = await self._judge(row, version)
            if result is None:
                return None
            if self._plan.fail_fast and result.verdict is Verdict.FAIL and row.tier in MUSTS:
                self._is_stopped = True
            self._on_result(result, total)
            return result

    async def _judge(self, row: Requirement, version: int) -> RowResult | None:
        """Judge one row; None if our own code failed, which is told apart."""
        try:
            return await judge_row(self._subject, row, version, self._settings, self._hellos[version])
        except Exception as error:  # a fault of ours must be no verdict on the subject
            self._errors.append(f"{row.id} in version {version}: {type(error).__name__}: {error}")
            return None


async def judge_row(
    subject: Subject, row: Requirement, version: int, settings: CheckSettings, hello: Mapping[str, Any]
) -> RowResult:
    """Judge one row in one version. `hello` is what the subject answered to `initialize`."""
    started = time.monotonic()
    trial = Trial(subject, version, settings, hello)
    try:
        result = await _verdict(row, trial)
    finally:
        await trial.close()
    own = tuple(fault for one in trial.dialogues for fault in one.connection.recording.faults("check"))
    seconds = time.monotonic() - started
    return result._replace(seconds=seconds, own_faults=own, exchange=shown_exchange(trial.frames()))


def shown_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames that show a failure where its probe has named none: the last ones."""
    return tuple(frames[-_SHOWN_FRAMES:])


def shown_exchange(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of a row for a report, without the middle of many."""
    if len(frames) <= 2 * _EXCHANGE_FRAMES:
        return tuple(frames)
    return (*frames[:_EXCHANGE_FRAMES], *frames[-_EXCHANGE_FRAMES:])


async def _verdict(row: Requirement, trial: Trial) -> RowResult:
    found = RowResult(row, trial.version, Verdict.PASS)
    try:
        _expect_applicable(row, trial)
        async with asyncio.timeout(_PROBE_SECONDS):
            await PROBES[row.id](trial)
    except RowFailed as failed:
        frames = failed.frames or shown_frames(trial.frames())
        return found._replace(verdict=Verdict.FAIL, reason=failed.reason, frames=frames)
    except NotTested as missing:
        found = found._replace(verdict=Verdict.NOT_TESTED, reason=missing.reason, next_step=missing.next_step)
        return found._replace(is_unadvertised=missing.is_unadvertised)
    except RowBlocked as blocked:
        return found._replace(verdict=Verdict.BLOCKED, reason=blocked.reason, next_step=blocked.next_step)
    except TimeoutError:
        return found._replace(verdict=Verdict.FAIL, reason=f"no end within {_PROBE_SECONDS:g} s")
    except DragomanError as error:  # it could be started before, and now it cannot
        step = "start the agent by hand and see why"
        return found._replace(verdict=Verdict.BLOCKED, reason=str(error), next_step=step)
    return found


def _expect_applicable(row: Requirement, trial: Trial) -> None:
    """Raise `NotTested` for a row that is not about this subject: another transport, or not advertised."""
    if trial.subject.kind not in row.transports:
        raise NotTested(f"not over {trial.subject.kind}", "check the agent's command as well", is_unadvertised=True)
    if not trial.advertises(row.capability):
        raise NotTested(f"the agent does not advertise {row.capability!r}", is_unadvertised=True)
