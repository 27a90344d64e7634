"""Where the user writes, on a terminal that can do nothing but print."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from dragoman.cli.terminal.composer import CompletionWord, Composer

pytestmark = pytest.mark.anyio


class Recorder(DummyOutput):
    """Notes what is printed."""

    def __init__(self, noted: list[str]) -> None:
        self._noted = noted

    def write(self, data: str) -> None:
        self._noted.append(data)


async def test_keys_are_ours_before_the_prompt_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    noted: list[str] = []
    with create_pipe_input() as keys, create_app_session(input=keys, output=Recorder(noted)):
        real = keys.raw_mode

        @contextmanager
        def raw_mode() -> Iterator[None]:
            noted.append("raw")
            with real():
                yield
            noted.append("as before")

        monkeypatch.setattr(keys, "raw_mode", raw_mode)
        composer = Composer(tmp_path / "history", str(tmp_path), list, lambda order: [], lambda: "", lambda: None)
        keys.send_text("hi\r")
        assert await composer.read() == "hi"
    assert noted[:2] == ["raw", "> "]
    assert noted[-1] == "as before"


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        composer = Composer(tmp_path / "history", str(tmp_path), list, lambda order: [], lambda: "", lambda: None)
        keys.send_bytes(b"caf\xe9\r")
        assert await composer.read() == "caf\ufffd"


def test_words_of_the_agent_are_completed_behind_an_at_beside_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / "docs.md").touch()
    words = [CompletionWord("@docs:a://guide", "Guide"), CompletionWord("@docs:a://page/{n}", "Page")]
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        composer = Composer(
            tmp_path / "history", str(tmp_path), list, lambda order: [], lambda: "", lambda: None, lambda: words
        )
    completer = composer._session.completer
    assert completer is not None
    found = completer.get_completions(Document("@docs"), CompleteEvent())
    assert [one.text for one in found] == ["@docs.md", "@docs:a://guide", "@docs:a://page/"]
