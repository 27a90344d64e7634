"""`dragoman acp` before and at `initialize`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.acp_messages import NO_PARAMS
from tests.support.editor import HELLO, Editor
from tests.support.versions import both_versions

NOT_NOW = -32600
NO_VERSIONS: list[Any] = [0, -1, "1", 1.5, None, True, [], 2**70]
UNSUPPORTED = -32022  # 0 is a version as to its form, and none that was ever spoken
METHODS = ["authenticate", "logout", "session/new", "session/load", "session/resume", "session/fork", "session/list"]
METHODS += ["session/close", "session/delete", "session/archive", "session/unarchive", "session/status"]
METHODS += ["session/set_title", "session/set_config_option", "session/set_mode", "session/prompt", "_mine", "x"]


@pytest.mark.requirement("C1", "8.5.12")
def test_before_initialize_everything_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        for method in METHODS:
            params = {
                "cwd": str(tmp_path),
                "mcpServers": [],
                "sessionId": "s",
                "prompt": [{"type": "text", "text": "x"}],
            }
            assert editor.error(method, params) == {"code": NOT_NOW, "message": "Not initialized"}, method
        assert not (tmp_path / "home").exists()
        assert editor.open().prompt()[-1]["result"]["stopReason"] == "end_turn"


@pytest.mark.requirement("C2")
@both_versions
def test_a_version_that_is_none_is_refused_with_a_code_and_another_may_follow(version: int, tmp_path: Path) -> None:
    with Editor(tmp_path, version=version) as editor:
        for asked in NO_VERSIONS:
            refused = editor.error("initialize", {**HELLO[version], "protocolVersion": asked})
            assert refused["code"] == (UNSUPPORTED if asked == 0 else NO_PARAMS), asked
        editor.open()


@pytest.mark.requirement("C2")
def test_a_later_version_gets_our_latest_and_a_second_initialize_is_refused(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        answer = editor.result("initialize", {**HELLO[1], **HELLO[2], "protocolVersion": 99})
        assert answer["protocolVersion"] == 2
        for hello in HELLO.values():
            assert editor.error("initialize", hello)["code"] == NOT_NOW
        assert editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]


ODD = [{"mine": {"x": [1]}}, {"session": None, "fs": None}, {"fs": 7, "terminal": "yes"}, None]
# Each in one version, and again in the other when there is time.
ODD_ONCE = [(given, 1 + place % 2) for place, given in enumerate(ODD)]
ODD_AGAIN = [pytest.param(given, 3 - version, marks=pytest.mark.slow) for given, version in ODD_ONCE]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("given", "version"), [*ODD_ONCE, *ODD_AGAIN])
def test_unknown_capabilities_are_ignored(version: int, given: Any, tmp_path: Path) -> None:
    with Editor(tmp_path, version=version) as editor:
        editor.open(**{"clientCapabilities" if version == 1 else "capabilities": given})
        assert editor.prompt()
