"""Judge a server by rows: which versions it serves, then each row with connections of its own."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.conformance import schema
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.frames import Frame
from dragoman.conformance.rows import Requirement
from dragoman.conformance.run import MUSTS, CheckPlan, CheckReport, RowResult, shown_exchange, shown_frames
from dragoman.conformance.servers.all_probes import SERVER_PROBES
from dragoman.conformance.servers.doors import ServerReply, ServerSubject
from dragoman.conformance.servers.trial import CONNECTION, JSON, ServerSettings, ServerTrial
from dragoman.conformance.verdicts import CheckStopped, NotTested, RowBlocked, RowFailed, Verdict

_PROBE_SECONDS: Final = 300.0


async def check_server(
    subject: ServerSubject,
    plan: CheckPlan,
    settings: ServerSettings,
    on_result: Callable[[RowResult, int], None] = lambda result, total: None,
) -> CheckReport:
    """Judge a server; `on_result` is called with each result and the number of all rows."""
    hellos: dict[int, Mapping[str, Any]] = {}
    obstacles: list[str] = []
    for version in plan.versions or schema.VERSIONS:
        found = await _greet(ServerTrial(subject, version, settings))
        if isinstance(found, str):
            obstacles.append(found)
        else:
            hellos[version] = found
    if not hellos:
        return CheckReport(subject.name, {}, (), obstacle=obstacles[0])
    return await _ServerCheck(subject, plan, settings, hellos, on_result).judge_all()


async def _greet(trial: ServerTrial) -> Mapping[str, Any] | str:
    """Return the answer to `initialize` over HTTP, or over a WebSocket; or why there is none."""
    try:
        reply = await trial.request(trial.door(), "POST", JSON, trial.initialize())
        if reply.status == 200 and reply.headers.get(CONNECTION):
            return trial.hello_in(json.loads(reply.body))
        if reply.status in (401, 403):
            return f"the server answers {reply.status}; give a token: --token-file F, or DRAGOMAN_TOKEN"
        return await _greet_on_socket(trial, reply)
    except CheckStopped as stopped:
        return f"{stopped.reason}{f'; {stopped.next_step}' if stopped.next_step else ''}"
    except ValueError:
        return "the answer to initialize is no JSON"
    finally:
        await trial.close()


async def _greet_on_socket(trial: ServerTrial, reply: ServerReply) -> Mapping[str, Any] | str:
    """Greet a server that serves WebSockets only; the rows about HTTP then say what it lacks."""
    try:
        return await (await trial.socket()).greet()
    except CheckStopped as stopped:
        return f"initialize over HTTP has status {reply.status}, and {stopped.reason}"


async def judge_server_row(
    subject: ServerSubject, row: Requirement, version: int, settings: ServerSettings
) -> RowResult:
    """Judge one row in one version."""
    started = time.monotonic()
    trial = ServerTrial(subject, version, settings)
    try:
        result = await _verdict(row, trial)
    finally:
        await trial.close()
    seconds = time.monotonic() - started
    return result._replace(seconds=seconds, exchange=shown_exchange(trial.recording.frames))


async def _verdict(row: Requirement, trial: ServerTrial) -> RowResult:
    found = RowResult(row, trial.version, Verdict.PASS)
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await SERVER_PROBES[row.id](trial)
    except RowFailed as failed:
        frames = failed.frames or shown_frames(trial.recording.frames)
        return found._replace(verdict=Verdict.FAIL, reason=failed.reason, frames=frames)
    except NotTested as missing:
        found = found._replace(verdict=Verdict.NOT_TESTED, reason=missing.reason, next_step=missing.next_step)
        return found._replace(is_unadvertised=missing.is_unadvertised)
    except RowBlocked as blocked:
        return found._replace(verdict=Verdict.BLOCKED, reason=blocked.reason, next_step=blocked.next_step)
    except (OSError, TimeoutError) as error:
        reason = str(error) or "no answer in time"
        return found._replace(verdict=Verdict.FAIL, reason=reason, frames=shown_frames(trial.recording.frames))
    return found


async def frames_of_row(subject: ServerSubject, row: Requirement, version: int, limits: CheckLimits) -> list[Frame]:
    """Return what is sent and received for a row."""
    settings = ServerSettings(prompt="hello", quiet=limits.quiet, oversized=8 * 1024 * 1024)
    trial = ServerTrial(subject, version, settings)
    try:
        await SERVER_PROBES[row.id](trial)
    finally:
        await trial.close()
    return trial.recording.frames


class _ServerCheck:
    """One check over all rows and versions."""

    def __init__(
        self,
        subject: ServerSubject,
        plan: CheckPlan,
        settings: ServerSettings,
        hellos: Mapping[int, Mapping[str, Any]],
        on_result: Callable[[RowResult, int], None],
    ) -> None:
        self._subject: Final = subject
        self._plan: Final = plan
        self._settings: Final = settings
        self._hellos: Final = hellos
        self._on_result: Final = on_result
        self._slots: Final = asyncio.Semaphore(max(plan.jobs, 1))
        self._errors: Final[list[str]] = []
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
            try:
                result = await judge_server_row(self._subject, row, version, self._settings)
            except Exception as error:  # a fault of ours must be no verdict on the server
                self._errors.append(f"{row.id} in version {version}: {type(error).__name__}: {error}")
                return None
            if self._plan.fail_fast and result.verdict is Verdict.FAIL and row.tier in MUSTS:
                self._is_stopped = True
            self._on_result(result, total)
            return result
