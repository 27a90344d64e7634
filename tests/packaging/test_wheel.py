"""The wheel in an empty environment: what is in it, what works, and what is said where an extra is missing."""

import json
import os
import zipfile
from email.parser import Parser
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.errors import how_to_install
from dragoman.version import VERSION
from tests.packaging.bare import Bare
from tests.support.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"
EXTRAS = {"agent", "models", "bedrock", "vertex", "mcp", "lsp", "serve", "oidc", "traces", "chat", "cluster", "all"}


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    ours = {
        str(file.relative_to(PACKAGE.parent))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == ours
    assert "dragoman/py.typed" in packed


def test_the_core_needs_one_library_and_the_extras_are_the_rest(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        facts = Parser().parsestr(archive.read(name).decode())
    needs = facts.get_all("Requires-Dist") or []
    assert [need for need in needs if "extra ==" not in need] == ["msgspec>=0.20"]
    assert set(facts.get_all("Provides-Extra") or []) == EXTRAS
    assert facts["Version"] == VERSION


def test_the_wheel_announces_its_command_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        announced = archive.read(name).decode()
    assert announced.split("\n") == ["[console_scripts]", "dragoman = dragoman.cli.main:main", ""]


def test_the_installed_program_is_the_wheels(bare: Bare, tmp_path: Path) -> None:
    done = bare.run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dragoman {VERSION}\n", "")
    found = bare.run("doctor", "--json", cwd=tmp_path)
    findings = {one["what"]: one for one in json.loads(found.stdout)["findings"]}
    assert [one for one in findings.values() if one["health"] == "broken"] == []
    assert findings["extras"]["text"] == (
        "not installed: models, mcp, lsp, chat, serve. " + how_to_install("models", "mcp", "lsp", "chat", "serve")
    )


def test_the_agent_works_without_any_extra(bare: Bare, tmp_path: Path) -> None:
    done = bare.run("run", "--model", "demo", "--stream-json", "list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["type"], end["stopReason"]) == ("result", "end_turn")


def test_a_search_without_its_extra_says_what_to_install(bare: Bare, tmp_path: Path) -> None:
    done = bare.run("run", "--model", "demo", "search word", cwd=tmp_path, PATH="/nonexistent")
    assert done.returncode == 0
    sentence = f"glob and grep need ripgrep, and it is not installed: {how_to_install('agent')}"
    assert sentence in done.stdout
    doctor = json.loads(bare.run("doctor", "--json", cwd=tmp_path, PATH="/nonexistent").stdout)
    (finding,) = [one for one in doctor["findings"] if one["what"] == "search"]
    assert finding["health"] == "note"
    assert finding["text"].startswith(sentence)


def test_an_editor_is_greeted_with_a_way_to_log_in(bare: Bare, tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    done = bare.run("acp", "--model", "demo", cwd=tmp_path, text=json.dumps(hello) + "\n")
    (answer,) = map(json.loads, done.stdout.splitlines())
    assert answer["result"]["agentInfo"]["version"] == VERSION
    # What the registry of agents asks for; a method without a type is one of the agent's own.
    assert {method.get("type", "agent") for method in answer["result"]["authMethods"]} & {"agent", "terminal"}


MISSING = {
    "serve": (2, f"dragoman: serving needs an extra (prometheus_client): {how_to_install('serve')}\n"),
    "connect http://127.0.0.1:9/": (
        2,
        f"dragoman: connecting needs httpx2, which is not installed: {how_to_install('serve')}\n",
    ),
    "run --model openai/some-model hello": (
        6,
        f"dragoman: Hosted models need more packages: {how_to_install('models')}\n",
    ),
}


@pytest.mark.parametrize("line", MISSING)
def test_a_missing_extra_is_a_sentence_that_says_what_to_install(line: str, bare: Bare, tmp_path: Path) -> None:
    done = bare.run(*line.split(), cwd=tmp_path, OPENAI_API_KEY="sk-none")
    assert (done.returncode, done.stderr) == MISSING[line]
    assert done.stdout == ""


def test_a_chat_without_its_extra_says_what_to_install(bare: Bare, tmp_path: Path) -> None:
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path), "TERM": "dumb"}
    child = pexpect.spawn(bare.program(), ["chat"], cwd=tmp_path, env=environment, encoding="utf-8", timeout=40)
    child.expect_exact(pexpect.EOF)
    child.close()
    said = f"dragoman: chat needs prompt_toolkit, which is not installed: {how_to_install('chat')}"
    assert (child.exitstatus, (child.before or "").strip()) == (2, said)


def test_mcp_servers_without_their_extra_are_named_as_failed(bare: Bare, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[mcp.clock]\ncommand = "true"\n')
    done = bare.run("run", "--model", "demo", "/mcp", cwd=tmp_path)
    assert done.returncode == 0
    assert "clock: failed" in done.stdout
    assert f"MCP servers need the package mcp, which is not installed: {how_to_install('mcp')}" in done.stdout
