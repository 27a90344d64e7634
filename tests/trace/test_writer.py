"""Writing a trace: for its owner alone, bounded, and whole whatever happens around it."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.trace.reader import read_trace
from dragoman.trace.records import KEPT_FRAME_BYTES, TO_AGENT, TO_CLIENT
from dragoman.trace.writer import TraceWriter
from tests.support.traces import frames_of, lines_of


def test_the_file_is_for_its_owner_alone_and_is_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "t"
    for count in (1, 2):
        TraceWriter(str(file)).connect().frame(TO_AGENT, b"{}")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        header, *frames = lines_of(file)
        assert (header["frames"], header["connections"], len(frames)) == (count, count, count)
    assert [one["connection"] for one in frames_of(file)] == [1, 2]


def test_a_file_that_holds_something_else_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_text("my novel\n")
    with pytest.raises(UsageError, match="is no trace"):
        TraceWriter(str(file))
    assert file.read_text() == "my novel\n"


def test_a_trace_of_a_former_release_is_moved_out_of_the_way(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_text('{"time":1.5,"direction":"in","frame":{}}\n')
    TraceWriter(str(file)).connect().frame(TO_AGENT, b"{}")
    assert len(frames_of(file)) == 1
    assert (tmp_path / "t.1").read_text().startswith('{"time":1.5')


@pytest.mark.requirement("TR7")
def test_a_full_file_becomes_an_older_one_and_the_oldest_is_counted_as_dropped(tmp_path: Path) -> None:
    file = tmp_path / "t"
    connection = TraceWriter(str(file), max_bytes=20_000, older_files=2).connect()
    for number in range(100):
        connection.frame(TO_CLIENT, json.dumps({"number": number, "text": "x" * 900}).encode())
    parts = [file, tmp_path / "t.1", tmp_path / "t.2"]
    assert sorted(tmp_path.iterdir()) == sorted(parts)
    assert max(part.stat().st_size for part in parts) <= 20_000
    kept = [json.loads(one["frame"])["number"] for part in reversed(parts) for one in frames_of(part)]
    assert kept == list(range(100 - len(kept), 100))
    header = read_trace(str(file)).header
    assert (header.dropped, header.continued) == (100 - len(kept), True)


def test_several_writers_of_one_file_lose_no_frame_and_mix_no_line(tmp_path: Path) -> None:
    file = tmp_path / "t"

    def write(number: int) -> None:
        connection = TraceWriter(str(file), max_bytes=40_000, older_files=50).connect()
        for count in range(100):
            connection.frame(TO_AGENT, json.dumps([number, count, "x" * 500]).encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = [tuple(json.loads(one["frame"])[:2]) for part in tmp_path.iterdir() for one in frames_of(part)]
    assert sorted(found) == [(number, count) for number in range(4) for count in range(100)]


def test_a_deleted_trace_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "t"
    connection = TraceWriter(str(file)).connect()
    file.unlink()
    connection.frame(TO_AGENT, b"{}")
    assert lines_of(file)[0]["frames"] == 1


@pytest.mark.parametrize("frame", [b"\xff\xfe", b"{", b"[" * 100_000, b'"\\ud800"', b""])
def test_a_frame_that_is_no_json_is_written_as_text(frame: bytes, tmp_path: Path) -> None:
    TraceWriter(str(tmp_path / "t")).connect().frame(TO_AGENT, frame)
    (line,) = frames_of(tmp_path / "t")
    assert isinstance(line["frame"], str)


def test_bytes_that_are_no_text_survive_where_nothing_is_redacted(tmp_path: Path) -> None:
    TraceWriter(str(tmp_path / "t"), redacts=False).connect().frame(TO_AGENT, b"\xff\xfe")
    (frame,) = read_trace(str(tmp_path / "t")).frames()
    assert frame.data == b"\xff\xfe"


def test_of_a_very_long_frame_the_beginning_is_written_and_its_size(tmp_path: Path) -> None:
    frame = json.dumps("é" * KEPT_FRAME_BYTES, ensure_ascii=False).encode()
    TraceWriter(str(tmp_path / "t")).connect().frame(TO_AGENT, frame)
    (found,) = read_trace(str(tmp_path / "t")).frames()
    assert (len(found.data), found.cut) == (KEPT_FRAME_BYTES - 1, len(frame))


def test_words_of_a_command_are_written_without_their_secrets(tmp_path: Path) -> None:
    connection = TraceWriter(str(tmp_path / "t")).connect()
    connection.note("process", event="started", command=["agent", "--api-key", "hunter2"], url="http://me:hunter2@h/")
    assert "hunter2" not in (tmp_path / "t").read_text()
