"""What a test run says about its failures: pytest with short tracebacks, and unittest."""

import re
from typing import Final, NamedTuple

_PYTEST_HEAD: Final = re.compile(r"^_{3,} (?P<name>.+?) _{3,}$", re.MULTILINE)
_PYTEST_END: Final = re.compile(r"^={3,} .+ ={3,}$", re.MULTILINE)
_PYTEST_FRAME: Final = re.compile(r"^(?P<file>\S[^\n]*?):(?P<line>\d+): (?:in (?P<function>\S+))?", re.MULTILINE)
_PYTEST_ERROR: Final = re.compile(r"^E {3}(.*)$", re.MULTILINE)
_UNITTEST_HEAD: Final = re.compile(r"^={70}\n(?:FAIL|ERROR): (?P<name>\S+)[^\n]*\n(?:[^\n]*\n)?-{70}\n", re.MULTILINE)
_UNITTEST_END: Final = re.compile(r"^-{70}\nRan \d+ tests?", re.MULTILINE)
_FRAME: Final = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>\S+)', re.MULTILINE)
_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$", re.MULTILINE)
_COUNTS: Final = r"(?:\d+ (?:failed|passed|errors?|skipped|xfailed|xpassed|deselected|warnings?)(?:, )?)+ in [\d.]+s"
_SUMMARY: Final = re.compile(rf"^(?:=+ )?({_COUNTS})\b.*$|^(Ran \d+ tests? in [\d.]+s)$", re.MULTILINE)
_NOTHING_RAN: Final = re.compile(
    r"^(?:=+ )?(?:no tests ran|\d+ deselected) in|^Ran 0 tests|^NO TESTS RAN", re.MULTILINE
)


class Frame(NamedTuple):
    """A line that was being run."""

    file: str
    line: int
    function: str


class FailedTest(NamedTuple):
    """A test that did not pass. `error` is what was said about it, in its own lines."""

    test: str
    frames: tuple[Frame, ...]
    error: str

    @property
    def name(self) -> str:
        """The test's own name."""
        return re.sub(r"\[.*\]$", "", self.test).rpartition(".")[2]

    @property
    def first_line(self) -> str:
        """The error in one line."""
        lines = self.error.split("\n")
        return lines[-1] if lines[0].startswith('File "') else lines[0]

    @property
    def own_frames(self) -> list[Frame]:
        """The frames in the project, without those of Python and of libraries."""
        return [each for each in self.frames if not re.search(r"site-packages|/lib/python|^<", each.file)]


def failures(output: str) -> list[FailedTest]:
    """The tests that failed, in the order in which they are told."""
    return _by_pytest(output) or _by_unittest(output)


def summary(output: str) -> str:
    """The line that sums up a run; empty if there is none."""
    found = [match[1] or match[2] for match in _SUMMARY.finditer(output)]
    return found[-1] if found else ""


def nothing_ran(output: str) -> bool:
    """Whether no test was found."""
    return _NOTHING_RAN.search(output) is not None


def _by_pytest(output: str) -> list[FailedTest]:
    heads = list(_PYTEST_HEAD.finditer(output))
    ends = [match.start() for match in _PYTEST_END.finditer(output)]
    found = []
    for number, head in enumerate(heads):
        stop = heads[number + 1].start() if number + 1 < len(heads) else len(output)
        stop = min([stop, *(end for end in ends if end > head.end())])
        body = output[head.end() : stop]
        frames = tuple(Frame(f["file"], int(f["line"]), f["function"] or "") for f in _PYTEST_FRAME.finditer(body))
        found.append(FailedTest(head["name"], frames, "\n".join(_PYTEST_ERROR.findall(body)).strip()))
    return found


def _by_unittest(output: str) -> list[FailedTest]:
    heads = list(_UNITTEST_HEAD.finditer(output))
    ending = _UNITTEST_END.search(output)
    found = []
    for number, head in enumerate(heads):
        last = ending.start() if ending else len(output)
        body = output[head.end() : heads[number + 1].start() if number + 1 < len(heads) else last]
        frames = tuple(Frame(f["file"], int(f["line"]), f["function"]) for f in _FRAME.finditer(body))
        errors = list(_ERROR.finditer(body))
        error = body[errors[-1].start() :] if errors else body
        # The words of an assertion that go on below it are kept; they begin where the last traceback ends.
        tracebacks = list(_FRAME.finditer(body))
        if tracebacks:
            behind = _ERROR.search(body, tracebacks[-1].end())
            error = body[behind.start() :] if behind else error
        found.append(FailedTest(head["name"], frames, error.strip()))
    return found
