"""What is proposed to the registry of ACP agents keeps the registry's rules. Each rule has an entry that breaks it."""

import copy
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from dragoman.version import VERSION
from tests.support.needs import ROOT

FOLDER = ROOT / "registry" / "dragoman"
ENTRY: dict[str, Any] = json.loads((FOLDER / "agent.json").read_text(encoding="utf-8"))
ICON = (FOLDER / "icon.svg").read_text(encoding="utf-8")
PACKAGE: dict[str, Any] = tomllib.loads((ROOT / "registry" / "package" / "pyproject.toml").read_text(encoding="utf-8"))

STRING = {"type": "string", "minLength": 1}
ADDRESS = {"type": "string", "format": "uri"}
# The shape of an entry. Of the three ways to distribute only ours is here.
SHAPE = {
    "type": "object",
    "required": ["id", "name", "version", "description", "distribution"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
        "name": STRING,
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
        "description": STRING,
        "repository": ADDRESS,
        "website": ADDRESS,
        "authors": {"type": "array", "items": STRING},
        "license": STRING,
        "distribution": {
            "type": "object",
            "required": ["uvx"],
            "additionalProperties": False,
            "properties": {
                "uvx": {
                    "type": "object",
                    "required": ["package"],
                    "additionalProperties": False,
                    "properties": {
                        "package": STRING,
                        "args": {"type": "array", "items": {"type": "string"}},
                        "env": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                }
            },
        },
    },
}
COLOURS = {"currentcolor", "none", "inherit"}
PAINTS = ("fill", "stroke")


def complaints(entry: dict[str, Any], icon: str = ICON) -> Iterator[str]:
    """What the registry would refuse."""
    validator = jsonschema_rs.validator_for(SHAPE, validate_formats=True)
    wrong = [str(error.instance_path) for error in validator.iter_errors(entry)]
    if wrong:
        yield "shape"
        return
    if entry["id"] != FOLDER.name:
        yield "id is not the folder's name"
    if entry["version"] != VERSION:
        yield "version is another than ours"
    name, exactly, version = entry["distribution"]["uvx"]["package"].partition("==")
    if not exactly or version != entry["version"]:
        yield "package is not of exactly this version"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        yield "package is looked up by a plain name"
    yield from icon_complaints(icon)


def icon_complaints(icon: str) -> Iterator[str]:
    root = ElementTree.fromstring(icon)
    if (root.get("width"), root.get("height"), root.get("viewBox")) != ("16", "16", "0 0 16 16"):
        yield "icon is not 16x16"
    painted = [element.get(paint) for element in root.iter() for paint in PAINTS]
    painted += re.findall(r"(?:fill|stroke)\s*:\s*([^;\"']+)", icon)
    colours = {colour.strip().lower() for colour in painted if colour is not None}
    if "currentcolor" not in colours or colours - COLOURS:
        yield "icon has a colour of its own"


def test_the_entry_keeps_the_rules() -> None:
    assert list(complaints(ENTRY)) == []


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    entry = copy.deepcopy(ENTRY)
    change(entry)
    return entry


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no description": (changed(lambda entry: entry.pop("description")), "shape"),
    "an id with capitals": (changed(lambda entry: entry.update(id="Dragoman")), "shape"),
    "a website that is no address": (changed(lambda entry: entry.update(website="ours")), "shape"),
    "an unknown distribution": (changed(lambda entry: entry["distribution"].update(pipx={})), "shape"),
    "another id": (changed(lambda entry: entry.update(id="dragon")), "id is not the folder's name"),
    "no exact version": (
        changed(lambda entry: entry["distribution"]["uvx"].update(package="dragoman-acp")),
        "package is not of exactly this version",
    ),
    "extras": (
        changed(lambda entry: entry["distribution"]["uvx"].update(package=f"dragoman[all]=={VERSION}")),
        "package is looked up by a plain name",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_entry_that_breaks_a_rule_is_refused(name: str) -> None:
    entry, complaint = BROKEN[name]
    assert list(complaints(entry)) == [complaint]


def test_an_entry_of_another_version_is_refused() -> None:
    entry = changed(lambda entry: entry.update(version="9.9.9"))
    assert "version is another than ours" in complaints(entry)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('width="16"', 'width="24"', "icon is not 16x16"),
        ('stroke="currentColor"', 'stroke="#a00"', "icon has a colour of its own"),
        ('stroke="currentColor"', 'stroke="none"', "icon has a colour of its own"),
        ("<path d", '<path style="fill: red" d', "icon has a colour of its own"),
    ],
)
def test_an_icon_that_breaks_a_rule_is_refused(old: str, new: str, complaint: str) -> None:
    assert list(icon_complaints(ICON.replace(old, new))) == [complaint]


def test_the_package_is_ours_with_all_extras_in_this_version() -> None:
    project = PACKAGE["project"]
    assert project["version"] == VERSION
    assert project["dependencies"] == [f"dragoman[all]=={VERSION}"]
    assert ENTRY["distribution"]["uvx"]["package"] == f"{project['name']}=={VERSION}"
    # uvx runs the program that is called as the package is.
    assert list(project["scripts"]) == [project["name"]]


def test_the_package_has_nothing_but_its_description(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT / "registry" / "package", capture_output=True, timeout=50, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert all(".dist-info/" in name for name in zipfile.ZipFile(wheel).namelist())
