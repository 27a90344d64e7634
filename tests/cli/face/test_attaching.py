"""`@path` in a prompt."""

import base64
from pathlib import Path

from dragoman.cli.face.attaching import EMBEDDED_BYTES, attached
from dragoman.cli.face.composer import paths
from dragoman.vocabulary.content import Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.hello import AgentCapabilities

ABLE = AgentCapabilities(embedded_context=True, image=True)


def test_pictures_text_and_the_rest_go_as_the_agent_takes_them(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    (tmp_path / "b.txt").write_text("text")
    (tmp_path / "long.txt").write_text("x" * (EMBEDDED_BYTES + 1))
    (tmp_path / "folder").mkdir()
    words = "@a.png @b.txt @long.txt @folder @b.txt"
    uri = {name: (tmp_path / name).as_uri() for name in ("a.png", "b.txt", "long.txt", "folder")}
    assert attached(words, str(tmp_path), ABLE).blocks == [
        Text(words),
        Image(base64.b64encode(b"png").decode(), "image/png", uri["a.png"]),
        Resource(TextResource("text", uri["b.txt"])),
        ResourceLink("long.txt", uri["long.txt"]),
        ResourceLink("folder", uri["folder"]),
    ]
    unable = attached(words, str(tmp_path), AgentCapabilities()).blocks
    assert [type(block) for block in unable] == [Text, *[ResourceLink] * 4]


def test_words_that_are_no_files_stay_words(tmp_path: Path) -> None:
    words = "mail me@example.com, use @property and @\0 or @ or @../nothing.py."
    found = attached(words, str(tmp_path), ABLE)
    assert found.blocks == [Text(words)]
    assert found.missing == ["../nothing.py."]


def test_paths_are_completed_as_they_are_written(tmp_path: Path) -> None:
    for name in ("one.txt", "only", ".hidden", "bad\nname"):
        (tmp_path / name).touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "deep").touch()
    assert paths("o", str(tmp_path)) == ["one.txt", "only", "other/"]
    assert paths("", str(tmp_path)) == ["one.txt", "only", "other/"]
    assert paths(".", str(tmp_path)) == [".hidden"]
    assert paths("other/", str(tmp_path)) == ["other/deep"]
    assert paths("no/such/", str(tmp_path)) == []
