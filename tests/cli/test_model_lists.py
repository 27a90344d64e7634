"""The pickers of editors have what the provider lists, without anything waiting for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_addresses import dragoman
from tests.cli.test_builtin_agent import Plain
from tests.cli.test_model_choice import choose, named
from tests.support.editor import HELLO, Editor, Message
from tests.support.provider_server import KEY, ProviderServer, provider_server
from tests.support.versions import both_versions
from tests.support.waiting import wait_until


@pytest.fixture
def up() -> Iterator[ProviderServer]:
    with provider_server() as server:
        yield server


def env(up: ProviderServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{up.url}/v1", "OPENAI_API_KEY": KEY, "DRAGOMAN_LIST_MODELS": "true"}


def opened(editor: Editor) -> Message:
    editor.result("initialize", HELLO[editor.version])
    answer: Message = editor.result("session/new", {"cwd": str(editor.folder), "mcpServers": []})
    editor.session = answer["sessionId"]
    return answer


def update(editor: Editor) -> Message:
    """The next update, which is about options."""
    told: Message = editor.read()["params"]["update"]
    assert told["sessionUpdate"] == "config_option_update"
    return told


@both_versions
def test_a_list_that_comes_later_is_told_and_one_that_is_known_is_there_at_once(
    tmp_path: Path, up: ProviderServer, version: int
) -> None:
    up.lists("gpt-b", "gpt-a", "whisper-1")
    up.hold.clear()
    listed = ["openai/gpt-5.6-sol", "openai/gpt-b", "openai/gpt-a", "demo"]
    with Plain(tmp_path, version=version, **env(up)) as editor:
        assert named(opened(editor))["model"] == ("openai/gpt-5.6-sol", ["openai/gpt-5.6-sol", "demo"])
        assert named(choose(editor, "openai/mine"))["model"][0] == "openai/mine"  # while the provider thinks about it
        up.hold.set()
        assert named(update(editor))["model"] == ("openai/mine", [*listed, "openai/mine"])
    with Plain(tmp_path, version=version, **env(up)) as editor:
        assert named(opened(editor))["model"] == ("openai/gpt-5.6-sol", listed)
    assert len(up.listed()) == 1
    assert list((tmp_path / "home").rglob("*.session"))
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or b"config_option_update" not in file.read_bytes()


def test_a_provider_that_does_not_answer_delays_no_end(tmp_path: Path, up: ProviderServer) -> None:
    up.hold.clear()
    with Plain(tmp_path, version=1, **env(up)) as editor:
        opened(editor)
        wait_until(lambda: len(up.listed()) == 1)
        assert editor.leave() == (0, b"", b"")


def test_a_provider_that_has_no_list_leaves_the_defaults(tmp_path: Path, up: ProviderServer) -> None:
    up.status = 404
    with Plain(tmp_path, version=1, **env(up)) as editor:
        opened(editor)
        wait_until(lambda: len(up.listed()) == 1)
        answer = choose(editor, "demo")
        assert named(answer)["model"][1] == ["openai/gpt-5.6-sol", "demo"]


def test_no_provider_is_asked_where_the_settings_say_so(tmp_path: Path, up: ProviderServer) -> None:
    up.lists("gpt-b")
    looked = dragoman(tmp_path, "doctor", "--json", **{**env(up), "DRAGOMAN_LIST_MODELS": "false"})
    assert (looked.code, up.heard) == (0, [])


def test_the_doctor_asks_and_says_what_is_listed(tmp_path: Path, up: ProviderServer) -> None:
    up.lists("gpt-b", "gpt-a")
    found = json.loads(dragoman(tmp_path, "doctor", "--json", **env(up)).out)["findings"]
    (providers,) = [finding for finding in found if finding["what"] == "providers"]
    assert providers["text"] == f"openai at {up.url}/v1 (OPENAI_BASE_URL), lists 2 models"
    assert providers["health"] == "ok"
    refused = json.loads(dragoman(tmp_path, "doctor", "--json", **{**env(up), "OPENAI_API_KEY": "sk-wrong"}).out)
    (providers,) = [finding for finding in refused["findings"] if finding["what"] == "providers"]
    assert providers["health"] == "note" and "does not accept the key" in providers["text"]


def test_a_session_that_was_opened_before_the_list_came_knows_the_window_from_it(
    tmp_path: Path, up: ProviderServer
) -> None:
    up.lists("house-model", context_length=32_768)
    up.hold.clear()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        f'[providers.house]\nbase_url = "{up.url}/v1"\napi_key_env = "OPENAI_API_KEY"\n'
    )
    with Plain(tmp_path, "--model", "house/house-model", version=1, **env(up)) as editor:
        opened(editor)
        up.hold.set()
        update(editor)
        told = editor.prompt("hi")
    assert [one["size"] for one in told if one.get("sessionUpdate") == "usage_update"] == [32_768]
