"""The report is one file, and what an agent wrote is text in it."""

from html.parser import HTMLParser

from evals.report import report
from evals.results import Attempt
from evals.transcript import Entry

HOSTILE = "<script src='https://evil.example/x.js'></script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """Collects tags and what they refer to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def hostile(**facts: object) -> Attempt:
    attempt = Attempt(HOSTILE, "d", HOSTILE, "text", 1, HOSTILE, HOSTILE, "fail", **facts)  # type: ignore[arg-type]
    attempt.reason = attempt.answer = attempt.diff = HOSTILE
    attempt.transcript = [Entry("tool", HOSTILE, HOSTILE, HOSTILE)]
    return attempt


def test_nothing_that_an_agent_wrote_is_markup() -> None:
    found = Tags(report([hostile()]))
    assert found.links == []
    assert found.tags & {"script", "img", "link", "iframe", "a"} == set()


def test_the_page_may_load_nothing() -> None:
    assert "default-src 'none'" in report([hostile()])


def test_each_attempt_has_its_answer_its_changes_and_its_transcript() -> None:
    one = Attempt("t", "d", "bug", "text", 2, "dragoman", "m", "pass", answer="forty-two", diff="+new\n-old\n same")
    one.transcript = [Entry("tool", "Write a file", "{}", "completed")]
    page = report([one])
    for words in ("forty-two", '<span class="add">+new</span>', "Write a file", "tool (completed)", "t</strong> #2"):
        assert words in page


def test_failures_come_first() -> None:
    names = [("a", "pass"), ("b", "fail")]
    page = report([Attempt(name, "d", "bug", "text", 1, "x", "m", verdict) for name, verdict in names])  # type: ignore[arg-type]
    assert page.index("<strong>b</strong>") < page.index("<strong>a</strong>")


def test_a_run_without_confinement_says_so() -> None:
    assert "the agent could find the graders" in report([hostile(isolated=False)])
    assert "the agent could find the graders" not in report([hostile()])
