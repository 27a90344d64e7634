"""Deliberate mistakes in `check`: what stands in a file, what is put in its place, and the tests that must turn red."""

from typing import NamedTuple

AGENT = "tests/conformance/test_rows_are_proven.py"
CLIENT = "tests/conformance/clients"
SERVER = "tests/conformance/servers"
REPORTS = "tests/conformance/test_reports.py"
SCORING = "tests/conformance/test_scoring.py"
COMMAND = "tests/cli/test_check.py"


class Mutant(NamedTuple):
    """One mistake in a file of `src/dragoman/conformance`."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant(
        "a failed row passes",
        "run.py",
        "return found._replace(verdict=Verdict.FAIL, reason=failed.reason, frames=frames)",
        "return found",
        AGENT,
    ),
    Mutant(
        "an unjudged must is green",
        "run.py",
        'return self.row.tier == "must" and self.verdict is not Verdict.PASS and not self.is_unadvertised',
        "return False",
        COMMAND,
    ),
    Mutant(
        "every row applies to nothing",
        "run.py",
        "    _expect_applicable(row, trial)\n",
        "    raise NotTested('')\n",
        AGENT,
    ),
    Mutant(
        "a wall is a verdict",
        "run.py",
        "return not (self.obstacle or self.harness_errors or is_walled)",
        "return True",
        COMMAND,
    ),
    Mutant("a failure that was expected and does not come is ignored", "run.py", " and not self.stale", "", SCORING),
    Mutant(
        "ids are compared without their type",
        "connection.py",
        "return type(id).__name__, id if isinstance(id, str | int | float | None) else repr(id)",
        'return "", str(id)',
        AGENT,
    ),
    Mutant(
        "what is no JSON is read over",
        "connection.py",
        'self.noise.append(self.recording.add(now, self.role, data, fault="not JSON"))',
        "pass",
        AGENT,
    ),
    Mutant(
        "nothing is waited for",
        "connection.py",
        "            await asyncio.sleep(self._limits.quiet)",
        "            await asyncio.sleep(0)",
        AGENT,
    ),
    Mutant(
        "every value is as the schema says",
        "schema.py",
        "    data = msgspec.json.encode(value)\n",
        '    return ""\n',
        AGENT,
    ),
    Mutant("processes are not counted", "subject.py", "    return left\n", "    return 0\n", AGENT),
    Mutant(
        "a question is allowed where it is to be rejected",
        "dialogue.py",
        'return choose_kind(message, "reject_once", "reject_always")',
        'return choose_kind(message, "allow_once", "reject_always")',
        AGENT,
    ),
    Mutant(
        "a cancel is not sent",
        "dialogue.py",
        'self.connection.notify("session/cancel", {"sessionId": session, **more})',
        "pass",
        AGENT,
    ),
    Mutant(
        "a session without history counts as loaded",
        "probes/history.py",
        "if not any(one in OF_USER for one in kinds) or not any(one in OF_AGENT for one in kinds):",
        "if False:",
        AGENT,
    ),
    Mutant("a history that grows is the same", "probes/durability.py", "if found[0] != found[1]:", "if False:", AGENT),
    Mutant("younger rows count", "scoring.py", "else ADDED_LATER", 'else ""', SCORING),
    Mutant(
        "stale failures are not found", "scoring.py", "return bool(about) and all(", "return False and all(", SCORING
    ),
    Mutant(
        "what a recording breaks is only seen",
        "passive.py",
        "            self.note(id, frame, reason)",
        "            self.sees(id)",
        "tests/conformance/test_passive_rows.py",
    ),
    Mutant(
        "a failed row of a client passes",
        "clients/run.py",
        "return found._replace(verdict=Verdict.FAIL, reason=failed.reason, frames=frames)",
        "return found",
        CLIENT,
    ),
    Mutant(
        "a client that left is alive",
        "clients/runs.py",
        "if agent.connection.is_lost and agent.lost_in_turn:",
        "if False:",
        CLIENT,
    ),
    Mutant(
        "a client lends what it does not",
        "clients/run.py",
        '    return has != capability.startswith("no ")',
        "    return True",
        CLIENT + "/test_run.py",
    ),
    Mutant(
        "the user never stops a turn", "clients/trial.py", "self.was_interrupted = running.interrupt()", "pass", CLIENT
    ),
    Mutant(
        "every status is right", "servers/probes.py", "    if reply.status not in statuses:", "    if False:", SERVER
    ),
    Mutant(
        "requests without a token have one",
        "servers/trial.py",
        "door = self.subject.door(with_token=with_token)",
        "door = self.subject.door(with_token=True)",
        SERVER,
    ),
    Mutant(
        "what a subject sent is markup",
        "reports/html_page.py",
        "    return escape(harmless_line(text))",
        "    return text",
        REPORTS,
    ),
    Mutant(
        "JUnit hides failures",
        "exports.py",
        "    if result.counts(strict=strict):\n        element",
        "    if False:\n        element",
        REPORTS,
    ),
)
