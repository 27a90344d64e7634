"""The pages of the matrix are made from its data, and show what was found and nothing else."""

import json
from typing import Any

import pytest

from tests.support.needs import ROOT
from tools.matrix.__main__ import CORE, DATA, HTML, MARKDOWN
from tools.matrix.pages import counts, html_page, markdown_page

FAILED = {
    "verdict": "fail",
    "tier": "must",
    "reason": "it <said> no|thing",
    "sentence": "A prompt is answered.",
    "frames": ['check: {"id":1}', "agent: ```"],
}
PEER: dict[str, Any] = {
    "name": "an agent",
    "version": "1.2.3",
    "kind": "agent",
    "date": "2026-01-02",
    "asked": "core",
    "obstacle": "",
    "seconds": 7,
    "rows": {
        "ACP-INIT-001@1": {"verdict": "pass", "tier": "must"},
        "ACP-PROMPT-001@1": FAILED,
        "ACP-CANCEL-001@1": {**FAILED, "tier": "should"},
        "ACP-LIST-001@2": {"verdict": "not tested", "tier": "must"},
    },
    "through": {"trace record": "ok", "bridge, editor of version 1": "ok", "bridge, editor of version 2": "no <end>"},
}
BLOCKED = {**PEER, "name": "another", "kind": "client", "obstacle": "it wants a login", "rows": {}}
BLOCKED.pop("through")


def test_rows_are_counted_by_their_verdict_and_whether_they_must_hold() -> None:
    assert counts(PEER) == {"pass": 1, "fail": 2, "not tested": 1, "blocked": 0, "broken": 1}


def test_the_page_has_a_line_for_each_peer_and_the_frames_of_what_fails() -> None:
    page = markdown_page([PEER, BLOCKED])
    assert "| an agent | 1.2.3 | 2026-01-02 | core | 1 | 1 | 1 | 1 | 0 | 7 |" in page
    assert "| another | 1.2.3 | 2026-01-02 | core | it wants a login |" in page
    assert "| an agent | ok | ok | no &lt;end> |" in page
    assert "**ACP-PROMPT-001** (version 1): A prompt is answered. *it &lt;said> no\\|thing*" in page
    assert "agent: '''" in page  # nothing in a frame ends its block
    assert "ACP-CANCEL-001" not in page  # what only should hold is in the other page


def test_the_html_page_has_every_row_against_every_peer_and_nothing_that_runs() -> None:
    page = html_page([PEER, BLOCKED])
    assert page.count("<tr><th>ACP-") == 4
    assert "it &lt;said&gt; no|thing" in page
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_the_pages_in_the_documentation_are_made_from_the_data_beside_them() -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    assert MARKDOWN.read_text(encoding="utf-8") == markdown_page(data)
    assert HTML.read_text(encoding="utf-8") == html_page(data)
    assert str(ROOT) not in DATA.read_text(encoding="utf-8")


def test_the_choice_of_rows_names_rows_that_there_are() -> None:
    from dragoman.conformance.rows import load_rows

    assert set(CORE) <= {row.id for row in load_rows("agent")}


@pytest.mark.parametrize("kind", ["agent", "client"])
def test_so_many_real_programs_were_judged(kind: str) -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    others = [peer for peer in data if peer["kind"] == kind and "dragoman" not in peer["name"]]
    judged = [peer["name"] for peer in others if counts(peer)["pass"] >= 10 and not counts(peer)["blocked"]]
    assert len(judged) >= {"agent": 10, "client": 4}[kind]
