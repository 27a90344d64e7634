"""`dragoman.testing` as a pytest plugin: loaded where a conftest names it, and by no installation."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.needs import ROOT

TEST = """\
import asyncio

from dragoman import Agent

agent = Agent("greeter")


@agent.prompt
async def reply(session, prompt):
    await session.say("hello")


def test_all_three_fixtures(acp_pair, scripted_agent, scripted_client):
    async def play():
        async with acp_pair(agent) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "hello"
        async with acp_pair(scripted_agent("first")) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "first"
        *_, said, end = await scripted_client(agent).play("hi")
        assert said.text == "hello"

    asyncio.run(play())
"""


def outcome_of(folder: Path, conftest: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_greeter.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    # Installed plugins are left out: what this environment was once installed with is not the point.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=50, check=False)


def test_a_conftest_that_names_the_plugin_has_its_fixtures(tmp_path: Path) -> None:
    done = outcome_of(tmp_path, 'pytest_plugins = ["dragoman.testing"]\n')
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_without_that_pytest_does_not_know_them(tmp_path: Path) -> None:
    assert "fixture 'acp_pair' not found" in outcome_of(tmp_path, "").stdout


def test_installing_the_package_puts_nothing_into_every_run_of_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "entry-points" not in project
