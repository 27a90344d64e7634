"""Real agents through `trace record` and `bridge`: a turn with each. `./dev matrix` judges them by rows."""

from pathlib import Path

import pytest

from tests.support.upstream import upstream
from tools.matrix.agents import AGENTS, MatrixAgent
from tools.matrix.model import MatrixModel
from tools.matrix.runs import through

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
# Those that `./dev interop` installs; the others are installed by `./dev matrix`.
HERE = ("dragoman", "claude", "codex", "gemini", "opencode", "iac-code", "agentao", "example of the TypeScript SDK")


@pytest.mark.parametrize("agent", [one for one in AGENTS if one.name in HERE], ids=lambda one: one.name)
async def test_a_turn_is_recorded_and_bridged_to_editors_of_both_versions(agent: MatrixAgent, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with upstream(MatrixModel(agent.writing)) as server:
        server.is_strict = False
        found = await through(agent, tmp_path, dict(agent.environment(home, server.url)))
    assert found.pop("trace record").startswith("ok")
    assert found == {"bridge, editor of version 1": "ok", "bridge, editor of version 2": "ok"}


def test_all_of_them_are_in_the_matrix() -> None:
    assert set(HERE) <= {one.name for one in AGENTS}
