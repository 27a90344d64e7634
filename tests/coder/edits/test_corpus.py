"""The edit corpus: no wrong edit, and nearly all that can be made are made."""

from collections import Counter

from bench.edits.__main__ import our_result
from bench.edits.corpus import cases, digest, grade


def test_no_edit_of_the_corpus_is_made_wrongly() -> None:
    corpus = cases()
    grades = Counter(grade(case, our_result(case)) for case in corpus)
    assert len(corpus) >= 500
    assert grades == {"success": 1383, "rightly refused": 295, "refused": 10}


def test_the_corpus_is_the_same_every_time() -> None:
    assert digest(cases()) == digest(cases())
