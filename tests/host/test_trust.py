"""Trust in a project's configuration: given for exactly what it says, and gone when that changes."""

import json
import os
from pathlib import Path

import pytest

from dragoman.host.launch_names import Launch
from dragoman.host.scripts import named_files
from dragoman.host.trust import (
    Trust,
    TrustFailed,
    is_trusted,
    revoke,
    started_files,
    trust,
    trust_state,
    trusted_folders,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "acp.json").write_text('{"servers": {}}')
    return folder


@pytest.mark.requirement("J3")
def test_nothing_is_trusted_before_it_is(tmp_path: Path, project: Path) -> None:
    registry = tmp_path / "home" / "trust.json"
    assert not is_trusted(registry, project)
    assert trust(registry, project) == ["acp.json"]
    assert is_trusted(registry, project)
    assert registry.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("J4")
@pytest.mark.parametrize("name", ["acp.json", ".mcp.json"])
def test_a_change_voids_it(tmp_path: Path, project: Path, name: str) -> None:
    registry = tmp_path / "trust.json"
    trust(registry, project)
    (project / name).write_text('{"servers": {"evil": {}}}')
    assert not is_trusted(registry, project)
    trust(registry, project)
    assert is_trusted(registry, project)


@pytest.mark.requirement("J4")
def test_a_change_that_keeps_the_length_voids_it_too(tmp_path: Path, project: Path) -> None:
    registry, file = tmp_path / "trust.json", project / "acp.json"
    trust(registry, project)
    length = file.stat().st_size
    file.write_text(file.read_text().replace("servers", "serverz"))
    assert file.stat().st_size == length
    assert not is_trusted(registry, project)


def test_a_link_is_the_folder_it_leads_to_and_another_folder_is_another(tmp_path: Path, project: Path) -> None:
    registry = tmp_path / "trust.json"
    (tmp_path / "link").symlink_to(project)
    trust(registry, tmp_path / "link")
    assert trusted_folders(registry) == [str(project.resolve())]
    assert is_trusted(registry, project)
    other = tmp_path / "other"
    other.mkdir()
    (other / "acp.json").write_text('{"servers": {}}')
    assert not is_trusted(registry, other)


def test_it_can_be_taken_back(tmp_path: Path, project: Path) -> None:
    registry = tmp_path / "trust.json"
    trust(registry, project)
    assert revoke(registry, project)
    assert not revoke(registry, project)
    assert not is_trusted(registry, project)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1}', '{"a": {}}', '{"a": {"digest": "", "named": {"b": 1}, "secrets": {}}}']
)
def test_a_list_that_cannot_be_read_trusts_no_folder_and_is_not_overwritten(
    tmp_path: Path, project: Path, text: str
) -> None:
    registry = tmp_path / "trust.json"
    registry.write_text(text)
    assert not is_trusted(registry, project)
    with pytest.raises(TrustFailed):
        trust(registry, project)
    assert registry.read_text() == text


@pytest.mark.parametrize("name", ["acp.json", ".mcp.json"])
def test_a_pipe_in_place_of_a_configuration_is_refused_without_waiting(
    tmp_path: Path, project: Path, name: str
) -> None:
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    with pytest.raises(TrustFailed, match="this is no regular file"):
        trust(tmp_path / "trust.json", project)
    assert not is_trusted(tmp_path / "trust.json", project)


def test_a_file_that_the_configuration_starts_is_covered_with_it(tmp_path: Path, project: Path) -> None:
    registry, script = tmp_path / "trust.json", project / "srv.sh"
    script.write_text("one")
    trust(registry, project, named=named_files(str(project), [Launch("./srv.sh")], os.environ))
    assert started_files(registry) == [str(script)]
    script.write_text("two")
    assert trust_state(registry, project) == (None, "srv.sh has changed since it was trusted", Trust(""))
    script.write_text("one")
    assert is_trusted(registry, project)
    script.unlink()
    assert not is_trusted(registry, project)


def test_what_an_earlier_release_trusted_is_asked_for_again_and_can_be_revoked(tmp_path: Path, project: Path) -> None:
    registry = tmp_path / "trust.json"
    registry.write_text(json.dumps({str(project): "0" * 64, "/other": "1" * 64}))
    assert trust_state(registry, project) == (None, "trust has to be given again", Trust(""))
    assert trusted_folders(registry) == sorted(["/other", str(project)])
    trust(registry, project)
    assert is_trusted(registry, project)
    assert revoke(registry, Path("/other"))
    assert trusted_folders(registry) == [str(project)]


def test_a_configuration_behind_a_link_is_what_the_link_leads_to(tmp_path: Path, project: Path) -> None:
    registry, outside = tmp_path / "trust.json", tmp_path / "outside.json"
    outside.write_text("one")
    (project / ".mcp.json").symlink_to(outside)
    trust(registry, project)
    outside.write_text("two")
    assert trust_state(registry, project).reason == "it has changed since it was trusted"


def test_a_list_that_would_grow_too_long_is_not_written(tmp_path: Path, project: Path) -> None:
    registry = tmp_path / "trust.json"
    trust(registry, project)
    before = registry.read_bytes()
    with pytest.raises(TrustFailed, match="is full"):
        trust(registry, project, named={"x" * 1024 * 1024 * 17: ""})
    assert registry.read_bytes() == before
