import pytest

from tests.support.needs import need


def test_a_program_that_is_there_is_found() -> None:
    assert need("sh").endswith("/sh")


def test_a_missing_program_skips_the_test_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="this test needs the program no-such-program"):
        need("no-such-program")


def test_a_missing_program_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="this test needs the program no-such-program"):
        need("no-such-program")
