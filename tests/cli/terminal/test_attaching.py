"""`@path` in a prompt."""

import base64
from pathlib import Path

from dragoman.cli.terminal.attachments import EMBEDDED_BYTES, prompt_with_files
from dragoman.cli.terminal.composer import paths
from dragoman.vocabulary.content import Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.hello import AgentCapabilities

PNG = b"\x89PNG\r\n\x1a\n and more"
ABLE = AgentCapabilities(embedded_context=True, image=True)


def test_pictures_text_and_the_rest_go_as_the_agent_takes_them(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.txt").write_text("text")
    (tmp_path / "long.txt").write_text("x" * (EMBEDDED_BYTES + 1))
    (tmp_path / "folder").mkdir()
    words = "@a.png @b.txt @long.txt @folder @b.txt"
    uri = {name: (tmp_path / name).as_uri() for name in ("a.png", "b.txt", "long.txt", "folder")}
    assert prompt_with_files(words, str(tmp_path), ABLE).blocks == [
        Text(words),
        Image(base64.b64encode(PNG).decode(), "image/png", uri["a.png"]),
        Resource(TextResource("text", uri["b.txt"])),
        ResourceLink("long.txt", uri["long.txt"]),
        ResourceLink("folder", uri["folder"]),
    ]
    unable = prompt_with_files(words, str(tmp_path), AgentCapabilities()).blocks
    assert [type(block) for block in unable] == [Text, *[ResourceLink] * 4]


def test_a_picture_is_sent_as_what_its_bytes_are(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\xff\xd8\xff\xe0 a photograph")
    (_, picture) = prompt_with_files("@photo.png", str(tmp_path), ABLE).blocks
    assert isinstance(picture, Image)
    assert picture.mime_type == "image/jpeg"


def test_a_picture_that_is_none_stops_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_text("<html>not found</html>")
    (tmp_path / "empty.jpg").touch()
    found = prompt_with_files("@broken.png @empty.jpg", str(tmp_path), ABLE)
    assert found.problems == [
        "@broken.png: the image is no PNG, JPEG, GIF or WebP",
        "@empty.jpg: the image is empty",
    ]
    assert prompt_with_files("@broken.png", str(tmp_path), AgentCapabilities()).problems == []


def test_more_pictures_than_providers_take_stop_the_prompt(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(21)]
    for name in names:
        (tmp_path / name).write_bytes(PNG)
    found = prompt_with_files(" ".join(f"@{name}" for name in names), str(tmp_path), ABLE)
    assert found.problems == ["@20.png: the image is one too many; the most is 20"]


def test_bytes_that_are_no_text_go_as_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"a\0b")
    assert isinstance(prompt_with_files("@a.bin", str(tmp_path), ABLE).blocks[1], ResourceLink)


def test_words_that_are_no_files_stay_words(tmp_path: Path) -> None:
    words = "mail me@example.com, use @property and @\0 or @ or @../nothing.py."
    found = prompt_with_files(words, str(tmp_path), ABLE)
    assert found.blocks == [Text(words)]
    assert found.missing == ["../nothing.py."]


def test_a_resource_of_a_server_is_no_missing_file(tmp_path: Path) -> None:
    found = prompt_with_files("sum up @docs:file:///guide.md, not @src/a.py:12", str(tmp_path), ABLE)
    assert (len(found.blocks), found.missing) == (1, ["src/a.py:12"])


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
