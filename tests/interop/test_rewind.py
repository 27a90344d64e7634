"""An editor on the official TypeScript SDK goes back to before a prompt, and forth again, in either version."""

from pathlib import Path

import pytest

from tests.support.editor import turns
from tests.support.git_repository import repository
from tests.support.ts_editor import new_session, of_kind, played

WRITES = turns(*([{"call": "bash", "input": {"command": f"echo {word} > file"}}, {"say": word}] for word in "ab"))
REWIND = "_session/rewind"


@pytest.mark.requirement("RW7")
@pytest.mark.parametrize("version", [1, 2])
def test_an_editor_on_the_official_sdk_goes_back_and_forth(version: int, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")

    def rewind(**more: object) -> dict[str, object]:
        return {"call": REWIND, "params": {"sessionId": "$session", **more}}

    lines = played(
        version,
        tmp_path,
        WRITES,
        new_session(folder),
        {"prompt": "write a"},
        {"prompt": "write b"},
        rewind(preview=True),
        rewind(scope="files"),
        rewind(undo=True),
        rewind(scope="both"),
        mode="full-access",
    )
    (greeted,) = of_kind(lines, "initialize")
    assert greeted["_meta"]["rewind"] == {"supported": True}
    answers = of_kind(lines, REWIND)
    assert [(one["applied"], one["scope"]) for one in answers] == [
        *((False, "both"), (True, "files"), (True, "files"), (True, "both"))
    ]
    diffs = [file["diff"].splitlines()[-2:] for one in answers for file in one["files"]]
    assert diffs == [["-b", "+a"], ["-b", "+a"], ["-a", "+b"], ["-b", "+a"]]
    assert (folder / "file").read_text() == "a\n"
